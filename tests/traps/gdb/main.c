#include "check.h"

int trap_answer(int n);

__attribute__((noinline)) int outer(int n) { return trap_answer(n) + 1; }

int main(void)
{
    CHECK(outer(41) == 42);
    PASSED();
}
