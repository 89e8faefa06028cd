/* A header like those of C++ libraries: an inline function that both sides compile. */
#include <string>

struct Names {
    virtual ~Names() = default;
    __attribute__((noinline)) std::string greet(const std::string &name) const { return "hello " + name; }
};

inline int inline_counter()
{
    static int counter;
    return ++counter;
}

extern "C" int trap_greet(const char *name);
