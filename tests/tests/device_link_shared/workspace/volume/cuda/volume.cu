#include "base.cuh"

__global__ void volume_kernel(int *out) { *out = base_twice(2); }

extern "C" int volume_run() {
    volume_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
