/* cuda.c: adapters of the CUDA driver, whose functions keep their ABI under their names: calls of names that an
 * older driver lacks, by an older name. Layouts of structs are in adapters_cuda.h. Nothing depends on the version
 * of the program's headers, which may be unknown. */
#include "adapters_common.h"
#include "adapters_cuda.h"

/* ---- cuCtxCreate ------------------------------------------------------------------------------------- */

/* CUctxCreateParams */
struct context_params {
    void *affinities;
    int affinity_count;
    void *graphics;
};

/* "If both are NULL, the context will be created as a regular CUDA context"; the count "must be 0" then, which is
 * left to the driver. */
static inline int context_by_affinities(targets to, void *context,
                                        const struct context_params *params, unsigned flags,
                                        int device)
{
    if (params && params->graphics)
        return NOT_SUPPORTED;
    if (!params || (!params->affinities && !params->affinity_count))
        return FUNCTION(1, (void *, unsigned, int))(context, flags, device);
    return FUNCTION(0, (void *, void *, int, unsigned, int))(
        context, params->affinities, params->affinity_count, flags, device);
}
ADAPTER(cuCtxCreate_v4, context_by_affinities,
        (void *context, const struct context_params *params, unsigned flags, int device),
        (to, context, params, flags, device), "contexts not shared with graphics",
        {"cuCtxCreate_v2"})

/* ---- cuGetProcAddress -------------------------------------------------------------------------------- */

ADAPTER(cuGetProcAddress_v2, within_driver,
        (const char *name, void **entry, int version, unsigned long long flags, int *status),
        (to, name, entry, version, flags, status), NULL, {"cuDriverGetVersion"})
ADAPTER(cuGetProcAddress_v2, look_up_by_11,
        (const char *name, void **function, int version, unsigned long long flags, int *status),
        (to, name, function, version, flags, status), NULL, {"cuDriverGetVersion"})
ADAPTER(cuGetProcAddress, within_driver_11,
        (const char *name, void **function, int version, unsigned long long flags),
        (to, name, function, version, flags), NULL, {"cuDriverGetVersion"})

/* ---- locations of memory ----------------------------------------------------------------------------- */

BY_DEVICE(cuMemPrefetchAsync_v2)
BY_DEVICE(cuMemPrefetchAsync_v2_ptsz)
ADVISE_BY_DEVICE(cuMemAdvise_v2)

/* ---- batches of copies ------------------------------------------------------------------------------- */

BATCH_WITH_INDEX(cuMemcpyBatchAsync_v2)
BATCH_WITH_INDEX(cuMemcpyBatchAsync_v2_ptsz)
BATCH_3D_WITH_INDEX(cuMemcpy3DBatchAsync_v2)
BATCH_3D_WITH_INDEX(cuMemcpy3DBatchAsync_v2_ptsz)

/* ---- kernels in graphs ------------------------------------------------------------------------------- */

/* In CUDA_KERNEL_NODE_PARAMS of 12.0, kern is "only referenced if func is NULL", and ctx "is ignored if func
 * is set" (cuda.h). */
#define KERNEL_BY_FUNC "kernels given as func"

static inline void *get_pointer(const void *from, size_t offset)
{
    void *value;
    memcpy(&value, (const char *)from + offset, sizeof value);
    return value;
}

static inline int has_only_func(const void *params)
{
    return get_pointer(params, 0) ||
           (!get_pointer(params, CUDA_KERNEL_NODE_PARAMS_v2_kern) &&
            !get_pointer(params, CUDA_KERNEL_NODE_PARAMS_v2_ctx));
}

/* Makes the struct of the driver; returns whether it has that of the program. */
static inline int kernel_v1(void *theirs, const void *params)
{
    memset(theirs, 0, CUDA_KERNEL_NODE_PARAMS_v1_size);
    if (params)
        copy_CUDA_KERNEL_NODE_PARAMS_v2_to_v1(theirs, params);
    return !params || has_only_func(params);
}

static inline int add_kernel_v1(targets to, void *node, void *graph, void *dependencies, size_t count,
                                const void *params)
{
    _Alignas(void *) char theirs[CUDA_KERNEL_NODE_PARAMS_v1_size];
    if (!kernel_v1(theirs, params))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, void *, void *, size_t, const void *))(
        node, graph, dependencies, count, params ? theirs : NULL);
}
ADAPTER(cuGraphAddKernelNode_v2, add_kernel_v1,
        (void *node, void *graph, void *dependencies, size_t count, const void *params),
        (to, node, graph, dependencies, count, params), KERNEL_BY_FUNC)

static inline int set_kernel_v1(targets to, void *node, const void *params)
{
    _Alignas(void *) char theirs[CUDA_KERNEL_NODE_PARAMS_v1_size];
    if (!kernel_v1(theirs, params))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, const void *))(node, params ? theirs : NULL);
}
ADAPTER(cuGraphKernelNodeSetParams_v2, set_kernel_v1, (void *node, const void *params),
        (to, node, params), KERNEL_BY_FUNC)

static inline int set_exec_kernel_v1(targets to, void *exec, void *node, const void *params)
{
    _Alignas(void *) char theirs[CUDA_KERNEL_NODE_PARAMS_v1_size];
    if (!kernel_v1(theirs, params))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, void *, const void *))(exec, node, params ? theirs : NULL);
}
ADAPTER(cuGraphExecKernelNodeSetParams_v2, set_exec_kernel_v1,
        (void *exec, void *node, const void *params), (to, exec, node, params), KERNEL_BY_FUNC)

