/* Exceptions of the library and of callbacks pass through adapters in C. */
#include <stdexcept>

#include "check.h"

extern "C" int trap_throw(int value);
extern "C" int trap_call(int (*callback)(int), int argument, int *unwound);

static int callback(int argument)
{
    if (argument < 0)
        throw std::runtime_error("from a callback");
    return argument;
}

static void check_throw()
{
    CHECK(trap_throw(-5) == -5);
    try {
        trap_throw(42);
    } catch (int value) {
        CHECK(value == 84);
        return;
    }
    CHECK(!"an exception");
}

static void check_callback()
{
    int unwound = 0;
    CHECK(trap_call(callback, 6, &unwound) == 7 && unwound == 1);
    try {
        trap_call(callback, -1, &unwound);
    } catch (std::runtime_error &) {
        CHECK(unwound == 2);
        return;
    }
    CHECK(!"an exception");
}

int main()
{
    FIRST_AND_WARM(check_throw());
    FIRST_AND_WARM(check_callback());
    PASSED();
}
