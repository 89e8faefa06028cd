/* cudart_graphs.c: adapters of the CUDA runtime for graphs, stream capture, and driver functions. */

/* ---- edge data (12.3) ------------------------------------------------------------------------------------ */

DEPENDENCIES_ADAPTER(cudaGraphAddDependencies)
DEPENDENCIES_ADAPTER(cudaGraphAddDependencies_v2)
DEPENDENCIES_ADAPTER(cudaGraphRemoveDependencies)
DEPENDENCIES_ADAPTER(cudaGraphRemoveDependencies_v2)

CAPTURE_DEPENDENCIES_ADAPTER(cudaStreamUpdateCaptureDependencies)
CAPTURE_DEPENDENCIES_ADAPTER(cudaStreamUpdateCaptureDependencies_ptsz)
CAPTURE_DEPENDENCIES_ADAPTER(cudaStreamUpdateCaptureDependencies_v2)
CAPTURE_DEPENDENCIES_ADAPTER(cudaStreamUpdateCaptureDependencies_v2_ptsz)

NODE_ADAPTER(cudaGraphAddNode, node_without_data, DEFAULT_EDGES)
NODE_ADAPTER(cudaGraphAddNode_v2, node_without_data, DEFAULT_EDGES)

EDGES_ADAPTER(cudaGraphGetEdges)
EDGES_ADAPTER(cudaGraphGetEdges_v2)
NEIGHBOURS_ADAPTER(cudaGraphNodeGetDependencies)
NEIGHBOURS_ADAPTER(cudaGraphNodeGetDependencies_v2)
NEIGHBOURS_ADAPTER(cudaGraphNodeGetDependentNodes)
NEIGHBOURS_ADAPTER(cudaGraphNodeGetDependentNodes_v2)

/* ---- capture of streams ------------------------------------------------------------------------------------- */

/* All results but the status are optional. */
static inline int capture_info_3_by_7(targets to, void *stream, void *status, void *id)
{
    return FUNCTION(0, (void *, void *, void *, void *, void *, void *, void *))(
        stream, status, id, NULL, NULL, NULL, NULL);
}

static inline int capture_info_6_by_7(targets to, void *stream, void *status, void *id, void *graph,
                                      void *dependencies, void *count)
{
    return FUNCTION(0, (void *, void *, void *, void *, void *, void *, void *))(
        stream, status, id, graph, dependencies, NULL, count);
}

#define CAPTURE_3(function)                                                                        \
    ADAPTER(function, capture_info_3_by_7, (void *stream, void *status, void *id),                 \
            (to, stream, status, id), NULL)
#define CAPTURE_6(function)                                                                        \
    ADAPTER(function, capture_info_6_by_7,                                                         \
            (void *stream, void *status, void *id, void *graph, void *dependencies, void *count),  \
            (to, stream, status, id, graph, dependencies, count), NULL)
CAPTURE_3(cudaStreamGetCaptureInfo)
CAPTURE_3(cudaStreamGetCaptureInfo_ptsz)
CAPTURE_6(cudaStreamGetCaptureInfo_v2)
CAPTURE_6(cudaStreamGetCaptureInfo_v2_ptsz)
CAPTURE_7(cudaStreamGetCaptureInfo)
CAPTURE_7(cudaStreamGetCaptureInfo_ptsz)
CAPTURE_7(cudaStreamGetCaptureInfo_v3)
CAPTURE_7(cudaStreamGetCaptureInfo_v3_ptsz)

/* ---- executable graphs ---------------------------------------------------------------------------------------- */

/* cudaGraphInstantiateParams */
struct instantiate_params {
    unsigned long long flags;
    void *upload_stream, *error_node;
    int result;
};

/* Form of 11. Its log "may be returned". */
static inline int instantiate_with_params(targets to, void *exec, void *graph, void **error_node,
                                          char *log, size_t size)
{
    struct instantiate_params params = {0};
    int code = FUNCTION(1, (void *, void *, void *))(exec, graph, &params);
    if (code && error_node && params.error_node)
        *error_node = params.error_node;
    if (log && size)
        *log = 0;
    return code;
}
ADAPTER(cudaGraphInstantiate, instantiate_with_params,
        (void *exec, void *graph, void **error_node, char *log, size_t size),
        (to, exec, graph, error_node, log, size), NULL, {"cudaGraphInstantiateWithParams"})

