/* An extension module that calls one function of the CUDA runtime, whose name is in FUNCTION. */
#include <stdio.h>

int FUNCTION(int *value);
int call(void);

int call(void)
{
    int value = -1;
    int status = FUNCTION(&value);
    printf("status %d\n", status);
    fflush(stdout);
    return status;
}
