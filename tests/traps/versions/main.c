#include "check.h"

int trap_old(void);
int trap_both(void);
int trap_plain(void);

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_old() == 1));
    FIRST_AND_WARM(CHECK(trap_both() == 12));
    FIRST_AND_WARM(CHECK(trap_plain() == 22));
    PASSED();
}
