/* cudart.c: adapters of the CUDA runtime. Calls of programs with older headers by a newer library, and the
 * reverse. Layouts of structs and copies of their common fields are in adapters_cudart.h; the numbers of
 * attributes are those with which the runtimes themselves fill their structs. */
#include "adapters_common.h"
#include "adapters_cudart.h"

/* ---- cudaGetDeviceProperties --------------------------------------------------------------------- */

/* Field that the library's struct lacks. */
struct query {
    uint16_t offset;    /* in the program's struct */
    uint16_t attribute; /* argument of cudaDeviceGetAttribute */
    int32_t driver;     /* first driver that knows the attribute; 0: all */
    int32_t otherwise;  /* value with an older driver */
};

#define OLD_FIELDS(layout)                                                                         \
    {layout##_clockRate, 13, 0, 0}, {layout##_deviceOverlap, 15, 0, 0},                            \
        {layout##_kernelExecTimeoutEnabled, 17, 0, 0}, {layout##_computeMode, 20, 0, 0},           \
        {layout##_maxTexture1DLinear, 69, 0, 0}, {layout##_memoryClockRate, 36, 0, 0},             \
        {layout##_singleToDoublePrecisionPerfRatio, 87, 0, 0},                                     \
    {                                                                                              \
        layout##_cooperativeMultiDeviceLaunch, 96, 0, 0                                            \
    }

#define FIELDS_OF_12(layout)                                                                       \
    {layout##_hostRegisterSupported, 99, 11070, 0}, {layout##_sparseCudaArraySupported, 112, 11070, 0}, \
        {layout##_hostRegisterReadOnlySupported, 113, 11070, 0},                                   \
        {layout##_timelineSemaphoreInteropSupported, 114, 11070, 0},                               \
        {layout##_memoryPoolsSupported, 115, 11070, 0},                                            \
        {layout##_gpuDirectRDMASupported, 116, 11070, 0},                                          \
        {layout##_gpuDirectRDMAFlushWritesOptions, 117, 11070, 0},                                 \
        {layout##_gpuDirectRDMAWritesOrdering, 118, 11070, 0},                                     \
        {layout##_memoryPoolSupportedHandleTypes, 119, 11070, 0},                                  \
        {layout##_clusterLaunch, 120, 11080, 0},                                                   \
        {layout##_deferredMappingCudaArraySupported, 121, 11070, 0},                               \
        {layout##_ipcEventSupported, 125, 12000, 0},                                               \
    {                                                                                              \
        layout##_unifiedFunctionPointers, 129, 12010, 0                                            \
    }

/* hostNumaId: "Returns -1 when system does not support NUMA" (cuda.h). */
#define FIELDS_OF_13(layout)                                                                       \
    {layout##_deviceNumaConfig, 130, 12020, 0}, {layout##_deviceNumaId, 131, 12020, -1},           \
        {layout##_mpsEnabled, 133, 12030, 0}, {layout##_hostNumaId, 134, 12020, -1},               \
        {layout##_gpuPciDeviceID, 139, 12080, 0}, {layout##_gpuPciSubsystemID, 140, 12080, 0},     \
    {                                                                                              \
        layout##_hostNumaMultinodeIpcSupported, 143, 12080, 0                                      \
    }

enum { MAX_QUERIES = 24 };

/* An attribute that the driver does not know is not asked: the failure would become the thread's last
 * error. */
static int get_properties(targets to, void *properties, int device, const struct query *queries,
                          size_t count, void (*copy)(void *to, const void *from))
{
    char theirs[cudaDeviceProp_12_0_size] = {0}; /* the largest */
    int values[MAX_QUERIES], driver = 0;
    int code = FUNCTION(0, (void *, int))(properties ? theirs : NULL, device);
    if (code || !properties)
        return code;
    if (FUNCTION(2, (int *))(&driver))
        driver = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = queries[i].otherwise;
        if (driver < queries[i].driver)
            continue;
        code = FUNCTION(1, (int *, int, int))(&values[i], queries[i].attribute, device);
        if (code)
            return code;
    }
    copy(properties, theirs);
    for (size_t i = 0; i < count; i++)
        put_int(properties, queries[i].offset, values[i]);
    return 0;
}

#define PROPERTIES(code, from, layout, ...)                                                        \
    static inline int code(targets to, void *properties, int device)                               \
    {                                                                                              \
        static const struct query queries[] = {__VA_ARGS__};                                       \
        return get_properties(to, properties, device, queries, sizeof queries / sizeof *queries,   \
                              copy_cudaDeviceProp_##from##_to_##layout);                           \
    }
PROPERTIES(properties_11_by_13, 13_0, 11_7, OLD_FIELDS(cudaDeviceProp_11_7))
PROPERTIES(properties_12_by_11, 11_7, 12_0, FIELDS_OF_12(cudaDeviceProp_12_0))
PROPERTIES(properties_12_by_13, 13_0, 12_0, OLD_FIELDS(cudaDeviceProp_12_0))
PROPERTIES(properties_13_by_11, 11_7, 13_0, FIELDS_OF_12(cudaDeviceProp_13_0),
           FIELDS_OF_13(cudaDeviceProp_13_0))
PROPERTIES(properties_13_by_12, 12_0, 13_0, FIELDS_OF_13(cudaDeviceProp_13_0))

#define PROPERTIES_ADAPTER(function, code)                                                         \
    ADAPTER(function, code, (void *properties, int device), (to, properties, device), NULL,        \
            {"cudaDeviceGetAttribute", "cudaDriverGetVersion"})
PROPERTIES_ADAPTER(cudaGetDeviceProperties, properties_11_by_13)
PROPERTIES_ADAPTER(cudaGetDeviceProperties, properties_13_by_11)
PROPERTIES_ADAPTER(cudaGetDeviceProperties, properties_13_by_12)
PROPERTIES_ADAPTER(cudaGetDeviceProperties_v2, properties_12_by_11)
PROPERTIES_ADAPTER(cudaGetDeviceProperties_v2, properties_12_by_13)

/* ---- cudaChooseDevice ------------------------------------------------------------------------------ */

/* The fields that the program lacks are "don't care" (cudaDevicePropDontCare of 11.8): 0, and for
 * deviceOverlap -1. */
#define CHOOSE(code, from, into, dont_care)                                                        \
    static inline int code(targets to, int *device, const void *properties)                        \
    {                                                                                              \
        char theirs[cudaDeviceProp_##into##_size] = {0};                                           \
        dont_care;                                                                                 \
        if (properties)                                                                            \
            copy_cudaDeviceProp_##from##_to_##into(theirs, properties);                            \
        return FUNCTION(0, (int *, const void *))(device, properties ? theirs : NULL);             \
    }
#define CHOOSE_ADAPTER(code)                                                                       \
    ADAPTER(cudaChooseDevice, code, (int *device, const void *properties),                         \
            (to, device, properties), NULL)
CHOOSE(choose_11_by_12, 11_7, 12_0, (void)0)
CHOOSE(choose_11_by_13, 11_7, 13_0, (void)0)
CHOOSE(choose_12_by_11, 12_0, 11_7, (void)0)
CHOOSE(choose_12_by_13, 12_0, 13_0, (void)0)
CHOOSE(choose_13_by_11, 13_0, 11_7, put_int(theirs, cudaDeviceProp_11_7_deviceOverlap, -1))
CHOOSE(choose_13_by_12, 13_0, 12_0, put_int(theirs, cudaDeviceProp_12_0_deviceOverlap, -1))
CHOOSE_ADAPTER(choose_11_by_12)
CHOOSE_ADAPTER(choose_11_by_13)
CHOOSE_ADAPTER(choose_12_by_11)
CHOOSE_ADAPTER(choose_12_by_13)
CHOOSE_ADAPTER(choose_13_by_11)
CHOOSE_ADAPTER(choose_13_by_12)

/* ---- attributes of pointers and functions ------------------------------------------------------------ */

static inline int pointer_attributes_by_13(targets to, void *attributes, const void *pointer)
{
    char theirs[cudaPointerAttributes_13_0_size] = {0};
    int code = FUNCTION(0, (void *, const void *))(attributes ? theirs : NULL, pointer);
    if (!code && attributes)
        copy_cudaPointerAttributes_13_0_to_11_7(attributes, theirs);
    return code;
}

/* localityDomainOrdinal, of 13.4: "-1 when ... not localized" (driver_types.h). Before, the runtime writes 0
 * into these reserved bytes. */
static inline int pointer_attributes_of_13(targets to, void *attributes, const void *pointer)
{
    char theirs[cudaPointerAttributes_11_7_size] = {0};
    int code = FUNCTION(0, (void *, const void *))(attributes ? theirs : NULL, pointer);
    if (!code && attributes) {
        memset(attributes, 0, cudaPointerAttributes_13_0_size);
        copy_cudaPointerAttributes_11_7_to_13_0(attributes, theirs);
        if (HEADERS >= 13040)
            put_int(attributes, cudaPointerAttributes_13_4_localityDomainOrdinal, -1);
    }
    return code;
}

static inline int pointer_attributes_of_13_4(targets to, void *attributes, const void *pointer)
{
    int code = FUNCTION(0, (void *, const void *))(attributes, pointer);
    if (!code && attributes)
        put_int(attributes, cudaPointerAttributes_13_4_localityDomainOrdinal, -1);
    return code;
}

#define POINTER_ADAPTER(code)                                                                      \
    ADAPTER(cudaPointerGetAttributes, code, (void *attributes, const void *pointer),               \
            (to, attributes, pointer), NULL)
POINTER_ADAPTER(pointer_attributes_by_13)
POINTER_ADAPTER(pointer_attributes_of_13)
POINTER_ADAPTER(pointer_attributes_of_13_4)

static inline int function_attributes_by_12(targets to, void *attributes, const void *function)
{
    char theirs[cudaFuncAttributes_12_0_size] = {0};
    int code = FUNCTION(0, (void *, const void *))(attributes ? theirs : NULL, function);
    if (!code && attributes)
        copy_cudaFuncAttributes_12_0_to_11_7(attributes, theirs);
    return code;
}

/* deviceNodeUpdateStatus: 0 is "unsupported or driver is too old" (driver_types.h). */
static inline void put_fields_of_13(void *attributes)
{
    if (HEADERS >= 13030)
        put_int(attributes, cudaFuncAttributes_13_4_deviceNodeUpdateStatus, 0);
    if (HEADERS >= 13040)
        put_int(attributes, cudaFuncAttributes_13_4_sharedMemoryMode, 0);
}

/* The fields about clusters, by CU_FUNC_ATTRIBUTE_... of the driver; 0 if it is older than 11.8. Its failures
 * are no error of the runtime. */
static inline int function_attributes_of_12(targets to, void *attributes, const void *function)
{
    static const uint16_t fields[][2] = {
        {cudaFuncAttributes_12_0_clusterDimMustBeSet, 10},
        {cudaFuncAttributes_12_0_requiredClusterWidth, 11},
        {cudaFuncAttributes_12_0_requiredClusterHeight, 12},
        {cudaFuncAttributes_12_0_requiredClusterDepth, 13},
        {cudaFuncAttributes_12_0_nonPortableClusterSizeAllowed, 14},
        {cudaFuncAttributes_12_0_clusterSchedulingPolicyPreference, 15},
    };
    char theirs[cudaFuncAttributes_11_7_size] = {0};
    void *handle = NULL;
    void *get = NULL;
    int code = FUNCTION(0, (void *, const void *))(attributes ? theirs : NULL, function);
    if (code || !attributes)
        return code;
    if (FUNCTION(1, (void **, const void *))(&handle, function) ||
        FUNCTION(2, (const char *, void **, unsigned long long))("cuFuncGetAttribute", &get, 0))
        get = NULL;
    copy_cudaFuncAttributes_11_7_to_12_0(attributes, theirs);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int value = 0;
        if (get && ((int (*)(int *, int, void *))(uintptr_t)get)(&value, fields[i][1], handle))
            value = 0;
        put_int(attributes, fields[i][0], value);
    }
    put_fields_of_13(attributes);
    return 0;
}

static inline int function_attributes_of_13(targets to, void *attributes, const void *function)
{
    int code = FUNCTION(0, (void *, const void *))(attributes, function);
    if (!code && attributes)
        put_fields_of_13(attributes);
    return code;
}

/* By a library of 13.3, which has the first of these fields. */
static inline int function_attributes_of_13_4(targets to, void *attributes, const void *function)
{
    int code = FUNCTION(0, (void *, const void *))(attributes, function);
    if (!code && attributes)
        put_int(attributes, cudaFuncAttributes_13_4_sharedMemoryMode, 0);
    return code;
}

#define FUNCTION_ADAPTER(code, ...)                                                                \
    ADAPTER(cudaFuncGetAttributes, code, (void *attributes, const void *function),                 \
            (to, attributes, function), NULL, __VA_ARGS__)
FUNCTION_ADAPTER(function_attributes_by_12, {NULL})
FUNCTION_ADAPTER(function_attributes_of_13, {NULL})
FUNCTION_ADAPTER(function_attributes_of_13_4, {NULL})
FUNCTION_ADAPTER(function_attributes_of_12, {"cudaGetFuncBySymbol", "cudaGetDriverEntryPoint"})

/* ---- locations of memory -------------------------------------------------------------------------------- */

/* The flags "must be zero now". */
static inline int prefetch_by_location(targets to, const void *memory, size_t size, int device,
                                       void *stream)
{
    return FUNCTION(0, (const void *, size_t, struct location, unsigned, void *))(
        memory, size, location_of(device), 0, stream);
}

#define BY_LOCATION(function)                                                                      \
    ADAPTER(function, prefetch_by_location,                                                        \
            (const void *memory, size_t size, int device, void *stream),                           \
            (to, memory, size, device, stream), NULL)
BY_LOCATION(cudaMemPrefetchAsync)
BY_LOCATION(cudaMemPrefetchAsync_ptsz)
BY_DEVICE(cudaMemPrefetchAsync)
BY_DEVICE(cudaMemPrefetchAsync_ptsz)
BY_DEVICE(cudaMemPrefetchAsync_v2)
BY_DEVICE(cudaMemPrefetchAsync_v2_ptsz)

static inline int advise_by_location(targets to, const void *memory, size_t size, int advice,
                                     int device)
{
    return FUNCTION(0, (const void *, size_t, int, struct location))(memory, size, advice,
                                                                     location_of(device));
}

ADAPTER(cudaMemAdvise, advise_by_location,
        (const void *memory, size_t size, int advice, int device),
        (to, memory, size, advice, device), NULL)
ADVISE_BY_DEVICE(cudaMemAdvise)
ADVISE_BY_DEVICE(cudaMemAdvise_v2)

/* ---- batches of copies ------------------------------------------------------------------------------------ */

/* The index of the copy that failed; SIZE_MAX "if the error doesn't pertain to any specific copy". */
#define FAILED_INDEX(code, index)                                                                  \
    if ((code) && (index))                                                                         \
    *(index) = SIZE_MAX

static inline int batch_without_index(targets to, void *targets_of, void *sources, void *sizes,
                                      size_t count, void *attributes, void *indices,
                                      size_t attribute_count, size_t *failed, void *stream)
{
    int code = FUNCTION(0, (void *, void *, void *, size_t, void *, void *, size_t, void *))(
        targets_of, sources, sizes, count, attributes, indices, attribute_count, stream);
    FAILED_INDEX(code, failed);
    return code;
}

static inline int batch_3d_without_index(targets to, size_t count, void *operations, size_t *failed,
                                         unsigned long long flags, void *stream)
{
    int code = FUNCTION(0, (size_t, void *, unsigned long long, void *))(count, operations, flags,
                                                                        stream);
    FAILED_INDEX(code, failed);
    return code;
}

#define BATCH_ADAPTERS(twin)                                                                       \
    ADAPTER(cudaMemcpyBatchAsync##twin, batch_without_index,                                       \
            (void *targets_of, void *sources, void *sizes, size_t count, void *attributes,         \
             void *indices, size_t attribute_count, size_t *failed, void *stream),                 \
            (to, targets_of, sources, sizes, count, attributes, indices, attribute_count, failed,  \
             stream),                                                                              \
            NULL)                                                                                  \
    BATCH_WITH_INDEX(cudaMemcpyBatchAsync##twin)                                                   \
    ADAPTER(cudaMemcpy3DBatchAsync##twin, batch_3d_without_index,                                  \
            (size_t count, void *operations, size_t *failed, unsigned long long flags,             \
             void *stream),                                                                        \
            (to, count, operations, failed, flags, stream), NULL)                                  \
    BATCH_3D_WITH_INDEX(cudaMemcpy3DBatchAsync##twin)
BATCH_ADAPTERS()
BATCH_ADAPTERS(_ptsz)

#include "adapters_cudart_graphs.c"
#include "adapters_cudart_resources.c"
