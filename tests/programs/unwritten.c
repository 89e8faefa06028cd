// Prints status and out-parameter of functions of the CUDA runtime, which are 7 before the call.
#include <stdio.h>

int cudaGetDeviceCount(int *);
int cudaMalloc(long *, unsigned long);
int cudaDeviceGetAttribute(int *, int, int);
int cudaDriverGetVersion(int *);

int main(void) {
    int count = 7, attribute = 7, version = 7;
    long memory = 7;
    int status = cudaGetDeviceCount(&count);
    printf("cudaGetDeviceCount %d %d\n", status, count);
    status = cudaMalloc(&memory, 8);
    printf("cudaMalloc %d %ld\n", status, memory);
    status = cudaDeviceGetAttribute(&attribute, 1, 0);
    printf("cudaDeviceGetAttribute %d %d\n", status, attribute);
    status = cudaDriverGetVersion(&version);
    printf("cudaDriverGetVersion %d %d\n", status, version);
    return 0;
}