static inline int update_by_info(targets to, void *exec, void *graph, void **error_node, int *result)
{
    struct update_info info = {0};
    int code = FUNCTION(0, (void *, void *, void *))(exec, graph, &info);
    if (has_result(code) && error_node)
        *error_node = info.error_node;
    if (has_result(code) && result)
        *result = info.result;
    return code;
}
ADAPTER(cudaGraphExecUpdate, update_by_info,
        (void *exec, void *graph, void **error_node, int *result),
        (to, exec, graph, error_node, result), NULL)
UPDATE_OF_INFO(cudaGraphExecUpdate)

/* ---- functions of the driver -------------------------------------------------------------------------------------- */

/* A runtime returns functions of its own version; the program needs those of its headers. It may also ask for a
 * function that is newer than its headers, and thus has no prototype there: it gets the one that the runtime would return
 * on this driver. */
static inline int entry_point_by_version(targets to, const char *name, void **function,
                                         unsigned long long flags, int *status)
{
    int runtime = 0, version, code = within_driver(to + 1, name, function, HEADERS, flags, status);
    if (code || !function || *function || (status && *status != VERSION_NOT_SUFFICIENT) ||
        FUNCTION(3, (int *))(&runtime))
        return code;
    version = version_within_driver(to[2], runtime);
    if (version <= HEADERS || is_changed(name, HEADERS, version))
        return code;
    return FUNCTION(1, (const char *, void **, int, unsigned long long, int *))(
        name, function, version, flags, status);
}

/* A runtime asks for its own version: a driver of 13.0 refuses that of a newer runtime (NVIDIA/cccl, pull request
 * 6895), and a runtime that is older than the headers returns functions that have other prototypes there. */
static inline int entry_point_by_runtime(targets to, const char *name, void **function,
                                         unsigned long long flags, int *status)
{
    int runtime = 0;
    if (!FUNCTION(3, (int *))(&runtime) &&
        (runtime < OLDEST_HEADERS || version_within_driver(to[2], runtime) < runtime))
        return entry_point_by_version(to, name, function, flags, status);
    return FUNCTION(0, (const char *, void **, unsigned long long, int *))(name, function, flags,
                                                                          status);
}

/* Version 11 fails where 12 succeeds with null. */
static inline int entry_point_11_by_version(targets to, const char *name, void **function,
                                            unsigned long long flags)
{
    void *found = NULL;
    int status = 0;
    int code = entry_point_by_version(to, name, function ? &found : NULL, flags, &status);
    if (!code && status)
        return SYMBOL_NOT_FOUND;
    if (!code && function)
        *function = found;
    return code;
}

enum { PER_THREAD_STREAM = 2 }; /* the flag of both interfaces */

/* cuGetProcAddress of 11, which has no fifth argument. */
static inline int look_up_11(targets to, const char *name, void **found, unsigned long long flags,
                             int *status)
{
    void *get = NULL;
    int code = FUNCTION(0, (const char *, void **, unsigned long long))("cuGetProcAddress", &get, 0);
    if (code || !get)
        return code ? code : SYMBOL_NOT_FOUND;
    void *const driver[] = {get, to[1]};
    return look_up_by_11(driver, name, found, HEADERS, flags, status);
}

/* cuGetProcAddress of 12. */
static inline int look_up_12(targets to, const char *name, void **found, unsigned long long flags,
                             int *status)
{
    void *get = NULL;
    int code = FUNCTION(0, (const char *, void **, unsigned long long, int *))("cuGetProcAddress",
                                                                              &get, 0, status);
    if (code || !get)
        return code ? code : SYMBOL_NOT_FOUND;
    void *const driver[] = {get, to[1]};
    code = within_driver(driver, name, found, HEADERS, flags, status);
    if (code == SYMBOL_NOT_FOUND && !*status)
        *status = ENTRY_NOT_FOUND;
    return code == SYMBOL_NOT_FOUND ? 0 : code;
}

