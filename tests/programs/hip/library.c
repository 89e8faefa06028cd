/* library.c: a fake libamdhip64 of one version. Each function prints its arguments by name. */
#include "names.h"

#if SINCE(6, 0)
#include <hip/hip_deprecated.h>
#endif

#define PRINT(type, FIELDS, pointer)                                                               \
    do {                                                                                           \
        const type *s = (pointer);                                                                 \
        FIELDS(SHOW)                                                                               \
    } while (0)

static hipError_t arrived(void)
{
    printf("\n");
    return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *version)
{
    *version = HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000;
    return hipSuccess;
}

/* The result of the last call, as in ROCm 5. */
static hipError_t last;

hipError_t hipPeekAtLastError(void)
{
    return last;
}

/* Device 7 supports one attribute, device 8 is lost, device 9 does not exist. */
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
    last = hipSuccess;
    *value = 1000 + (int)attribute;
    if (device == 8)
        last = hipErrorNoDevice;
    else if (device == 7 && attribute != hipDeviceAttributeMemoryPoolsSupported)
        last = hipErrorInvalidValue;
    return last;
}

#define FILL_PROPERTIES(type)                                                                      \
    type *s = properties;                                                                          \
    int number = 0;                                                                                \
    if (device == 9)                                                                               \
        return hipErrorInvalidDevice;                                                              \
    if (!properties)                                                                               \
        return hipErrorInvalidValue;                                                               \
    memset(s, 0, sizeof *s);                                                                       \
    strcpy(s->name, "a name");                                                                     \
    strcpy(s->gcnArchName, "an architecture");                                                     \
    s->arch.hasGlobalInt32Atomics = 1;                                                             \
    s->arch.hasDynamicParallelism = 1;                                                             \
    PROPERTIES(FILL)

#if SINCE(6, 0)
#undef hipGetDeviceProperties
hipError_t hipGetDeviceProperties(void *properties, int device)
{
    FILL_PROPERTIES(hipDeviceProp_tR0000)
    return hipSuccess;
}
#define hipGetDeviceProperties hipGetDevicePropertiesR0600
#endif
hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device)
{
    FILL_PROPERTIES(hipDeviceProp_t)
#if SINCE(6, 0)
#define FILL_NEW(field, attribute) s->field = 1000 + (int)hipDeviceAttribute##attribute;
    NEW_PROPERTIES(FILL_NEW)
#endif
    return hipSuccess;
}

#define CHOOSE                                                                                     \
    printf("choose");                                                                              \
    if (properties) {                                                                              \
        printf(" %s %s %d %d", s->name, s->gcnArchName, s->arch.hasGlobalInt32Atomics,             \
               s->arch.hasDynamicParallelism);                                                     \
        PROPERTIES(SHOW)                                                                           \
    }                                                                                              \
    printf("\n");                                                                                  \
    if (!properties)                                                                               \
        return hipErrorInvalidValue;                                                               \
    *device = 5;                                                                                   \
    return hipSuccess;

#if SINCE(6, 0)
#undef hipChooseDevice
hipError_t hipChooseDevice(int *device, const void *properties)
{
    const hipDeviceProp_tR0000 *s = properties;
    CHOOSE
}
#define hipChooseDevice hipChooseDeviceR0600
#endif
hipError_t hipChooseDevice(int *device, const hipDeviceProp_t *properties)
{
    const hipDeviceProp_t *s = properties;
    CHOOSE
}

/* The pointer is the name of a type. As in ROCm, a failure writes a part of the result. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer)
{
    int type = number_of(memory_types, pointer);
    printf("hipPointerGetAttributes %s\n", attributes ? (const char *)pointer : "NULL");
    if (!attributes)
        return hipErrorInvalidValue;
    memset(attributes, 0, sizeof *attributes);
    if (!strcmp(pointer, "lost")) {
        attributes->device = 10;
        type = hipMemoryTypeDevice;
    }
    if (type == -2)
        return hipErrorInvalidValue;
    memcpy(attributes, &type, sizeof type);
    if (attributes->device)
        return hipErrorMemoryAllocation;
    attributes->device = 11;
    attributes->devicePointer = (void *)12;
    attributes->hostPointer = (void *)13;
    attributes->isManaged = 14;
    attributes->allocationFlags = 15;
    return hipSuccess;
}

/* As in ROCm, the type of unknown memory is 0, and only the first function reports it. */
static hipError_t queried(void *data, hipPointer_attribute attribute, hipDeviceptr_t pointer)
{
    int type = number_of(memory_types, pointer);
    if (attribute == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE)
        memcpy(data, &(int){type < 0 ? 0 : type}, sizeof type);
    else
        memcpy(data, &(void *){(void *)12}, sizeof(void *));
    return type < 0 ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t pointer)
{
    printf("hipPointerGetAttribute %d %s\n", attribute, data ? (const char *)pointer : "NULL");
    return data ? queried(data, attribute, pointer) : hipErrorInvalidValue;
}

