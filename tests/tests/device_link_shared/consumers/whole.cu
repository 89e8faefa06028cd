// Code without relocatable functions: nvcc links it when it compiles.
__global__ void whole_kernel(int *out) { *out = 1; }

extern "C" int whole_run()
{
    whole_kernel<<<1, 1>>>(nullptr);
    return cudaGetLastError();
}
