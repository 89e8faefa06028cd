#include <string.h>

#include "check.h"

#include "api.h"

int main(void)
{
    char text[64];

#define CALL(i)                                                                \
    FIRST_AND_WARM(CHECK(trap_sum##i(3, 1.5, 2.25, 4.0) == 7.75 + i);          \
                   CHECK(trap_sum##i(12, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.) == 78. + i));
    SIXTEEN(CALL)

    FIRST_AND_WARM(
        CHECK(trap_format(text, sizeof text, "%d %s %.2f %ld %c %.1f", -7, "seven", 7.25, 7L, '7', 70.5) == 22);
        CHECK(strcmp(text, "-7 seven 7.25 7 7 70.5") == 0));
    PASSED();
}
