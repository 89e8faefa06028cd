/* Fake CUDA runtime with one device, compiled with the real headers of its version.
 *
 * fields.inc, generated from the same headers, has a FIELD(name) for each field of cudaDeviceProp, or
 * ATTRIBUTE_FIELD(name, attribute) if an attribute of the device has its value; attributes.inc has an
 * ATTRIBUTE(number, driver) for each of these with the first driver that knows it.
 *
 * FAKE_DRIVER   version of the driver
 * FAKE_FAIL     query that fails: number of an attribute; 0: the properties */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAILURE cudaErrorDevicesUnavailable

static cudaError_t last;

static cudaError_t result(cudaError_t code)
{
    if (code)
        last = code;
    return code;
}

/* `query`: number of an attribute; 0: the properties. */
static int fails(int query)
{
    const char *failing = getenv("FAKE_FAIL");
    return failing && atoi(failing) == query;
}

static int driver(void)
{
    return atoi(getenv("FAKE_DRIVER"));
}

/* A value that depends on the name only, whatever the offset. */
static void fill(void *field, size_t size, const char *name)
{
    uint32_t state = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        state = (state ^ (unsigned char)*name) * 16777619u;
    for (unsigned char *byte = field; size--; byte++) {
        state = state * 1664525u + 1013904223u;
        *byte = (unsigned char)(state >> 24);
    }
}

static cudaError_t properties(void *to, size_t size)
{
    struct cudaDeviceProp all;
    if (fails(0))
        return result(FAILURE);
    if (!to)
        return result(cudaErrorInvalidValue);
#define FIELD(name)                                                                                \
    if (offsetof(struct cudaDeviceProp, name) < size) {                                            \
        fill(&all.name, sizeof all.name, #name);                                                   \
        memcpy((char *)to + offsetof(struct cudaDeviceProp, name), &all.name, sizeof all.name);    \
    }
#define ATTRIBUTE_FIELD(name, attribute)                                                           \
    if (offsetof(struct cudaDeviceProp, name) < size) {                                            \
        all.name = 1000 + attribute;                                                               \
        memcpy((char *)to + offsetof(struct cudaDeviceProp, name), &all.name, sizeof all.name);    \
    }
#define RESERVED(name)
#include "fields.inc"
    return result(cudaSuccess);
}

/* In 12 this is cudaGetDeviceProperties_v2. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *to, int device)
{
    (void)device;
    return properties(to, sizeof *to);
}

#ifdef cudaGetDeviceProperties
#undef cudaGetDeviceProperties
/* The struct of 11 is the beginning of that of 12. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *to, int device)
{
    (void)device;
    return properties(to, offsetof(struct cudaDeviceProp, hostRegisterSupported));
}
#endif

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    if (fails((int)attribute))
        return result(FAILURE);
#define ATTRIBUTE(attribute_number, first_driver)                                                  \
    if ((int)attribute == attribute_number && driver() < first_driver)                             \
        return result(cudaErrorInvalidValue);
#include "attributes.inc"
    *value = 1000 + (int)attribute;
    return result(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = driver();
    return result(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return result(cudaSuccess);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last;
    last = cudaSuccess;
    return code;
}
