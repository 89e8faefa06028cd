// __device__ in gravity.cu.
__device__ float acceleration(float distance);

extern "C" __global__ void fall(float *speeds, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) speeds[i] += acceleration(1.0f + i);
}
