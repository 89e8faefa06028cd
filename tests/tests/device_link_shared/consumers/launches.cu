// Code of a target that launches a kernel of an installed library.
#include "base.cuh"

__global__ void base_kernel(int *out);

extern "C" int launches_run()
{
    base_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
