/* hip_objects.c: adapters of HIP's runtime for external and virtual memory, semaphores, and graphs. */

/* ---- external memory and semaphores ------------------------------------------------------------------ */

/* The newer structs end with reserved bytes, in part where the older ones have padding. */
#define HIP_IMPORTED(code, type)                                                                   \
    static inline int code(targets to, void *out, const void *description)                         \
    {                                                                                              \
        char theirs[type##_6_0_size] = {0};                                                        \
        if (description)                                                                           \
            copy_##type##_5_2_to_6_0(theirs, description);                                         \
        return FUNCTION(0, (void *, const void *))(out, description ? theirs : NULL);              \
    }
HIP_IMPORTED(memory_by_6, hipExternalMemoryHandleDesc)
HIP_IMPORTED(semaphore_by_6, hipExternalSemaphoreHandleDesc)
ADAPTER(hipImportExternalMemory, memory_by_6, (void *out, const void *description),
        (to, out, description), NULL)
ADAPTER(hipImportExternalSemaphore, semaphore_by_6, (void *out, const void *description),
        (to, out, description), NULL)

static inline int buffer_by_6(targets to, void *out, void *memory, const void *description)
{
    char theirs[hipExternalMemoryBufferDesc_6_0_size] = {0};
    if (description)
        copy_hipExternalMemoryBufferDesc_5_2_to_6_0(theirs, description);
    return FUNCTION(0, (void *, void *, const void *))(out, memory, description ? theirs : NULL);
}
ADAPTER(hipExternalMemoryGetMappedBuffer, buffer_by_6,
        (void *out, void *memory, const void *description), (to, out, memory, description), NULL)

/* Calls with an array of `count` structs, each converted from `size` bytes to `their_size`. */
enum { SMALL_COUNT = 8, SMALL_SIZE = SMALL_COUNT * hipExternalSemaphoreSignalParams_6_0_size };

static inline int with_semaphores(targets to, const void *semaphores, const char *parameters,
                                  unsigned count, void *stream, size_t size, size_t their_size,
                                  void (*copy)(void *to, const void *from))
{
    char small[SMALL_SIZE] = {0};
    char *theirs = small;
    if (parameters && count > SMALL_COUNT) {
        theirs = calloc(count, their_size); /* checks the product */
        if (!theirs)
            return OUT_OF_MEMORY;
    }
    for (size_t i = 0; parameters && i < count; i++)
        copy(theirs + i * their_size, parameters + i * size);
    int code = FUNCTION(0, (const void *, const void *, unsigned, void *))(
        semaphores, parameters ? theirs : NULL, count, stream);
    if (theirs != small)
        free(theirs);
    return code;
}

/* The fence of an NvSciSync semaphore is not copied: 5.x imports none. */
#define SEMAPHORES(function, code, type, from, into)                                               \
    _Static_assert(SMALL_COUNT * type##_##into##_size <= SMALL_SIZE, "size of the small array");   \
    static inline int code(targets to, const void *semaphores, const void *parameters,             \
                           unsigned count, void *stream)                                           \
    {                                                                                              \
        return with_semaphores(to, semaphores, parameters, count, stream, type##_##from##_size,    \
                               type##_##into##_size, copy_##type##_##from##_to_##into);            \
    }                                                                                              \
    ADAPTER(function, code,                                                                        \
            (const void *semaphores, const void *parameters, unsigned count, void *stream),        \
            (to, semaphores, parameters, count, stream), NULL)
SEMAPHORES(hipSignalExternalSemaphoresAsync, signal_by_6, hipExternalSemaphoreSignalParams, 5_2, 6_0)
SEMAPHORES(hipSignalExternalSemaphoresAsync, signal_of_6, hipExternalSemaphoreSignalParams, 6_0, 5_2)
SEMAPHORES(hipWaitExternalSemaphoresAsync, wait_by_6, hipExternalSemaphoreWaitParams, 5_2, 6_0)
SEMAPHORES(hipWaitExternalSemaphoresAsync, wait_of_6, hipExternalSemaphoreWaitParams, 6_0, 5_2)

/* ---- virtual memory ------------------------------------------------------------------------------------ */

/* gpuDirectRDMACapable, of 5.3, is left out on 5.2: no runtime up to 6.2 reads it. */
#define ALLOCATION(suffix, from, into)                                                             \
    static inline int allocate_##suffix(targets to, void *handle, size_t size,                     \
                                        const void *properties, unsigned long long flags)          \
    {                                                                                              \
        char theirs[hipMemAllocationProp_##into##_size] = {0};                                     \
        if (properties)                                                                            \
            copy_hipMemAllocationProp_##from##_to_##into(theirs, properties);                      \
        return FUNCTION(0, (void *, size_t, const void *, unsigned long long))(                    \
            handle, size, properties ? theirs : NULL, flags);                                      \
    }                                                                                              \
    static inline int granularity_##suffix(targets to, size_t *granularity,                        \
                                           const void *properties, int option)                     \
    {                                                                                              \
        char theirs[hipMemAllocationProp_##into##_size] = {0};                                     \
        if (properties)                                                                            \
            copy_hipMemAllocationProp_##from##_to_##into(theirs, properties);                      \
        return FUNCTION(0, (size_t *, const void *, int))(granularity, properties ? theirs : NULL, \
                                                          option);                                 \
    }                                                                                              \
    static inline int allocation_##suffix(targets to, void *properties, void *handle)              \
    {                                                                                              \
        char theirs[hipMemAllocationProp_##into##_size] = {0};                                     \
        int code = FUNCTION(0, (void *, void *))(properties ? theirs : NULL, handle);              \
        if (code || !properties)                                                                   \
            return code;                                                                           \
        memset(properties, 0, hipMemAllocationProp_##from##_size);                                 \
        copy_hipMemAllocationProp_##into##_to_##from(properties, theirs);                          \
        return 0;                                                                                  \
    }                                                                                              \
    ADAPTER(hipMemCreate, allocate_##suffix,                                                       \
            (void *handle, size_t size, const void *properties, unsigned long long flags),         \
            (to, handle, size, properties, flags), NULL)                                           \
    ADAPTER(hipMemGetAllocationGranularity, granularity_##suffix,                                  \
            (size_t *granularity, const void *properties, int option),                             \
            (to, granularity, properties, option), NULL)                                           \
    ADAPTER(hipMemGetAllocationPropertiesFromHandle, allocation_##suffix,                          \
            (void *properties, void *handle), (to, properties, handle), NULL)
ALLOCATION(of_5_2, 5_2, 5_3)
ALLOCATION(by_5_2, 5_3, 5_2)

/* ---- graphs ---------------------------------------------------------------------------------------------- */

/* hipGraphNodeType, renumbered in 5.3 and, at its end, in 5.5: the number of another version by the library's;
 * -1: none. Since 5.3, nodes for copies in one dimension (9) are nodes for copies. */
static const int8_t node_types_5_2_by_5_3[] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -1, 10, 11};
static const int8_t node_types_5_2_by_5_5[] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1, -1, 10, 11};
static const int8_t node_types_by_5_2[][12] = {
    {-1, 0, 1, 2, 3, 4, 5, 6, 7, 1, 10, 11}, /* 5.3 and 5.4 */
    {-1, 0, 1, 2, 3, 4, 5, 6, 7, 1, 12, 13},
};

static inline int node_type(targets to, void *node, int *type, const int8_t *types, int count)
{
    int theirs = -1;
    int code = FUNCTION(0, (void *, int *))(node, type ? &theirs : NULL);
    if (code || !type)
        return code;
    if (theirs < 0 || theirs >= count || types[theirs] < 0)
        return NOT_SUPPORTED;
    *type = types[theirs];
    return 0;
}

#define NODE_TYPES(code, types, limit)                                                             \
    static inline int code(targets to, void *node, int *type)                                      \
    {                                                                                              \
        return node_type(to, node, type, types, sizeof types);                                     \
    }                                                                                              \
    ADAPTER(hipGraphNodeGetType, code, (void *node, int *type), (to, node, type), limit)
NODE_TYPES(node_type_of_5_2, node_types_5_2_by_5_5, "nodes of the types in the headers")
NODE_TYPES(node_type_of_5_2_by_5_3, node_types_5_2_by_5_3, "nodes of the types in the headers")
NODE_TYPES(node_type_by_5_2, node_types_by_5_2[HEADERS >= 5050], NULL)

/* hipLaunchAttributeValue, a union: 32 bytes before 7.0. The library writes the member of the attribute, so
 * that the other bytes stay. */
enum { VALUE_6 = 32, VALUE_7 = 64 };

static inline int value_by_7(targets to, void *node, int attribute, void *value)
{
    char theirs[VALUE_7] = {0};
    if (value)
        memcpy(theirs, value, VALUE_6);
    int code = FUNCTION(0, (void *, int, void *))(node, attribute, value ? theirs : NULL);
    if (!code && value)
        memcpy(value, theirs, VALUE_6);
    return code;
}

static inline int set_value_by_7(targets to, void *node, int attribute, const void *value)
{
    char theirs[VALUE_7] = {0};
    if (value)
        memcpy(theirs, value, VALUE_6);
    return FUNCTION(0, (void *, int, const void *))(node, attribute, value ? theirs : NULL);
}
ADAPTER(hipGraphKernelNodeGetAttribute, value_by_7, (void *node, int attribute, void *value),
        (to, node, attribute, value), NULL)
ADAPTER(hipGraphKernelNodeSetAttribute, set_value_by_7,
        (void *node, int attribute, const void *value), (to, node, attribute, value), NULL)

#define MEMSET_NODES(suffix, from, into)                                                           \
    static inline int add_memset_##suffix(targets to, void *node, void *graph,                     \
                                          const void *dependencies, size_t count,                  \
                                          const void *parameters, void *context)                   \
    {                                                                                              \
        char theirs[HIP_MEMSET_NODE_PARAMS_##into##_size] = {0};                                   \
        if (parameters)                                                                            \
            copy_HIP_MEMSET_NODE_PARAMS_##from##_to_##into(theirs, parameters);                    \
        return FUNCTION(0, (void *, void *, const void *, size_t, const void *, void *))(          \
            node, graph, dependencies, count, parameters ? theirs : NULL, context);                \
    }                                                                                              \
    static inline int set_memset_##suffix(targets to, void *graph, void *node,                     \
                                          const void *parameters, void *context)                   \
    {                                                                                              \
        char theirs[HIP_MEMSET_NODE_PARAMS_##into##_size] = {0};                                   \
        if (parameters)                                                                            \
            copy_HIP_MEMSET_NODE_PARAMS_##from##_to_##into(theirs, parameters);                    \
        return FUNCTION(0, (void *, void *, const void *, void *))(                                \
            graph, node, parameters ? theirs : NULL, context);                                     \
    }                                                                                              \
    ADAPTER(hipDrvGraphAddMemsetNode, add_memset_##suffix,                                         \
            (void *node, void *graph, const void *dependencies, size_t count,                      \
             const void *parameters, void *context),                                               \
            (to, node, graph, dependencies, count, parameters, context), NULL)                     \
    ADAPTER(hipDrvGraphExecMemsetNodeSetParams, set_memset_##suffix,                               \
            (void *graph, void *node, const void *parameters, void *context),                      \
            (to, graph, node, parameters, context), NULL)
MEMSET_NODES(by_7, 6_0, 7_0)
MEMSET_NODES(of_7, 7_0, 6_0)
