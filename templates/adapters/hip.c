/* hip.c: adapters of HIP's runtime. Calls of programs with older headers by a newer library, and the reverse.
 * Layouts of structs and copies of their common fields are in adapters_hip.h. HIP's headers of 5.2, 5.7, 6.4
 * and 7.2 were compared. An adapter NAME_by_6 serves older headers on a library of 6 or later; NAME_of_6
 * serves headers of 6 or later on an older library. */
#include "adapters.h"
#include "adapters_hip.h"

#define INVALID_VALUE 1   /* hipErrorInvalidValue */
#define OUT_OF_MEMORY 2   /* hipErrorOutOfMemory */
#define NOT_SUPPORTED 801 /* hipErrorNotSupported */

/* ---- hipGetDeviceProperties ------------------------------------------------------------------------ */

/* Field that the struct of 5.x lacks, and its hipDeviceAttribute_t, which has the same number in the headers of
 * 5.2 to 7.2. An attribute is one number, so that arrays (maxSurface2D, ...) have none; those of uuid and luid
 * would write more than an int. */
struct hip_query {
    uint16_t offset, attribute;
};
#define HIP_QUERY(field, attribute) {hipDeviceProp_t_6_0_##field, attribute}
static const struct hip_query hip_queries[] = {
    HIP_QUERY(accessPolicyMaxWindowSize, 1),
    HIP_QUERY(asyncEngineCount, 2),
    HIP_QUERY(canUseHostPointerForRegisteredMem, 4),
    HIP_QUERY(computePreemptionSupported, 7),
    HIP_QUERY(deviceOverlap, 12),
    HIP_QUERY(globalL1CacheSupported, 14),
    HIP_QUERY(hostNativeAtomicSupported, 15),
    HIP_QUERY(localL1CacheSupported, 20),
    HIP_QUERY(luidDeviceNodeMask, 22),
    HIP_QUERY(maxBlocksPerMultiProcessor, 25),
    HIP_QUERY(maxSurface1D, 32),
    HIP_QUERY(maxSurfaceCubemap, 37),
    HIP_QUERY(maxTexture1DMipmap, 42),
    HIP_QUERY(maxTextureCubemap, 53),
    HIP_QUERY(multiGpuBoardGroupID, 62),
    HIP_QUERY(persistingL2CacheMaxSize, 70),
    HIP_QUERY(regsPerMultiprocessor, 72),
    HIP_QUERY(reservedSharedMemPerBlock, 73),
    HIP_QUERY(sharedMemPerBlockOptin, 75),
    HIP_QUERY(sharedMemPerMultiprocessor, 76),
    HIP_QUERY(singleToDoublePrecisionPerfRatio, 77),
    HIP_QUERY(streamPrioritiesSupported, 78),
    HIP_QUERY(surfaceAlignment, 79),
    HIP_QUERY(unifiedAddressing, 85),
    HIP_QUERY(memoryPoolsSupported, 88),
};
enum { HIP_QUERIES = sizeof hip_queries / sizeof *hip_queries };

/* A runtime returns hipErrorInvalidValue for an attribute of its header that it does not support: the field is
 * 0. AMD's runtimes of 5.2 to 5.7 support the last of these, from 5.5 on also the one before it (hipamd,
 * hip_device_runtime.cpp). Each of their functions sets the last error of the thread, also to hipSuccess: hence
 * the order. Four bytes of each field are written; the others of a size_t are 0. */
