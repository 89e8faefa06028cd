/* Prints the status and the number of devices. */
#include <stdio.h>

int cudaGetDeviceCount(int *count);

int main(void)
{
    int count = -7, status = cudaGetDeviceCount(&count);
    printf("status %d, %d devices\n", status, count);
    return 0;
}
