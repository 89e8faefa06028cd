#include <fenv.h>

#include "check.h"

#include "api.h"

static int same(struct control a, struct control b) { return a.main == b.main && a.x87 == b.x87; }

int main(void)
{
    FIRST_AND_WARM(struct control mine = control(); CHECK(same(trap_control(), mine)); CHECK(same(control(), mine)););

    /* The program's own choice reaches the library. */
    volatile double one = 1, three = 3;
    volatile long double long_one = 1, long_three = 3;
    double down, up;
    fesetround(FE_DOWNWARD);
    down = one / three;
    long double long_down = long_one / long_three;
    FIRST_AND_WARM(CHECK(trap_divide(one, three) == down); CHECK(fegetround() == FE_DOWNWARD));
    FIRST_AND_WARM(CHECK(trap_divide_long(long_one, long_three) == long_down));
    fesetround(FE_UPWARD);
    up = one / three;
    FIRST_AND_WARM(CHECK(trap_divide(one, three) == up); CHECK(fegetround() == FE_UPWARD));
    CHECK(down < up);
    PASSED();
}
