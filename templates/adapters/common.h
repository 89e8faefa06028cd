/* common.h: adapters that the CUDA driver and the CUDA runtime share, whose functions differ in their names only.
 * Handles and device pointers are passed like pointers; enumerators and codes have the same numbers. */
#ifndef GPUSTUB_ADAPTERS_COMMON_H
#define GPUSTUB_ADAPTERS_COMMON_H

#include <limits.h>

#include "adapters.h"

#define NOT_SUPPORTED       801 /* cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED */
#define SYMBOL_NOT_FOUND    500 /* cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND */
#define GRAPH_UPDATE_FAILED 910 /* cudaErrorGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */

/* ---- locations of memory ----------------------------------------------------------------------------- */

/* cudaMemLocation, CUmemLocation */
struct location {
    int type, id;
};
enum { LOCATION_DEVICE = 1, LOCATION_HOST = 2, CPU_DEVICE = -1 /* cudaCpuDeviceId, CU_DEVICE_CPU */ };

#define DEVICE_OR_HOST "locations that are a device or the host"

static inline struct location location_of(int device)
{
    struct location location = {LOCATION_DEVICE, device};
    if (device == CPU_DEVICE)
        location = (struct location){LOCATION_HOST, 0};
    return location;
}

static inline int is_device_or_host(struct location location)
{
    return location.type == LOCATION_DEVICE || location.type == LOCATION_HOST;
}

static inline int device_of(struct location location)
{
    return location.type == LOCATION_HOST ? CPU_DEVICE : location.id;
}

static inline int prefetch_by_device(targets to, const void *memory, size_t size,
                                     struct location location, unsigned flags, void *stream)
{
    if (flags || !is_device_or_host(location))
        return NOT_SUPPORTED;
    return FUNCTION(0, (const void *, size_t, int, void *))(memory, size, device_of(location),
                                                            stream);
}

#define BY_DEVICE(function)                                                                        \
    ADAPTER(function, prefetch_by_device,                                                          \
            (const void *memory, size_t size, struct location location, unsigned flags,            \
             void *stream),                                                                        \
            (to, memory, size, location, flags, stream), DEVICE_OR_HOST)

static inline int advise_by_device(targets to, const void *memory, size_t size, int advice,
                                   struct location location)
{
    /* ...SetReadMostly, ...UnsetReadMostly and ...UnsetPreferredLocation ignore the location. */
    int is_ignored = advice == 1 || advice == 2 || advice == 4;
    if (!is_ignored && !is_device_or_host(location))
        return NOT_SUPPORTED;
    return FUNCTION(0, (const void *, size_t, int, int))(
        memory, size, advice, is_device_or_host(location) ? device_of(location) : 0);
}

#define ADVISE_BY_DEVICE(function)                                                                 \
    ADAPTER(function, advise_by_device,                                                            \
            (const void *memory, size_t size, int advice, struct location location),               \
            (to, memory, size, advice, location), DEVICE_OR_HOST)

/* ---- batches of copies --------------------------------------------------------------------------------- */

static inline int batch_with_index(targets to, void *targets_of, void *sources, void *sizes,
                                   size_t count, void *attributes, void *indices,
                                   size_t attribute_count, void *stream)
{
    size_t failed = 0;
    return FUNCTION(0, (void *, void *, void *, size_t, void *, void *, size_t, size_t *, void *))(
        targets_of, sources, sizes, count, attributes, indices, attribute_count, &failed, stream);
}

static inline int batch_3d_with_index(targets to, size_t count, void *operations,
                                      unsigned long long flags, void *stream)
{
    size_t failed = 0;
    return FUNCTION(0, (size_t, void *, size_t *, unsigned long long, void *))(count, operations,
                                                                              &failed, flags, stream);
}

#define BATCH_WITH_INDEX(function)                                                                 \
    ADAPTER(function, batch_with_index,                                                            \
            (void *targets_of, void *sources, void *sizes, size_t count, void *attributes,         \
             void *indices, size_t attribute_count, void *stream),                                 \
            (to, targets_of, sources, sizes, count, attributes, indices, attribute_count, stream), \
            NULL)
#define BATCH_3D_WITH_INDEX(function)                                                              \
    ADAPTER(function, batch_3d_with_index,                                                         \
            (size_t count, void *operations, unsigned long long flags, void *stream),              \
            (to, count, operations, flags, stream), NULL)

/* ---- edge data of graphs (12.3) ---------------------------------------------------------------------------- */

enum { EDGE_SIZE = 8 }; /* cudaGraphEdgeData, CUgraphEdgeData */

#define DEFAULT_EDGES "edges with zeroed data"

/* Whether edges have default data, which is zero; null stands for that. */
static inline int are_default(const char *edges, size_t count)
{
    for (size_t i = 0; edges && i < count * EDGE_SIZE; i++)
        if (edges[i])
            return 0;
    return 1;
}