static inline int properties_of_6(targets to, void *properties, int device)
{
    char theirs[hipDeviceProp_t_5_2_size] = {0};
    int values[HIP_QUERIES];
    int code = FUNCTION(0, (void *, int))(properties ? theirs : NULL, device);
    if (code || !properties)
        return code;
    for (size_t i = 0; i < HIP_QUERIES; i++) {
        code = FUNCTION(1, (int *, int, int))(&values[i], hip_queries[i].attribute, device);
        if (code == INVALID_VALUE)
            values[i] = 0;
        else if (code)
            return code;
    }
    memset(properties, 0, hipDeviceProp_t_6_0_size);
    copy_hipDeviceProp_t_5_2_to_6_0(properties, theirs);
    for (size_t i = 0; i < HIP_QUERIES; i++)
        put_int(properties, hip_queries[i].offset, values[i]);
    return 0;
}
ADAPTER(hipGetDevicePropertiesR0600, properties_of_6, (void *properties, int device),
        (to, properties, device), NULL, {"hipDeviceGetAttribute"})

/* A property that is 0 does not restrict the choice; the fields that 5.x lacks never did. */
static inline int choose_of_6(targets to, int *device, const void *properties)
{
    char theirs[hipDeviceProp_t_5_2_size] = {0};
    if (properties)
        copy_hipDeviceProp_t_6_0_to_5_2(theirs, properties);
    return FUNCTION(0, (int *, const void *))(device, properties ? theirs : NULL);
}
ADAPTER(hipChooseDeviceR0600, choose_of_6, (int *device, const void *properties),
        (to, device, properties), NULL)

/* ---- hipMemoryType ---------------------------------------------------------------------------------- */

enum { HOST_5, DEVICE_5, ARRAY_5, UNIFIED_5, MANAGED_5 /* since 5.3 */, TYPES_5 };
enum { UNREGISTERED_6, HOST_6, DEVICE_6, MANAGED_6, ARRAY_6 = 10, UNIFIED_6 };

static const int8_t types_6[TYPES_5] = {
    [HOST_5] = HOST_6,       [DEVICE_5] = DEVICE_6,   [ARRAY_5] = ARRAY_6,
    [UNIFIED_5] = UNIFIED_6, [MANAGED_5] = MANAGED_6,
};

/* The type of the same name in 6.0 and later; -1: none. */
static inline int type_6(int type)
{
    return type >= 0 && type < TYPES_5 ? types_6[type] : -1;
}

/* The type of the same name among the first ones of 5.x; -1: none. */
static inline int type_5(int type, int types)
{
    for (int i = 0; i < types; i++)
        if (types_6[i] == type)
            return i;
    return -1;
}

/* As type_5, for the program's headers: in 5.2, managed memory is host memory with isManaged set. */
static inline int type_for_5(int type)
{
    type = type_5(type, TYPES_5);
    return type == MANAGED_5 && HEADERS < 5030 ? HOST_5 : type;
}

/* Memory that HIP does not know is an error in 5.x, and Unregistered since 6.0. */
static inline int pointer_attributes_by_6(targets to, void *attributes, const void *pointer)
{
    char theirs[hipPointerAttribute_t_6_0_size] = {0};
    int code = FUNCTION(0, (void *, const void *))(attributes ? theirs : NULL, pointer);
    if (code || !attributes)
        return code;
    int type = get_int(theirs, hipPointerAttribute_t_6_0_type);
    if (type == UNREGISTERED_6)
        return INVALID_VALUE;
    type = type_for_5(type);
    if (type < 0)
        return NOT_SUPPORTED;
    copy_hipPointerAttribute_t_6_0_to_5_2(attributes, theirs);
    put_int(attributes, hipPointerAttribute_t_5_2_type, type);
    return 0;
}

static inline int pointer_attributes_of_6(targets to, void *attributes, const void *pointer)
{
    char theirs[hipPointerAttribute_t_5_2_size] = {0};
    int code = FUNCTION(0, (void *, const void *))(attributes ? theirs : NULL, pointer);
    if (code || !attributes)
        return code;
    int type = type_6(get_int(theirs, hipPointerAttribute_t_5_2_type));
    if (type < 0)
        return NOT_SUPPORTED;
    copy_hipPointerAttribute_t_5_2_to_6_0(attributes, theirs);
    put_int(attributes, hipPointerAttribute_t_6_0_type, type);
    return 0;
}

