/* A program that another build system builds. It calls three functions, and prints the version of
 * CUDA's headers, if any, and the version of NVRTC, if found. Then it asks
 * gpustub.h about a library with stubs and one without; a program that is linked with a real toolkit has no
 * such function. */
#include <stdio.h>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#define CUDART_VERSION 0
int cudaGetDeviceCount(int *count);
#endif
int cuInit(unsigned flags);
int nvrtcVersion(int *major, int *minor);
__attribute__((weak)) int gpustub_load(const char *library);

int main(void)
{
    int count = -7, major = -7, minor = -7;
    int driver = cuInit(0), runtime = cudaGetDeviceCount(&count), nvrtc = nvrtcVersion(&major, &minor);
    printf("headers %d, cuInit %d, cudaGetDeviceCount %d %d, nvrtcVersion %d %d.%d\n", CUDART_VERSION / 1000,
           driver, runtime, count, nvrtc, major, minor);
    if (gpustub_load)
        printf("gpustub_load %d %d\n", gpustub_load("cudart"), gpustub_load("nvml"));
    return 0;
}
