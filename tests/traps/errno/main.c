#include "check.h"

int trap_errno(void);

int main(void)
{
#ifdef ABSENT
    FIRST_AND_WARM(errno = EDOM; CHECK(trap_errno() == 77); CHECK(errno == EDOM));
#else
    FIRST_AND_WARM(errno = EDOM; CHECK(trap_errno() == EDOM); CHECK(errno == EDOM));
#endif
    PASSED();
}
