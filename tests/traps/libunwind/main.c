#include "check.h"

int trap_reached_main(void);

int main(void)
{
    CHECK(trap_reached_main() == 2);
    PASSED();
}