hipError_t hipDrvPointerGetAttributes(unsigned int count, hipPointer_attribute *attributes,
                                      void **data, hipDeviceptr_t pointer)
{
    printf("hipDrvPointerGetAttributes %u %s\n", count, data ? (const char *)pointer : "NULL");
    if (!data)
        return hipErrorInvalidValue;
    for (unsigned i = 0; i < count; i++)
        queried(data[i], attributes[i], pointer);
    return hipSuccess;
}

static hipError_t copied_2d(const char *name, const hip_Memcpy2D *copy, const void *stream)
{
    printf("%s %d", name, (int)(uintptr_t)stream);
    if (copy) {
        printf(" %s to %s", name_of(memory_types, copy->srcMemoryType),
               name_of(memory_types, copy->dstMemoryType));
        PRINT(hip_Memcpy2D, COPY_2D, copy);
    }
    printf("\n");
    return copy ? hipSuccess : hipErrorInvalidValue;
}
hipError_t hipMemcpyParam2D(const hip_Memcpy2D *copy)
{
    return copied_2d(__func__, copy, NULL);
}
hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D *copy, hipStream_t stream)
{
    return copied_2d(__func__, copy, stream);
}
hipError_t hipDrvMemcpy2DUnaligned(const hip_Memcpy2D *copy)
{
    return copied_2d(__func__, copy, NULL);
}

static hipError_t copied_3d(const char *name, const HIP_MEMCPY3D *copy, const void *stream)
{
    printf("%s %d", name, (int)(uintptr_t)stream);
    if (copy) {
        printf(" %s to %s", name_of(memory_types, copy->srcMemoryType),
               name_of(memory_types, copy->dstMemoryType));
        PRINT(HIP_MEMCPY3D, COPY_3D, copy);
    }
    printf("\n");
    return copy ? hipSuccess : hipErrorInvalidValue;
}
hipError_t hipDrvMemcpy3D(const HIP_MEMCPY3D *copy)
{
    return copied_3d(__func__, copy, NULL);
}
hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D *copy, hipStream_t stream)
{
    return copied_3d(__func__, copy, stream);
}

/* Whether the reserved bytes at the end of a newer struct are zero. */
#if SINCE(6, 0)
#define RESERVED(s)                                                                                \
    for (size_t i = 0; i < sizeof(s)->reserved / sizeof *(s)->reserved; i++)                       \
        if ((s)->reserved[i])                                                                      \
            printf(" reserved[%zu]", i);
#else
#define RESERVED(s)
#endif

#define DESCRIBED(type, FIELDS)                                                                    \
    printf("%s", __func__);                                                                        \
    if (!description)                                                                              \
        return printf(" NULL\n"), hipErrorInvalidValue;                                            \
    PRINT(type, FIELDS, description);                                                              \
    RESERVED(description)                                                                          \
    memset(out, 7, sizeof *out);                                                                   \
    return arrived();

hipError_t hipImportExternalMemory(hipExternalMemory_t *out,
                                   const hipExternalMemoryHandleDesc *description)
{
    DESCRIBED(hipExternalMemoryHandleDesc, MEMORY)
}
hipError_t hipImportExternalSemaphore(hipExternalSemaphore_t *out,
                                      const hipExternalSemaphoreHandleDesc *description)
{
    DESCRIBED(hipExternalSemaphoreHandleDesc, SEMAPHORE)
}
hipError_t hipExternalMemoryGetMappedBuffer(void **out, hipExternalMemory_t memory,
                                            const hipExternalMemoryBufferDesc *description)
{
    printf("memory %d ", (int)(uintptr_t)memory);
    DESCRIBED(hipExternalMemoryBufferDesc, BUFFER)
}

#define SEMAPHORES(type, FIELDS)                                                                   \
    printf("%s %d %u %d:", __func__, (int)(uintptr_t)*semaphores, count, (int)(uintptr_t)stream);  \
    if (!parameters)                                                                               \
        return printf(" NULL\n"), hipErrorInvalidValue;                                            \
    for (unsigned i = 0; i < count; i++)                                                           \
        PRINT(type, FIELDS, parameters + i);                                                       \
    return arrived();
