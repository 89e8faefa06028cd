/* libcuda.so.1, as far as the loader calls it: see fake-gpu.h. */
#define FAKE_IMAGE "FAKE_CUDA_IMAGE"
#include "fake-gpu.h"

int cuDriverGetVersion(int *version)
{
    *version = variable("FAKE_VERSION", 12040);
    record("cuDriverGetVersion");
    return OK;
}

int cuInit(unsigned flags)
{
    const char *loading = getenv("CUDA_MODULE_LOADING");
    record("cuInit flags=%u CUDA_MODULE_LOADING=%s", flags, loading ? loading : "");
    return variable("FAKE_STATUS_OF_INIT", OK);
}

int cuDeviceGetCount(int *count)
{
    record("cuDeviceGetCount");
    *count = variable("FAKE_DEVICES", 1);
    return OK;
}

int cuDeviceGet(int *device, int ordinal)
{
    record("cuDeviceGet %d", ordinal);
    *device = ordinal;
    return OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    record("cuDeviceGetAttribute %d device=%d", attribute, device);
    /* CU_DEVICE_ATTRIBUTE_WARP_SIZE. */
    *value = attribute == 10 ? variable("FAKE_LANES", 1) : attribute == 115 ? variable("FAKE_POOLS", 1) : 0;
    /* Multiprocessors, and threads of each. */
    if (attribute == 16 || attribute == 39)
        *value = variable(attribute == 16 ? "FAKE_PROCESSORS" : "FAKE_THREADS", 0);
    return OK;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    record("cuDevicePrimaryCtxRetain device=%d", device);
    *context = &created;
    return OK;
}

int cuCtxSetCurrent(void *context)
{
    record("cuCtxSetCurrent");
    return context == &created ? OK : INVALID_VALUE;
}

int cuCtxGetLimit(size_t *value, int limit)
{
    record("cuCtxGetLimit %d", limit);
    *value = 1024;
    return OK;
}

int cuCtxSetLimit(int limit, size_t value)
{
    record("cuCtxSetLimit %d %zu", limit, value);
    return OK;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    *stream = new_stream();
    record("cuStreamCreate stream=%d flags=%u", number(*stream), flags);
    return *stream ? OK : OUT_OF_MEMORY;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
    record("cuModuleLoadDataEx");
    *module = load(image);
    if (!*module && count == 2 && options[0] == 5 && options[1] == 6)
        snprintf(values[0], (size_t)values[1], "fake : line 1; no image of a shared library\n");
    return *module ? OK : INVALID_IMAGE;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    record("cuModuleGetFunction %s", name);
    return kernel(module, name, function);
}

#ifndef BEFORE_12_4
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size)
{
    struct kernel *kernel = function;
    record("cuFuncGetParamInfo %s", kernel->name);
    *offset = *size = 8 * index;
    return index < (size_t)kernel->parameters ? OK : INVALID_VALUE;
}

int cuFuncLoad(void *function)
{
    record("cuFuncLoad %s", ((struct kernel *)function)->name);
    return OK;
}
#endif

int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name)
{
    record("cuModuleGetGlobal %s", name);
    return global(module, name, (void **)address, size);
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    record("cuMemHostAlloc size=%zu flags=%u", size, flags);
    *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    /* A driver promises nothing about its contents. */
    memset(*memory, 0xa5, size);
    return OK;
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags)
{
    record("cuMemHostGetDevicePointer flags=%u", flags);
    *address = (uintptr_t)memory;
    return OK;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    record("cuMemAlloc size=%zu", size);
    *address = (uintptr_t)malloc(size);
    return OK;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    record("cuMemcpyHtoD size=%zu", size);
    memcpy((void *)(uintptr_t)to, from, size);
    return OK;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    record("cuMemcpyDtoH size=%zu", size);
    memcpy(to, (void *)(uintptr_t)from, size);
    return OK;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream, void **values, void **extra)
{
    struct kernel *kernel = function;
    record("cuLaunchKernel %s stream=%d grid=%u,%u,%u block=%u,%u,%u shared=%u", kernel->name, number(stream), grid_x,
           grid_y, grid_z, block_x, block_y, block_z, shared);
    return extra ? INVALID_VALUE : start(kernel, grid_x * grid_y * grid_z, block_x * block_y * block_z, stream, values);
}

int cuStreamQuery(void *stream)
{
    record("cuStreamQuery stream=%d", number(stream));
    int status = variable("FAKE_STATUS_OF_KERNELS", OK);
    /* Kernels use the first stream. Their failure is known before the results of their requests. */
    if (status != OK && number(stream) == 1) {
        wait_for(stream);
        return status;
    }
    return ask(stream) ? OK : NOT_READY;
}

int cuMemAllocAsync(uint64_t *address, size_t size, void *stream)
{
    record("cuMemAllocAsync size=%zu stream=%d", size, number(stream));
    if (size == 0)
        return INVALID_VALUE;
    *address = (uintptr_t)(size > 1 << 20 ? NULL : allocate(size, stream));
    return *address ? OK : OUT_OF_MEMORY;
}

int cuMemFreeAsync(uint64_t address, void *stream)
{
    record("cuMemFreeAsync stream=%d", number(stream));
    free((void *)(uintptr_t)address);
    return OK;
}

int cuGetErrorName(int error, const char **name)
{
    *name = error == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
    return *name ? OK : INVALID_VALUE;
}
