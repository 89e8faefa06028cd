/* Traced calls: GPUSTUB_TRACE and GPUSTUB_FAIL. */
#include "check.h"
#include "gpustub.h"

int trap_add(int a, int b);
int trap_negative(void);
int trap_never(void);

int main(int argc, char **argv)
{
    (void)argv;
#if defined(ABSENT)
    CHECK(trap_add(1, 2) == 77);
    CHECK(trap_negative() == 77);
#elif defined(FAILING)
    CHECK(trap_add(1, 2) == 3);
    CHECK(trap_add(3, 4) == -7); /* the second */
    CHECK(trap_add(5, 6) == 11);
    CHECK(trap_negative() == 9);
    CHECK(trap_negative() == 9);
#else
    CHECK(trap_add(1, 2) == 3);
    CHECK(trap_add(3, 4) == 7);
    errno = ERANGE;
    CHECK(trap_negative() == -5);
    CHECK(errno == EDOM);
#endif
#if !defined(ABSENT) && !defined(SHARED)
    CHECK(gpustub_has_function("trap", "trap_add"));
#endif
    if (argc > 9)
        trap_never();
    PASSED();
}
