#include <hip/hip_runtime_api.h>
#include <stdio.h>

int main(void)
{
    int count = 7;
    int status = hipGetDeviceCount(&count);
    printf("hipGetDeviceCount %d %d\n", status, count);
    return 0;
}
