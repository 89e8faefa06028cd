/* The second object with device code. */
#include "program.h"

static Watcher watcher("second");

__device__ float second_variable[8];

__global__ void second_kernel() { second_variable[threadIdx.x] = 1; }

int copy_second()
{
    const float numbers[8] = {};
    return cudaMemcpyToSymbol(second_variable, numbers, sizeof numbers);
}

int launch_second()
{
    second_kernel<<<1, 8>>>();
    return launched("second");
}
