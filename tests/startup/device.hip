/* A program with device code for HIP, compiled by clang without HIP's headers: this file declares
 * what it needs of them. */
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef struct ihipStream_t *hipStream_t;
typedef int hipError_t;

extern "C" {
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream);
hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                           hipStream_t stream);
hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetLastError();
hipError_t hipFree(void *memory);
}

/* Device code, which another command would compile and bundle. */
__asm__(".data\n.globl __hip_fatbin\n.hidden __hip_fatbin\n__hip_fatbin: .zero 64\n.text\n");

__device__ int variable;
__constant__ int constant[3];
__managed__ int managed = 3;

__global__ void kernel(int *out) { *out = variable + constant[0] + managed; }

struct Watcher {
    Watcher()
    {
        if (getenv("EARLY"))
            ask("early");
    }

    ~Watcher() { ask("late"); }

    void ask(const char *when) const
    {
        int count = -7, status = hipGetDeviceCount(&count);
        printf("%s count %d %d, free %d\n", when, status, count, hipFree(nullptr));
        fflush(stdout);
    }
};

static Watcher watcher;

int main()
{
    if (getenv("LAUNCH")) {
        kernel<<<dim3(2, 3), 4, 32>>>(nullptr);
        printf("launch %d\n", hipGetLastError());
    }
    return 0;
}
