#include <stdexcept>

extern "C" void trap_throw(int value) { throw value; }

/* Counts unwinding, to show that destructors run on the way. */
struct Guard {
    int *count;
    ~Guard() { ++*count; }
};

extern "C" int trap_call(int (*callback)(int), int argument, int *unwound)
{
    Guard guard{unwound};
    return callback(argument) + 1;
}

#ifndef WITHOUT_CONSTRUCTOR
/* Throws while the first call is still under way. */
extern "C" int host_from_constructor();
__attribute__((constructor)) static void construct()
{
    try {
        host_from_constructor();
    } catch (std::runtime_error &) {
        return;
    }
    __builtin_trap();
}
#endif