#define HIP_POINTER_ADAPTER(code)                                                                  \
    ADAPTER(hipPointerGetAttributes, code, (void *attributes, const void *pointer),                \
            (to, attributes, pointer), NULL)
HIP_POINTER_ADAPTER(pointer_attributes_by_6)
HIP_POINTER_ADAPTER(pointer_attributes_of_6)

/* hipPointer_attribute: the one with a memory type. */
enum { POINTER_MEMORY_TYPE = 2 };

static inline int pointer_type_by_6(targets to, void *data, int attribute, void *pointer)
{
    int type = 0;
    if (attribute != POINTER_MEMORY_TYPE || !data)
        return FUNCTION(0, (void *, int, void *))(data, attribute, pointer);
    int code = FUNCTION(0, (int *, int, void *))(&type, attribute, pointer);
    if (!code && type == UNREGISTERED_6)
        return INVALID_VALUE;
    type = type_for_5(type);
    if (code || type < 0)
        return code ? code : NOT_SUPPORTED;
    put_int(data, 0, type);
    return 0;
}

static inline int pointer_type_of_6(targets to, void *data, int attribute, void *pointer)
{
    int type = 0;
    if (attribute != POINTER_MEMORY_TYPE || !data)
        return FUNCTION(0, (void *, int, void *))(data, attribute, pointer);
    int code = FUNCTION(0, (int *, int, void *))(&type, attribute, pointer);
    type = type_6(type);
    if (code || type < 0)
        return code ? code : NOT_SUPPORTED;
    put_int(data, 0, type);
    return 0;
}

#define HIP_POINTER_TYPE_ADAPTER(code)                                                             \
    ADAPTER(hipPointerGetAttribute, code, (void *data, int attribute, void *pointer),              \
            (to, data, attribute, pointer), NULL)
HIP_POINTER_TYPE_ADAPTER(pointer_type_by_6)
HIP_POINTER_TYPE_ADAPTER(pointer_type_of_6)

/* This function succeeds for any pointer, and returns 0 for what it does not know: Host in 5.x, so that the
 * other function has to say whether it knows the pointer. */
static inline int pointer_types_by_6(targets to, unsigned count, const int *attributes,
                                     void **data, void *pointer)
{
    int code = FUNCTION(0, (unsigned, const int *, void **, void *))(count, attributes, data, pointer);
    for (unsigned i = 0; i < count && !code; i++)
        if (attributes[i] == POINTER_MEMORY_TYPE) {
            int type = type_for_5(get_int(data[i], 0));
            put_int(data[i], 0, type < 0 ? 0 : type);
        }
    return code;
}

static inline int pointer_types_of_6(targets to, unsigned count, const int *attributes,
                                     void **data, void *pointer)
{
    int code = FUNCTION(0, (unsigned, const int *, void **, void *))(count, attributes, data, pointer);
    for (unsigned i = 0; i < count && !code; i++)
        if (attributes[i] == POINTER_MEMORY_TYPE) {
            int type = 0;
            int unknown = FUNCTION(1, (int *, int, void *))(&type, attributes[i], pointer);
            type = type_6(type);
            put_int(data[i], 0, unknown || type < 0 ? UNREGISTERED_6 : type);
        }
    return code;
}

#define HIP_POINTER_TYPES_ADAPTER(code, ...)                                                       \
    ADAPTER(hipDrvPointerGetAttributes, code,                                                      \
            (unsigned count, const int *attributes, void **data, void *pointer),                   \
            (to, count, attributes, data, pointer), NULL, __VA_ARGS__)
HIP_POINTER_TYPES_ADAPTER(pointer_types_by_6, )
HIP_POINTER_TYPES_ADAPTER(pointer_types_of_6, {"hipPointerGetAttribute"})

/* ---- copies in two and three dimensions ------------------------------------------------------------- */

/* Converters of a struct: whether the library can express the copy. `types` is the number of memory types of
 * a library of 5.x. */
