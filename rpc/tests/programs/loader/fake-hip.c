/* libamdhip64.so.6, as far as the loader calls it: see fake-gpu.h. */
#define FAKE_IMAGE "FAKE_HIP_IMAGE"
#include "fake-gpu.h"

int hipRuntimeGetVersion(int *version)
{
    *version = variable("FAKE_VERSION", 60443482);
    record("hipRuntimeGetVersion");
    return OK;
}

int hipInit(unsigned flags)
{
    record("hipInit flags=%u", flags);
    return variable("FAKE_STATUS_OF_INIT", OK);
}

int hipGetDeviceCount(int *count)
{
    record("hipGetDeviceCount");
    *count = variable("FAKE_DEVICES", 1);
    return *count ? OK : 100;
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    record("hipDeviceGetAttribute %d device=%d", attribute, device);
    *value = attribute == 87 ? variable("FAKE_LANES", 1) : attribute == 88 ? variable("FAKE_POOLS", 1) : 0;
    /* Multiprocessors, and threads of each. */
    if (attribute == 63 || attribute == 57)
        *value = variable(attribute == 63 ? "FAKE_PROCESSORS" : "FAKE_THREADS", 0);
    return OK;
}

int hipSetDevice(int device)
{
    record("hipSetDevice %d", device);
    return OK;
}

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    *stream = new_stream();
    record("hipStreamCreateWithFlags stream=%d flags=%u", number(*stream), flags);
    return *stream ? OK : OUT_OF_MEMORY;
}

int hipModuleLoadData(void **module, const void *image)
{
    record("hipModuleLoadData");
    *module = load(image);
    return *module ? OK : INVALID_IMAGE;
}

int hipModuleGetFunction(void **function, void *module, const char *name)
{
    record("hipModuleGetFunction %s", name);
    return kernel(module, name, function);
}

int hipModuleGetGlobal(void **address, size_t *size, void *module, const char *name)
{
    record("hipModuleGetGlobal %s", name);
    return global(module, name, address, size);
}

int hipHostMalloc(void **memory, size_t size, unsigned flags)
{
    record("hipHostMalloc size=%zu flags=%#x", size, flags);
    *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(*memory, 0xa5, size);
    return OK;
}

int hipHostGetDevicePointer(void **address, void *memory, unsigned flags)
{
    record("hipHostGetDevicePointer flags=%u", flags);
    *address = memory;
    return OK;
}

int hipMalloc(void **address, size_t size)
{
    record("hipMalloc size=%zu", size);
    *address = malloc(size);
    return OK;
}

int hipMemcpyHtoD(void *to, const void *from, size_t size)
{
    record("hipMemcpyHtoD size=%zu", size);
    memcpy(to, from, size);
    return OK;
}

int hipMemcpyDtoH(void *to, void *from, size_t size)
{
    record("hipMemcpyDtoH size=%zu", size);
    memcpy(to, from, size);
    return OK;
}

int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **values, void **extra)
{
    struct kernel *kernel = function;
    record("hipModuleLaunchKernel %s stream=%d grid=%u,%u,%u block=%u,%u,%u shared=%u", kernel->name, number(stream),
           grid_x, grid_y, grid_z, block_x, block_y, block_z, shared);
    return extra ? INVALID_VALUE : start(kernel, grid_x * grid_y * grid_z, block_x * block_y * block_z, stream, values);
}

int hipStreamQuery(void *stream)
{
    record("hipStreamQuery stream=%d", number(stream));
    return ask(stream) ? OK : NOT_READY;
}

int hipMallocAsync(void **address, size_t size, void *stream)
{
    record("hipMallocAsync size=%zu stream=%d", size, number(stream));
    if (size == 0)
        return INVALID_VALUE;
    *address = size > 1 << 20 ? NULL : allocate(size, stream);
    return *address ? OK : OUT_OF_MEMORY;
}

int hipFreeAsync(void *address, void *stream)
{
    record("hipFreeAsync stream=%d", number(stream));
    free(address);
    return OK;
}

const char *hipGetErrorName(int error)
{
    return error == INVALID_IMAGE ? "hipErrorInvalidImage" : error == 700 ? "hipErrorIllegalAddress" : "hipErrorUnknown";
}
