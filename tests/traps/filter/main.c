#include "check.h"

int trap_answer(void);

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_answer() == 43));
    PASSED();
}
