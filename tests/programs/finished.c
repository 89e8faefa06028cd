/* A finished program of the CUDA runtime: it needs libcudart.so.12. Each argument is a file to load first. */
#include <dlfcn.h>
#include <stdio.h>

int cudaGetDeviceCount(int *count);
int cudaRuntimeGetVersion(int *version);
const char *cudaGetErrorName(int status);

int main(int argc, char **argv)
{
    int count = -7, version = -7;
    for (int i = 1; i < argc; i++)
        if (!dlopen(argv[i], RTLD_NOW | RTLD_LOCAL))
            printf("%s\n", dlerror());
    int status = cudaGetDeviceCount(&count);
    printf("cudaGetDeviceCount %d %s", status, cudaGetErrorName(status));
    status = cudaRuntimeGetVersion(&version);
    printf(", cudaRuntimeGetVersion %d %d\n", status, version);
    return 0;
}
