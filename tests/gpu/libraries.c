/* Calls libraries of a CUDA toolkit and the driver, and checks the results. Exit codes: 0, 1 (a call failed, or a result is
 * wrong), 3 (no device). */
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <math.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

#define TRY(call)                               \
    do {                                        \
        int code_ = (call);                     \
        if (code_) {                            \
            failures++;                         \
            printf("%s -> %d\n", #call, code_); \
        }                                       \
    } while (0)

static void result(const char *library, int version, int is_right)
{
    failures += !is_right;
    printf("%s %d: %s\n", library, version, is_right ? "right" : "WRONG");
}

enum { SIDE = 256, COUNT = SIDE * SIDE };

/* Matrices on the host and on the device. */
static float a[COUNT], b[COUNT], c[COUNT], *x, *y, *z;

static void upload(float *to, const float *from)
{
    TRY(cudaMemcpy(to, from, sizeof a, cudaMemcpyHostToDevice));
}

static void download(const float *from)
{
    TRY(cudaMemcpy(c, from, sizeof c, cudaMemcpyDeviceToHost));
}

static void multiply(void)
{
    cublasHandle_t handle;
    int version = 0;
    float one = 1, zero = 0;
    upload(x, a);
    upload(y, b);
    TRY(cublasCreate(&handle));
    TRY(cublasGetVersion(handle, &version));
    TRY(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIDE, SIDE, SIDE, &one, x, SIDE, y, SIDE, &zero, z, SIDE));
    TRY(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIDE, SIDE, SIDE, &one, x, CUDA_R_32F, SIDE, y, CUDA_R_32F, SIDE,
        &one, z, CUDA_R_32F, SIDE, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    download(z);
    double worst = 0;
    for (int column = 0; column < SIDE; column += 37)
        for (int row = 0; row < SIDE; row++) {
            double sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += (double)a[k * SIDE + row] * b[column * SIDE + k];
            worst = fmax(worst, fabs(2 * sum - c[column * SIDE + row]));
        }
    result("cublas", version, worst < 1e-3);
    TRY(cublasDestroy(handle));
}

static void transform(void)
{
    cufftHandle plan;
    int version = 0;
    upload(x, a);
    TRY(cufftPlan1d(&plan, SIDE, CUFFT_C2C, 1));
    TRY(cufftExecC2C(plan, (cufftComplex *)x, (cufftComplex *)y, CUFFT_FORWARD));
    TRY(cufftExecC2C(plan, (cufftComplex *)y, (cufftComplex *)y, CUFFT_INVERSE));
    download(y);
    double worst = 0;
    for (int i = 0; i < 2 * SIDE; i++)
        worst = fmax(worst, fabs(c[i] / SIDE - a[i]));
    TRY(cufftGetVersion(&version));
    TRY(cufftDestroy(plan));
    result("cufft", version, worst < 1e-4);
}

static void generate(void)
{
    curandGenerator_t generator;
    int version = 0;
    TRY(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    TRY(curandSetPseudoRandomGeneratorSeed(generator, 7));
    TRY(curandGenerateUniform(generator, z, COUNT));
    download(z);
    double mean = 0;
    for (int i = 0; i < COUNT; i++)
        mean += c[i] / COUNT;
    TRY(curandGetVersion(&version));
    TRY(curandDestroyGenerator(generator));
    result("curand", version, fabs(mean - 0.5) < 0.01);
}

static void gather(void)
{
    cusparseHandle_t handle;
    cusparseDnVecDescr_t dense;
    cusparseSpVecDescr_t sparse;
    int version = 0, places[] = {1, 5, 7, 9}, *indices;
    upload(x, a);
    TRY(cudaMalloc((void **)&indices, sizeof places));
    TRY(cudaMemcpy(indices, places, sizeof places, cudaMemcpyHostToDevice));
    TRY(cusparseCreate(&handle));
    TRY(cusparseCreateDnVec(&dense, SIDE, x, CUDA_R_32F));
    TRY(cusparseCreateSpVec(&sparse, SIDE, 4, indices, z, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    TRY(cusparseGather(handle, dense, sparse));
    download(z);
    TRY(cusparseGetVersion(handle, &version));
    TRY(cusparseDestroySpVec(sparse));
    TRY(cusparseDestroyDnVec(dense));
    TRY(cusparseDestroy(handle));
    TRY(cudaFree(indices));
    int is_right = 1;
    for (int i = 0; i < 4; i++)
        is_right &= c[i] == a[places[i]];
    result("cusparse", version, is_right);
}

/* 4x + 2y = 10 and x + 3y = 8. */
static void solve(void)
{
    cusolverDnHandle_t handle;
    int version = 0, size = 0, *pivots;
    float matrix[] = {4, 1, 2, 3}, right[] = {10, 8}, *work;
    TRY(cusolverDnCreate(&handle));
    TRY(cudaMemcpy(x, matrix, sizeof matrix, cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(y, right, sizeof right, cudaMemcpyHostToDevice));
    TRY(cusolverDnSgetrf_bufferSize(handle, 2, 2, x, 2, &size));
    TRY(cudaMalloc((void **)&work, (size + 1) * sizeof *work));
    TRY(cudaMalloc((void **)&pivots, 3 * sizeof *pivots));
    TRY(cusolverDnSgetrf(handle, 2, 2, x, 2, work, pivots, pivots + 2));
    TRY(cusolverDnSgetrs(handle, CUBLAS_OP_N, 2, 1, x, 2, pivots, y, 2, pivots + 2));
    download(y);
    TRY(cusolverGetVersion(&version));
    TRY(cusolverDnDestroy(handle));
    TRY(cudaFree(work));
    TRY(cudaFree(pivots));
    result("cusolver", version, fabs(c[0] - 1.4) < 1e-4 && fabs(c[1] - 2.2) < 1e-4);
}

/* NVRTC compiles a kernel, and the driver runs it. */
static void compile(void)
{
    const char *text = "extern \"C\" __global__ void twice(float *values, int count)\n"
                       "{\n"
                       "    int at = blockIdx.x * blockDim.x + threadIdx.x;\n"
                       "    if (at < count)\n"
                       "        values[at] *= 2;\n"
                       "}\n";
    nvrtcProgram program;
    int major = 0, minor = 0, version = 0, count = COUNT;
    size_t size = 0;
    TRY(nvrtcVersion(&major, &minor));
    TRY(nvrtcCreateProgram(&program, text, "twice.cu", 0, 0, 0));
    TRY(nvrtcCompileProgram(program, 0, 0));
    TRY(nvrtcGetPTXSize(program, &size));
    char *image = calloc(size + 1, 1);
    TRY(nvrtcGetPTX(program, image));
    TRY(nvrtcDestroyProgram(&program));

    CUmodule module;
    CUfunction twice;
    CUdeviceptr values;
    CUdevice device;
    CUcontext context, current = 0;
    TRY(cuCtxGetDevice(&device));
#if CUDA_VERSION >= 13000
    TRY(cuCtxCreate(&context, 0, 0, device));
#else
    TRY(cuCtxCreate(&context, 0, device));
#endif
    TRY(cuModuleLoadData(&module, image));
    TRY(cuModuleGetFunction(&twice, module, "twice"));
    TRY(cuMemAlloc(&values, sizeof a));
    TRY(cuMemcpyHtoD(values, a, sizeof a));
    void *arguments[] = {&values, &count};
    TRY(cuLaunchKernel(twice, COUNT / 256, 1, 1, 256, 1, 1, 0, 0, arguments, 0));
    TRY(cuMemcpyDtoH(c, values, sizeof c));
    TRY(cuMemFree(values));
    TRY(cuModuleUnload(module));
    TRY(cuCtxPopCurrent(&current));
    TRY(cuCtxDestroy(context));
    TRY(cuDriverGetVersion(&version));
    free(image);
    int is_right = current == context;
    for (int i = 0; i < COUNT; i++)
        is_right &= c[i] == 2 * a[i];
    result("nvrtc", major * 1000 + minor * 10, is_right);
    result("cuda", version, is_right);
}

int main(void)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) || devices == 0)
        return puts("no device"), 3;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (i % 17) / 16.0f - 0.5f;
        b[i] = (i % 23) / 22.0f - 0.5f;
    }
    TRY(cudaMalloc((void **)&x, sizeof a));
    TRY(cudaMalloc((void **)&y, sizeof a));
    TRY(cudaMalloc((void **)&z, sizeof a));
    multiply();
    transform();
    generate();
    gather();
    solve();
    compile();
    return failures != 0;
}