/* Writes default data of the edges that the library has returned into an array for `room` edges. */
static inline void put_default(void *edges, size_t room, size_t count)
{
    if (edges)
        memset(edges, 0, EDGE_SIZE * (count < room ? count : room));
}

static inline int dependencies_without_data(targets to, void *graph, void *from, void *onto,
                                            const void *edges, size_t count)
{
    if (!are_default(edges, count))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, void *, void *, size_t))(graph, from, onto, count);
}

#define DEPENDENCIES_ADAPTER(function)                                                             \
    ADAPTER(function, dependencies_without_data,                                                   \
            (void *graph, void *from, void *onto, const void *edges, size_t count),                \
            (to, graph, from, onto, edges, count), DEFAULT_EDGES)

static inline int capture_dependencies_without_data(targets to, void *stream, void *dependencies,
                                                    const void *edges, size_t count, unsigned flags)
{
    if (!are_default(edges, count))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, void *, size_t, unsigned))(stream, dependencies, count, flags);
}

#define CAPTURE_DEPENDENCIES_ADAPTER(function)                                                     \
    ADAPTER(function, capture_dependencies_without_data,                                           \
            (void *stream, void *dependencies, const void *edges, size_t count, unsigned flags),   \
            (to, stream, dependencies, edges, count, flags), DEFAULT_EDGES)

static inline int node_without_data(targets to, void *node, void *graph, void *dependencies,
                                    const void *edges, size_t count, void *parameters)
{
    if (!are_default(edges, count))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, void *, void *, size_t, void *))(node, graph, dependencies, count,
                                                                 parameters);
}

#define NODE_ADAPTER(function, code, limit)                                                        \
    ADAPTER(function, code,                                                                        \
            (void *node, void *graph, void *dependencies, const void *edges, size_t count,         \
             void *parameters),                                                                    \
            (to, node, graph, dependencies, edges, count, parameters), limit)

/* Without the arrays of nodes only the count is returned. */
static inline int edges_without_data(targets to, void *graph, void *from, void *onto, void *edges,
                                     size_t *count)
{
    size_t room = count ? *count : 0;
    int code = FUNCTION(0, (void *, void *, void *, size_t *))(graph, from, onto, count);
    if (!code && from && onto && count)
        put_default(edges, room, *count);
    return code;
}

static inline int neighbours_without_data(targets to, void *node, void *nodes, void *edges,
                                          size_t *count)
{
    size_t room = count ? *count : 0;
    int code = FUNCTION(0, (void *, void *, size_t *))(node, nodes, count);
    if (!code && nodes && count)
        put_default(edges, room, *count);
    return code;
}

#define EDGES_ADAPTER(function)                                                                    \
    ADAPTER(function, edges_without_data,                                                          \
            (void *graph, void *from, void *onto, void *edges, size_t *count),                     \
            (to, graph, from, onto, edges, count), NULL)
#define NEIGHBOURS_ADAPTER(function)                                                               \
    ADAPTER(function, neighbours_without_data,                                                     \
            (void *node, void *nodes, void *edges, size_t *count), (to, node, nodes, edges, count), \
            NULL)

/* ---- capture of streams ------------------------------------------------------------------------------------ */

/* A null array of edge data stands for default data. */
static inline int capture_info_7_by_6(targets to, void *stream, void *status, void *id, void *graph,
                                      void *dependencies, void **edges, void *count)
{
    int code = FUNCTION(0, (void *, void *, void *, void *, void *, void *))(
        stream, status, id, graph, dependencies, count);
    if (!code && edges)
        *edges = NULL;
    return code;
}

#define CAPTURE_7(function)                                                                        \
    ADAPTER(function, capture_info_7_by_6,                                                         \
            (void *stream, void *status, void *id, void *graph, void *dependencies, void **edges,  \
             void *count),                                                                         \
            (to, stream, status, id, graph, dependencies, edges, count), NULL)

/* ---- updates of executable graphs -------------------------------------------------------------------------- */

/* cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo */
struct update_info {
    int result;
    void *error_node, *error_from_node;
};

/* Both forms return their results with this failure, too. */
static inline int has_result(int code)
{
    return !code || code == GRAPH_UPDATE_FAILED;
}

/* errorFromNode: null "otherwise". */
static inline int update_of_info(targets to, void *exec, void *graph, struct update_info *info)
{
    struct update_info found = {0};
    int code = FUNCTION(0, (void *, void *, void **, int *))(exec, graph, &found.error_node,
                                                             &found.result);
    if (has_result(code) && info) {
        info->result = found.result;
        info->error_node = found.error_node;
        info->error_from_node = NULL;
    }
    return code;
}

#define UPDATE_OF_INFO(function)                                                                   \
    ADAPTER(function, update_of_info, (void *exec, void *graph, struct update_info *info),         \
            (to, exec, graph, info), NULL)

/* ---- addresses of functions -------------------------------------------------------------------------------- */

/* CUdriverProcAddressQueryResult, cudaDriverEntryPointQueryResult */
enum { ENTRY_FOUND, ENTRY_NOT_FOUND, VERSION_NOT_SUFFICIENT };

