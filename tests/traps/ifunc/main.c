#include "check.h"

int trap_picked(int n);

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_picked(41) == 42));
    PASSED();
}