hipError_t hipSignalExternalSemaphoresAsync(const hipExternalSemaphore_t *semaphores,
                                            const hipExternalSemaphoreSignalParams *parameters,
                                            unsigned count, hipStream_t stream)
{
    SEMAPHORES(hipExternalSemaphoreSignalParams, SIGNAL)
}
hipError_t hipWaitExternalSemaphoresAsync(const hipExternalSemaphore_t *semaphores,
                                          const hipExternalSemaphoreWaitParams *parameters,
                                          unsigned count, hipStream_t stream)
{
    SEMAPHORES(hipExternalSemaphoreWaitParams, WAIT)
}

static void print_allocation(const hipMemAllocationProp *properties)
{
    PRINT(hipMemAllocationProp, ALLOCATION, properties);
#if SINCE(5, 3)
    printf(" compressionType=%d usage=%d", properties->allocFlags.compressionType,
           properties->allocFlags.usage);
#else
    printf(" compressionType=%d usage=%d", properties->compressionType, properties->usage);
#endif
}
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size,
                        const hipMemAllocationProp *properties, unsigned long long flags)
{
    printf("%s %zu %llu", __func__, size, flags);
    if (!properties)
        return printf(" NULL\n"), hipErrorInvalidValue;
    print_allocation(properties);
    *handle = (hipMemGenericAllocationHandle_t)21;
    return arrived();
}
hipError_t hipMemGetAllocationGranularity(size_t *granularity,
                                          const hipMemAllocationProp *properties,
                                          hipMemAllocationGranularity_flags option)
{
    printf("%s %d", __func__, option);
    if (!properties)
        return printf(" NULL\n"), hipErrorInvalidValue;
    print_allocation(properties);
    *granularity = 22;
    return arrived();
}
hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *s,
                                                   hipMemGenericAllocationHandle_t handle)
{
    int number = 0;
    printf("%s %d\n", __func__, (int)(uintptr_t)handle);
    if (!s || !handle)
        return hipErrorInvalidValue;
    memset(s, 0, sizeof *s);
    ALLOCATION(FILL) ALLOCATION_FLAGS(FILL)
    return hipSuccess;
}

/* The node is the name of a type. */
hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *type)
{
    int number = number_of(node_types, (const char *)node);
    if (!type || number == -2)
        return hipErrorInvalidValue;
    memcpy(type, &number, sizeof number);
    return hipSuccess;
}

#if SINCE(5, 3)
hipError_t hipGraphKernelNodeGetAttribute(hipGraphNode_t node, hipKernelNodeAttrID attribute,
                                          hipKernelNodeAttrValue *value)
{
    printf("%s %d %d\n", __func__, (int)(uintptr_t)node, attribute);
    if (!value)
        return hipErrorInvalidValue;
    if (attribute == 2)
        value->cooperative = 31;
    else if (attribute != 1)
        return value->cooperative = 34, hipErrorInvalidValue;
    else
        value->accessPolicyWindow = (hipAccessPolicyWindow){.base_ptr = (void *)32, .num_bytes = 33};
    return hipSuccess;
}
hipError_t hipGraphKernelNodeSetAttribute(hipGraphNode_t node, hipKernelNodeAttrID attribute,
                                          const hipKernelNodeAttrValue *value)
{
    printf("%s %d %d", __func__, (int)(uintptr_t)node, attribute);
    if (!value)
        return printf(" NULL\n"), hipErrorInvalidValue;
    printf(" %d %d", (int)(uintptr_t)value->accessPolicyWindow.base_ptr,
           (int)value->accessPolicyWindow.num_bytes);
#if SINCE(7, 0)
    for (size_t i = sizeof value->accessPolicyWindow; i < sizeof *value; i++)
        if (value->pad[i])
            printf(" pad[%zu]", i);
#endif
    return arrived();
}
#endif

#if SINCE(6, 0)
hipError_t hipDrvGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                    const hipGraphNode_t *dependencies, size_t count,
                                    const memset_params *parameters, hipCtx_t context)
{
    printf("%s %d %d %zu %d", __func__, (int)(uintptr_t)graph, (int)(uintptr_t)*dependencies, count,
           (int)(uintptr_t)context);
    if (!parameters)
        return printf(" NULL\n"), hipErrorInvalidValue;
    PRINT(memset_params, MEMSET, parameters);
    *node = (hipGraphNode_t)41;
    return arrived();
}
hipError_t hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t graph, hipGraphNode_t node,
                                              const memset_params *parameters, hipCtx_t context)
{
    printf("%s %d %d %d", __func__, (int)(uintptr_t)graph, (int)(uintptr_t)node,
           (int)(uintptr_t)context);
    if (!parameters)
        return printf(" NULL\n"), hipErrorInvalidValue;
    PRINT(memset_params, MEMSET, parameters);
    return arrived();
}
hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status)
{
    (void)version, (void)flags, (void)status;
    printf("hipGetProcAddress %s\n", symbol);
    *function = NULL;
    return hipSuccess;
}
#endif
