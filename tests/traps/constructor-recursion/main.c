#include "check.h"

int trap_add(int a, int b);
int trap_from_constructor(void);

int host_add(int a, int b) { return trap_add(a, b); }

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_add(2, 3) == 5); CHECK(trap_from_constructor() == 42));
    PASSED();
}
