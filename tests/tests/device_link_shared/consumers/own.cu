// Relocatable code of a target, which calls that of an installed library.
#include "base.cuh"

__global__ void own_kernel(int *out) { *out = base_twice(3); }

extern "C" int own_run()
{
    own_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
