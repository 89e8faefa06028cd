#include "base.cuh"

__global__ void tally_kernel(int *out) { *out = base_twice(2) + cudaGetLastError(); }

extern "C" int tally_run() {
    tally_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