/* Whether a name stands for another function of the driver in `version` than in the older `driver`, so that its
 * prototype does not fit. From cudaTypedefs.h of 13.5: the versions after 11.3, the first with cuGetProcAddress, but
 * for cuEventElapsedTime, whose two functions have one prototype. */
static inline int is_changed(const char *name, int driver, int version)
{
    static const struct {
        int version;
        char name[36];
    } changes[] CONSTANT_SECTION(gpustub_driver_changes) = {
        {11040, "cuCtxCreate"},
        {12050, "cuCtxCreate"},
        {13000, "cuCtxGetDevice"},
        {13000, "cuCtxSynchronize"},
        {11040, "cuDeviceGetUuid"},
        {12000, "cuGetProcAddress"},
        {12030, "cuGraphAddDependencies"},
        {12000, "cuGraphAddKernelNode"},
        {12030, "cuGraphAddNode"},
        {13040, "cuGraphAddNode"},
        {12000, "cuGraphExecKernelNodeSetParams"},
        {12000, "cuGraphExecUpdate"},
        {12030, "cuGraphGetEdges"},
        {12000, "cuGraphKernelNodeGetParams"},
        {12000, "cuGraphKernelNodeSetParams"},
        {12030, "cuGraphNodeGetDependencies"},
        {12030, "cuGraphNodeGetDependentNodes"},
        {13040, "cuGraphNodeSetParams"},
        {12030, "cuGraphRemoveDependencies"},
        {13010, "cuLaunchHostFunc"},
        {12020, "cuMemAdvise"},
        {12020, "cuMemPrefetchAsync"},
        {13000, "cuMemcpy3DBatchAsync"},
        {13000, "cuMemcpyBatchAsync"},
        {13010, "cuMulticastBindAddr"},
        {13010, "cuMulticastBindMem"},
        {11070, "cuStreamBatchMemOp"},
        {12030, "cuStreamGetCaptureInfo"},
        {12050, "cuStreamGetCtx"},
        {12030, "cuStreamUpdateCaptureDependencies"},
        {11070, "cuStreamWaitValue32"},
        {11070, "cuStreamWaitValue64"},
        {11070, "cuStreamWriteValue32"},
        {11070, "cuStreamWriteValue64"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (driver < changes[i].version && changes[i].version <= version &&
            !strcmp(name, changes[i].name))
            return 1;
    return 0;
}

/* The version to ask a driver for: its own instead of a newer one, which those of 13.0 call an invalid value (cuda.h
 * 13.0), and those of 12.2 and 12.4 take for theirs. `get_version` is cuDriverGetVersion or cudaDriverGetVersion. */
static inline int version_within_driver(void *get_version, int version)
{
    int driver = 0, code = ((int (*)(int *))(uintptr_t)get_version)(&driver);
    return !code && 0 < driver && driver < version ? driver : version;
}

/* cuGetProcAddress_v2 or cudaGetDriverEntryPointByVersion, and the driver's version. */
static inline int within_driver(targets to, const char *name, void **function, int version,
                                unsigned long long flags, int *status)
{
    int within = version_within_driver(to[1], version);
    int code = FUNCTION(0, (const char *, void **, int, unsigned long long, int *))(
        name, function, within, flags, status);
    if (!code && function && *function && is_changed(name, within, version)) {
        *function = NULL;
        if (status)
            *status = VERSION_NOT_SUFFICIENT;
    }
    return code;
}

/* cuGetProcAddress of 11, and the driver's version. */
static inline int within_driver_11(targets to, const char *name, void **function, int version,
                                   unsigned long long flags)
{
    int within = version_within_driver(to[1], version);
    void *entry = NULL;
    int code = FUNCTION(0, (const char *, void **, int, unsigned long long))(
        name, function ? &entry : NULL, within, flags);
    if (!code && entry && is_changed(name, within, version))
        return SYMBOL_NOT_FOUND;
    if (!code && function)
        *function = entry;
    return code;
}

/* cuGetProcAddress of 11, and the driver's version, instead of cuGetProcAddress of 12, which returns success and null
 * if it finds nothing. Version 11 fails then, and does not distinguish unknown names from those of a later version: the
 * latter exist for the driver's own. */
static inline int look_up_by_11(targets to, const char *name, void **function, int version,
                                unsigned long long flags, int *status)
{
    void *later;
    int query = ENTRY_FOUND, code = within_driver_11(to, name, function, version, flags);
    if (code == SYMBOL_NOT_FOUND) {
        int is_unknown = FUNCTION(0, (const char *, void **, int, unsigned long long))(
            name, &later, version_within_driver(to[1], INT_MAX), flags);
        query = is_unknown ? ENTRY_NOT_FOUND : VERSION_NOT_SUFFICIENT;
        code = 0;
        if (function)
            *function = NULL;
    }
    if (!code && status)
        *status = query;
    return code;
}

#endif
