#include "check.h"

#include "api.h"

extern "C" int trap_weak(int n);

int main()
{
    /* The program's own copies, with the library and without. */
    CHECK(Names().greet("world") == "hello world");
    CHECK(inline_counter() == 1);
#ifdef ABSENT
    CHECK(trap_greet("world") == 77);
    CHECK(trap_weak(41) == 77);
#else
    CHECK(trap_greet("world") == 11);
    CHECK(trap_weak(41) == 42);
#endif
    CHECK(Names().greet("again") == "hello again");
    PASSED();
}
