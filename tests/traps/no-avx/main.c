#include "check.h"

double trap_mix(double a, float b, int c);

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_mix(1.5, 2.25f, 3) == 6.75));
    PASSED();
}