static inline int convert_2d_by_6(void *theirs, const void *copy, int types)
{
    (void)types;
    int source = type_6(get_int(copy, hip_Memcpy2D_5_2_srcMemoryType));
    int target = type_6(get_int(copy, hip_Memcpy2D_5_2_dstMemoryType));
    copy_hip_Memcpy2D_5_2_to_6_0(theirs, copy);
    put_int(theirs, hip_Memcpy2D_6_0_srcMemoryType, source);
    put_int(theirs, hip_Memcpy2D_6_0_dstMemoryType, target);
    return source >= 0 && target >= 0;
}

static inline int convert_2d_of_6(void *theirs, const void *copy, int types)
{
    int source = type_5(get_int(copy, hip_Memcpy2D_6_0_srcMemoryType), types);
    int target = type_5(get_int(copy, hip_Memcpy2D_6_0_dstMemoryType), types);
    copy_hip_Memcpy2D_6_0_to_5_2(theirs, copy);
    put_int(theirs, hip_Memcpy2D_5_2_srcMemoryType, source);
    put_int(theirs, hip_Memcpy2D_5_2_dstMemoryType, target);
    return source >= 0 && target >= 0;
}

/* Extents of HIP_MEMCPY3D: unsigned int in 5.x, size_t since 6.0. */
#define EXTENT(field) {HIP_MEMCPY3D_5_2_##field, HIP_MEMCPY3D_6_0_##field}
static const struct {
    uint8_t at_5, at_6;
} extents[] = {
    EXTENT(srcXInBytes), EXTENT(srcY),        EXTENT(srcZ),         EXTENT(srcLOD), EXTENT(srcPitch),
    EXTENT(srcHeight),   EXTENT(dstXInBytes), EXTENT(dstY),         EXTENT(dstZ),   EXTENT(dstLOD),
    EXTENT(dstPitch),    EXTENT(dstHeight),   EXTENT(WidthInBytes), EXTENT(Height), EXTENT(Depth),
};
enum { EXTENTS = sizeof extents / sizeof *extents };

static inline int convert_3d_by_6(void *theirs, const void *copy, int types)
{
    (void)types;
    int source = type_6(get_int(copy, HIP_MEMCPY3D_5_2_srcMemoryType));
    int target = type_6(get_int(copy, HIP_MEMCPY3D_5_2_dstMemoryType));
    copy_HIP_MEMCPY3D_5_2_to_6_0(theirs, copy);
    for (size_t i = 0; i < EXTENTS; i++) {
        size_t extent = (unsigned)get_int(copy, extents[i].at_5);
        memcpy((char *)theirs + extents[i].at_6, &extent, sizeof extent);
    }
    put_int(theirs, HIP_MEMCPY3D_6_0_srcMemoryType, source);
    put_int(theirs, HIP_MEMCPY3D_6_0_dstMemoryType, target);
    return source >= 0 && target >= 0;
}

static inline int convert_3d_of_6(void *theirs, const void *copy, int types)
{
    int source = type_5(get_int(copy, HIP_MEMCPY3D_6_0_srcMemoryType), types);
    int target = type_5(get_int(copy, HIP_MEMCPY3D_6_0_dstMemoryType), types);
    copy_HIP_MEMCPY3D_6_0_to_5_2(theirs, copy);
    for (size_t i = 0; i < EXTENTS; i++) {
        size_t extent;
        memcpy(&extent, (const char *)copy + extents[i].at_6, sizeof extent);
        if (extent > UINT32_MAX)
            return 0;
        put_int(theirs, extents[i].at_5, (int)(unsigned)extent);
    }
    put_int(theirs, HIP_MEMCPY3D_5_2_srcMemoryType, source);
    put_int(theirs, HIP_MEMCPY3D_5_2_dstMemoryType, target);
    return source >= 0 && target >= 0;
}

