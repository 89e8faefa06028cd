/* Results of calls on a machine without any GPU library, a line for each. */
#include <stdio.h>
#include <string.h>

#include "gpustub.h"

struct channel { int x, y, z, w, kind; };

int cudaGetDeviceCount(int *count);
int cudaMalloc(void **pointer, size_t size);
int cudaDriverGetVersion(int *version);
int cudaGetLastError(void);
struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind);
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuGetErrorString(int error, const char **text);
int nvrtcCreateProgram(void **program, const char *source, const char *name, int count,
                       const char *const *headers, const char *const *names);
int clGetPlatformIDs(unsigned room, void **platforms, unsigned *count);
void *clCreateContext(const long *properties, unsigned count, void *const *devices, void *notify,
                      void *data, int *status);
int hipGetDeviceCount(int *count);

int main(void)
{
    int n = -7, status = -7, version = -7;
    unsigned platforms = 7;
    void *pointer = &n;
    const char *text = NULL;

    status = cudaGetDeviceCount(&n);
    printf("cudaGetDeviceCount %d %d\n", status, n);
    status = cudaMalloc(&pointer, 16);
    printf("cudaMalloc %d %s\n", status, pointer ? "kept" : "null");
    status = cudaDriverGetVersion(&version);
    printf("cudaDriverGetVersion %d %d\n", status, version);
    printf("cudaGetLastError %d\n", cudaGetLastError());
    struct channel channel = cudaCreateChannelDesc(1, 2, 3, 4, 5), zero;
    memset(&zero, 0, sizeof zero);
    printf("cudaCreateChannelDesc %s\n", memcmp(&channel, &zero, sizeof zero) ? "set" : "zero");

    printf("cuInit %d\n", cuInit(0));
    n = -7;
    status = cuDeviceGetCount(&n);
    printf("cuDeviceGetCount %d %d\n", status, n);
    status = cuGetErrorString(100, &text);
    printf("cuGetErrorString %s\n", text && *text ? "text" : "none");

    pointer = &n;
    status = nvrtcCreateProgram(&pointer, "", "", 0, NULL, NULL);
    printf("nvrtcCreateProgram %d %s\n", status, pointer ? "kept" : "null");

    status = clGetPlatformIDs(0, NULL, &platforms);
    printf("clGetPlatformIDs %d %u\n", status, platforms);
    status = -7;
    pointer = clCreateContext(NULL, 0, NULL, NULL, NULL, &status);
    printf("clCreateContext %s %d\n", pointer ? "kept" : "null", status);

    n = -7;
    status = hipGetDeviceCount(&n);
    printf("hipGetDeviceCount %d %d\n", status, n);

    static const char *const libraries[] = {"cuda", "cudart", "hip", "nvrtc", "opencl"};
    for (int i = 0; i < 5; i++) {
        const char *reason = gpustub_reason(libraries[i]);
        printf("%s available %d reason %s\n", libraries[i], gpustub_is_available(libraries[i]),
               reason && *reason ? "given" : "none");
    }
    return 0;
}
