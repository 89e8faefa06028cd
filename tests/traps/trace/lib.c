#include <errno.h>

int trap_add(int a, int b) { return a + b; }

int trap_negative(void)
{
    errno = EDOM;
    return -5;
}

int trap_never(void) { return 1; }
