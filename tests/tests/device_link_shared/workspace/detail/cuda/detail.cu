#include "base.cuh"

__global__ void detail_kernel(int *out) { *out = base_twice(2); }

extern "C" int detail_run() {
    detail_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
