/* Calls the runtime as it was compiled to: stable functions, and functions whose ABI changed
 * between earlier majors. An optional argument is a file to load first. */
#include <dlfcn.h>
#include <stdio.h>

#include "gpustub.h"

int cudaGetDeviceCount(int *count);
int cudaMalloc(void **memory, size_t size);
int cudaRuntimeGetVersion(int *version);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGetDeviceProperties(void *properties, int device);

int main(int argc, char **argv)
{
    char properties[2048] = {0};
    int count = -1, version = -1;
    void *memory = NULL, *exec = NULL;
    if (argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))
        return 2;
    printf("cudaGetDeviceCount %d", cudaGetDeviceCount(&count));
    printf(" %d\n", count);
    printf("cudaMalloc %d", cudaMalloc(&memory, 4096));
    printf(" %d\n", memory == (void *)4096);
    printf("cudaRuntimeGetVersion %d", cudaRuntimeGetVersion(&version));
    printf(" %d\n", version);
    printf("cudaGraphInstantiate %d\n", cudaGraphInstantiate(&exec, NULL, 0));
    printf("cudaGetDeviceProperties %d\n", cudaGetDeviceProperties(properties, 0));
    printf("has %d %d %d\n", gpustub_has_function("cudart", "cudaMalloc"),
           gpustub_has_function("cudart", "cudaGraphInstantiate"),
           gpustub_has_function("cudart", "cudaGetDeviceProperties"));
    fputs(gpustub_report("cudart"), stdout);
    return 0;
}
