#include <CL/cl.h>
#include <stdio.h>

int main(void)
{
    unsigned count = 7;
    int status = clGetPlatformIDs(0, NULL, &count);
    printf("clGetPlatformIDs %d %u\n", status, count);
    return 0;
}
