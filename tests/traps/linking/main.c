#include "check.h"

double trap_scale(double x, int n);

/* Also as a constant address, which a linker may resolve in its own way. */
static double (*const pointer)(double, int) = trap_scale;

int main(void)
{
#if defined(ABSENT) && defined(__i386__)
    /* The x87 stack, which holds the results of doubles, stays empty: a NaN. */
    FIRST_AND_WARM(CHECK(trap_scale(1.5, 4) != 0));
    (void)pointer;
#elif defined(ABSENT)
    /* A double is a status code of an API that has none: the registers hold zero. */
    FIRST_AND_WARM(CHECK(trap_scale(1.5, 4) == 0));
    FIRST_AND_WARM(CHECK(pointer(1.5, 4) == 0));
#else
    FIRST_AND_WARM(CHECK(trap_scale(1.5, 4) == 6));
    FIRST_AND_WARM(CHECK(pointer(1.5, 4) == 6));
#endif
    PASSED();
}
