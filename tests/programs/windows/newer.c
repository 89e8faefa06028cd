/* A function that the library has, and one that it lacks. */
#include "check.h"
#include "gpustub.h"

int trap_add(int a, int b);
int trap_new(int a);

int main(void)
{
    CHECK(trap_add(1, 2) == 3 && trap_new(1) == 77 && trap_new(1) == 77);
    CHECK(gpustub_has_function("trap", "trap_add") && !gpustub_has_function("trap", "trap_new"));
    PASSED();
}
