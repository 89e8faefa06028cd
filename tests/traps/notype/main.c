#include "check.h"

int trap_untyped(int n);

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_untyped(41) == 42));
    PASSED();
}
