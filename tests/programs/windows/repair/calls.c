/* A program (main) or extension module (call) that calls the CUDA runtime. */
#include <stdio.h>

int cudaGetDeviceCount(int *count);
__declspec(dllimport) int cudaRuntimeGetVersion(int *version);
int call(void);

int call(void)
{
    int count = -1, version = -1;
    int status = cudaGetDeviceCount(&count);
    int version_status = cudaRuntimeGetVersion(&version);
    printf("status %d, %d devices; status %d, version %d\n", status, count, version_status, version);
    fflush(stdout);
    return status;
}

#ifdef PROGRAM
int main(void)
{
    call();
    return 0;
}
#endif