#define COPIES(code, convert, size, types)                                                         \
    static inline int code(targets to, const void *copy)                                           \
    {                                                                                              \
        char theirs[size] = {0};                                                                   \
        if (copy && !convert(theirs, copy, types))                                                 \
            return NOT_SUPPORTED;                                                                  \
        return FUNCTION(0, (const void *))(copy ? theirs : NULL);                                  \
    }                                                                                              \
    static inline int code##_async(targets to, const void *copy, void *stream)                     \
    {                                                                                              \
        char theirs[size] = {0};                                                                   \
        if (copy && !convert(theirs, copy, types))                                                 \
            return NOT_SUPPORTED;                                                                  \
        return FUNCTION(0, (const void *, void *))(copy ? theirs : NULL, stream);                  \
    }
COPIES(copy_2d_by_6, convert_2d_by_6, hip_Memcpy2D_6_0_size, 0)
COPIES(copy_2d_of_6, convert_2d_of_6, hip_Memcpy2D_5_2_size, TYPES_5)
COPIES(copy_2d_of_6_by_5_2, convert_2d_of_6, hip_Memcpy2D_5_2_size, MANAGED_5)
COPIES(copy_3d_by_6, convert_3d_by_6, HIP_MEMCPY3D_6_0_size, 0)
COPIES(copy_3d_of_6, convert_3d_of_6, HIP_MEMCPY3D_5_2_size, TYPES_5)
COPIES(copy_3d_of_6_by_5_2, convert_3d_of_6, HIP_MEMCPY3D_5_2_size, MANAGED_5)

#define REGISTERED     "copies of registered memory"
#define NOT_MANAGED    "copies of registered memory that is not managed"
#define REGISTERED_3D  "copies of registered memory with extents below 2^32"
#define NOT_MANAGED_3D "copies of registered memory that is not managed, with extents below 2^32"
#define COPY_ADAPTER(function, code, limit)                                                        \
    ADAPTER(function, code, (const void *copy), (to, copy), limit)
#define COPY_ASYNC_ADAPTER(function, code, limit)                                                  \
    ADAPTER(function, code, (const void *copy, void *stream), (to, copy, stream), limit)
COPY_ADAPTER(hipMemcpyParam2D, copy_2d_by_6, NULL)
COPY_ADAPTER(hipMemcpyParam2D, copy_2d_of_6, REGISTERED)
COPY_ADAPTER(hipMemcpyParam2D, copy_2d_of_6_by_5_2, NOT_MANAGED)
COPY_ASYNC_ADAPTER(hipMemcpyParam2DAsync, copy_2d_by_6_async, NULL)
COPY_ASYNC_ADAPTER(hipMemcpyParam2DAsync, copy_2d_of_6_async, REGISTERED)
COPY_ASYNC_ADAPTER(hipMemcpyParam2DAsync, copy_2d_of_6_by_5_2_async, NOT_MANAGED)
COPY_ADAPTER(hipDrvMemcpy2DUnaligned, copy_2d_by_6, NULL)
COPY_ADAPTER(hipDrvMemcpy2DUnaligned, copy_2d_of_6, REGISTERED)
COPY_ADAPTER(hipDrvMemcpy2DUnaligned, copy_2d_of_6_by_5_2, NOT_MANAGED)
COPY_ADAPTER(hipDrvMemcpy3D, copy_3d_by_6, NULL)
COPY_ADAPTER(hipDrvMemcpy3D, copy_3d_of_6, REGISTERED_3D)
COPY_ADAPTER(hipDrvMemcpy3D, copy_3d_of_6_by_5_2, NOT_MANAGED_3D)
COPY_ASYNC_ADAPTER(hipDrvMemcpy3DAsync, copy_3d_by_6_async, NULL)
COPY_ASYNC_ADAPTER(hipDrvMemcpy3DAsync, copy_3d_of_6_async, REGISTERED_3D)
COPY_ASYNC_ADAPTER(hipDrvMemcpy3DAsync, copy_3d_of_6_by_5_2_async, NOT_MANAGED_3D)

#include "adapters_hip_objects.c"
