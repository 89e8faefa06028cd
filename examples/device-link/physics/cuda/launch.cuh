// Launch of a kernel that adds to one number.
#pragma once

template <typename Kernel> int sum_of(Kernel kernel, unsigned n, double *sum) {
    double *device = nullptr;
    cudaError_t status = cudaMalloc((void **)&device, sizeof *device);
    if (status != cudaSuccess)
        return status;
    status = cudaMemset(device, 0, sizeof *device);
    if (status == cudaSuccess) {
        kernel<<<(n + 127) / 128, 128>>>(n, device);
        status = cudaGetLastError();
    }
    if (status == cudaSuccess)
        status = cudaMemcpy(sum, device, sizeof *sum, cudaMemcpyDeviceToHost);
    cudaFree(device);
    return status;
}