static inline int get_kernel_v1(targets to, void *node, void *params)
{
    _Alignas(void *) char theirs[CUDA_KERNEL_NODE_PARAMS_v1_size] = {0};
    int code = FUNCTION(0, (void *, void *))(node, params ? theirs : NULL);
    if (code || !params)
        return code;
    memset(params, 0, CUDA_KERNEL_NODE_PARAMS_v2_size);
    copy_CUDA_KERNEL_NODE_PARAMS_v1_to_v2(params, theirs);
    return 0;
}
ADAPTER(cuGraphKernelNodeGetParams_v2, get_kernel_v1, (void *node, void *params),
        (to, node, params), NULL)

/* ---- nodes of any kind ------------------------------------------------------------------------------- */

/* CUgraphNodeParams; the beginning is that of all kinds. */
struct node_params {
    int kind, reserved[3];
    struct {
        void *func;
        unsigned sizes[7];
        void *arguments, *extra, *kern, *ctx;
    } kernel;
};
enum { KERNEL_NODE = 0 /* CU_GRAPH_NODE_TYPE_KERNEL */ };

/* From 13.4 on, func must match ctx; before, ctx is ignored if func is set. */
#define WITHOUT_CONTEXT "kernels without both func and ctx"

static inline int has_context(const struct node_params *params)
{
    return params && params->kind == KERNEL_NODE && params->kernel.func && params->kernel.ctx;
}

static inline int node_without_context(targets to, void *node, void *graph, void *dependencies,
                                       const void *edges, size_t count, void *params)
{
    if (has_context(params))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, void *, void *, const void *, size_t, void *))(
        node, graph, dependencies, edges, count, params);
}

static inline int node_without_context_and_data(targets to, void *node, void *graph,
                                                void *dependencies, const void *edges,
                                                size_t count, void *params)
{
    if (has_context(params))
        return NOT_SUPPORTED;
    return node_without_data(to, node, graph, dependencies, edges, count, params);
}

NODE_ADAPTER(cuGraphAddNode_v2, node_without_data, DEFAULT_EDGES)
NODE_ADAPTER(cuGraphAddNode_v3, node_without_context, WITHOUT_CONTEXT)
NODE_ADAPTER(cuGraphAddNode_v3, node_without_context_and_data,
             WITHOUT_CONTEXT " and " DEFAULT_EDGES)

/* ---- graphs and stream capture ----------------------------------------------------------------------- */

DEPENDENCIES_ADAPTER(cuGraphAddDependencies_v2)
DEPENDENCIES_ADAPTER(cuGraphRemoveDependencies_v2)
CAPTURE_DEPENDENCIES_ADAPTER(cuStreamUpdateCaptureDependencies_v2)
CAPTURE_DEPENDENCIES_ADAPTER(cuStreamUpdateCaptureDependencies_v2_ptsz)
EDGES_ADAPTER(cuGraphGetEdges_v2)
NEIGHBOURS_ADAPTER(cuGraphNodeGetDependencies_v2)
NEIGHBOURS_ADAPTER(cuGraphNodeGetDependentNodes_v2)
CAPTURE_7(cuStreamGetCaptureInfo_v3)
CAPTURE_7(cuStreamGetCaptureInfo_v3_ptsz)
UPDATE_OF_INFO(cuGraphExecUpdate_v2)

/* ---- attributes of streams and kernels --------------------------------------------------------------- */

/* CUstreamAttrValue and CUkernelNodeAttrValue, unions: of 11.7, and of 11.8 on. */
enum { ATTRIBUTE_SIZE_11_7 = 32, ATTRIBUTE_SIZE = 64 };

static inline int get_attribute_of_11_7(targets to, void *object, int attribute, void *value)
{
    _Alignas(void *) char theirs[ATTRIBUTE_SIZE] = {0};
    int code = FUNCTION(0, (void *, int, void *))(object, attribute, value ? theirs : NULL);
    if (!code && value)
        memcpy(value, theirs, ATTRIBUTE_SIZE_11_7);
    return code;
}

static inline int set_attribute_of_11_7(targets to, void *object, int attribute, const void *value)
{
    _Alignas(void *) char theirs[ATTRIBUTE_SIZE] = {0};
    if (value)
        memcpy(theirs, value, ATTRIBUTE_SIZE_11_7);
    return FUNCTION(0, (void *, int, const void *))(object, attribute, value ? theirs : NULL);
}

#define GET_ATTRIBUTE(function)                                                                    \
    ADAPTER(function, get_attribute_of_11_7, (void *object, int attribute, void *value),           \
            (to, object, attribute, value), NULL)
#define SET_ATTRIBUTE(function)                                                                    \
    ADAPTER(function, set_attribute_of_11_7, (void *object, int attribute, const void *value),     \
            (to, object, attribute, value), NULL)
GET_ATTRIBUTE(cuStreamGetAttribute)
GET_ATTRIBUTE(cuStreamGetAttribute_ptsz)
GET_ATTRIBUTE(cuGraphKernelNodeGetAttribute)
SET_ATTRIBUTE(cuStreamSetAttribute)
SET_ATTRIBUTE(cuStreamSetAttribute_ptsz)
SET_ATTRIBUTE(cuGraphKernelNodeSetAttribute)
