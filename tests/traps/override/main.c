#include <sys/auxv.h>

#include "check.h"

int trap_value(void);

int main(void)
{
    int value = trap_value();
    CHECK((getauxval(AT_SECURE) != 0) == SECURE);
    if (SECURE) {
        /* The user who starts the program must not choose the libraries that it loads. */
        CHECK(value == 1 || value == 77);
    } else {
        CHECK(value == 2);
    }
    PASSED();
}