static inline int look_up(int (*by)(targets, const char *, void **, unsigned long long, int *),
                          targets to, const char *name, void **function, unsigned long long flags,
                          int *status)
{
    void *found = NULL;
    int found_status = ENTRY_FOUND;
    int code = by(to, name, &found, flags, &found_status);
    if (code)
        return code;
    if (function)
        *function = found_status == ENTRY_FOUND ? found : NULL;
    if (status)
        *status = found_status;
    return 0;
}

static inline int entry_point_by_lookup_11(targets to, const char *name, void **function,
                                           unsigned long long flags, int *status)
{
    return look_up(look_up_11, to, name, function, flags, status);
}

static inline int entry_point_by_lookup_12(targets to, const char *name, void **function,
                                           unsigned long long flags, int *status)
{
    return look_up(look_up_12, to, name, function, flags, status);
}

static inline int entry_point_11_by_lookup(targets to, const char *name, void **function,
                                           unsigned long long flags)
{
    void *found = NULL;
    int status = ENTRY_FOUND;
    int code = look_up_12(to, name, &found, flags, &status);
    if (!code && status)
        return SYMBOL_NOT_FOUND;
    if (!code && function)
        *function = found;
    return code;
}

/* `version` is unsigned here, but INT_MAX is after each driver's, too. `driver_flags`: the flags for the driver, which
 * knows no twins. */
#define ENTRY_POINT_ADAPTERS(twin, driver_flags)                                                   \
    ADAPTER(cudaGetDriverEntryPointByVersion##twin, within_driver,                                 \
            (const char *name, void **function, unsigned version, unsigned long long flags,        \
             int *status),                                                                         \
            (to, name, function, version < INT_MAX ? (int)version : INT_MAX, flags, status), NULL, \
            {"cudaDriverGetVersion"})                                                              \
    ADAPTER(cudaGetDriverEntryPoint##twin, entry_point_by_runtime,                                 \
            (const char *name, void **function, unsigned long long flags, int *status),            \
            (to, name, function, flags, status), NULL,                                             \
            {"cudaGetDriverEntryPointByVersion" #twin, "cudaDriverGetVersion",                     \
             "cudaRuntimeGetVersion"})                                                             \
    ADAPTER(cudaGetDriverEntryPoint##twin, entry_point_by_version,                                 \
            (const char *name, void **function, unsigned long long flags, int *status),            \
            (to, name, function, flags, status), NULL,                                             \
            {"cudaGetDriverEntryPointByVersion" #twin, "cudaDriverGetVersion",                     \
             "cudaRuntimeGetVersion"})                                                             \
    ADAPTER(cudaGetDriverEntryPoint##twin, entry_point_11_by_version,                              \
            (const char *name, void **function, unsigned long long flags),                         \
            (to, name, function, flags), NULL,                                                     \
            {"cudaGetDriverEntryPointByVersion" #twin, "cudaDriverGetVersion",                     \
             "cudaRuntimeGetVersion"})                                                             \
    ADAPTER(cudaGetDriverEntryPoint##twin, entry_point_by_lookup_11,                               \
            (const char *name, void **function, unsigned long long flags, int *status),            \
            (to, name, function, driver_flags, status), NULL, {"cudaDriverGetVersion"})            \
    ADAPTER(cudaGetDriverEntryPoint##twin, entry_point_by_lookup_12,                               \
            (const char *name, void **function, unsigned long long flags, int *status),            \
            (to, name, function, driver_flags, status), NULL, {"cudaDriverGetVersion"})            \
    ADAPTER(cudaGetDriverEntryPoint##twin, entry_point_11_by_lookup,                               \
            (const char *name, void **function, unsigned long long flags),                         \
            (to, name, function, driver_flags), NULL, {"cudaDriverGetVersion"})
ENTRY_POINT_ADAPTERS(, flags)
ENTRY_POINT_ADAPTERS(_ptsz, flags ? flags : PER_THREAD_STREAM)
