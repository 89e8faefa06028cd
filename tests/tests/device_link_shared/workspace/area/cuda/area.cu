#include "base.cuh"

__global__ void area_kernel(int *out) { *out = base_twice(2); }

extern "C" int area_run() {
    area_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
