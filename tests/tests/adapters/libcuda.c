/* Fake driver of the version VERSION that prints its calls. Of the names that adapters concern it exports
 * only those that the driver of this version has. Fails with `fake_code`, and then still fills structs, which an
 * adapter must not pass on. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long u64;

int fake_code;

#define SET(pointer) ((pointer) ? "set" : "null")
#define CALLED(...)                                                                                \
    do {                                                                                           \
        printf("  > %s", __func__);                                                                \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
    } while (0)

/* Number of bytes at `data` that are not zero, to the end of a struct that the driver reads wholly. */
static int count_set(const void *data, size_t size)
{
    int count = 0;
    for (size_t i = 0; i < size; i++)
        count += ((const unsigned char *)data)[i] != 0;
    return count;
}

int cuDriverGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

int cuInit(unsigned flags) { return (int)flags; }

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    CALLED(" flags %u, device %d", flags, device);
    if (!fake_code)
        *context = (void *)0xc2;
    return fake_code;
}

int cuCtxCreate_v3(void **context, void *affinities, int count, unsigned flags, int device)
{
    CALLED(" %p, %d, flags %u, device %d", affinities, count, flags, device);
    if (!fake_code)
        *context = (void *)0xc3;
    return fake_code;
}

/* The functions that names stand for from a version on. */
static const struct {
    const char *name;
    int since;
    void *function;
} entries[] = {
    {"cuKnown", 11000, (void *)0xf},          {"cuLater", 11040, (void *)0xe},
    {"cuGraphAddNode", 12020, (void *)0xadd}, {"cuGraphAddNode", 12030, (void *)0xadd2},
    {"cuGraphAddNode", 13040, (void *)0xadd4},
};

/* Answers as 535.261.03 (12.2) and 580.159.04 (13.0) do: the former takes a version after its own for its own, the latter
 * says that the value is invalid, and writes nothing. Returns whether the driver knows the name in any version. */
static int find_entry(const char *name, int version, void **function)
{
    int is_known = 0;
    *function = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (entries[i].since <= VERSION && !strcmp(name, entries[i].name)) {
            is_known = 1;
            if (entries[i].since <= version)
                *function = entries[i].function;
        }
    return is_known;
}

static int is_invalid(void **function, int version)
{
    return !function || (VERSION >= 13000 && version > VERSION);
}

int cuGetProcAddress(const char *name, void **function, int version, u64 flags)
{
    void *entry;
    CALLED(" %s, %s, version %d, flags %llu", name, SET(function), version, flags);
    if (fake_code || is_invalid(function, version))
        return fake_code ? fake_code : 1;
    find_entry(name, version, &entry);
    if (entry)
        *function = entry;
    return entry ? 0 : 500;
}

#if VERSION >= 12000
int cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *status)
{
    int is_known;
    CALLED(" %s, %s, version %d, flags %llu, %s", name, SET(function), version, flags, SET(status));
    if (fake_code || is_invalid(function, version))
        return fake_code ? fake_code : 1;
    is_known = find_entry(name, version, function);
    if (status)
        *status = *function ? 0 : is_known ? 2 : 1;
    return 0;
}
#endif

int cuMemPrefetchAsync(u64 memory, size_t size, int device, void *stream)
{
    CALLED(" %#llx, %zu, device %d, %p", memory, size, device, stream);
    return fake_code;
}

int cuMemPrefetchAsync_ptsz(u64 memory, size_t size, int device, void *stream)
{
    CALLED(" %#llx, %zu, device %d, %p", memory, size, device, stream);
    return fake_code;
}

int cuMemAdvise(u64 memory, size_t size, int advice, int device)
{
    CALLED(" %#llx, %zu, advice %d, device %d", memory, size, advice, device);
    return fake_code;
}

/* ---- graphs ---- */

/* CUDA_KERNEL_NODE_PARAMS_v1 */
struct kernel {
    void *func;
    unsigned sizes[7];
    void *arguments, *extra;
};
_Static_assert(sizeof(struct kernel) == 56, "as in cuda.h 11.8");

static const char *kernel(const struct kernel *params)
{
    static char text[200];
    const unsigned *size = params ? params->sizes : NULL;
    if (!params)
        return "null";
    snprintf(text, sizeof text, "%p, %u %u %u, %u %u %u, %u, %p, %p", params->func, size[0], size[1],
             size[2], size[3], size[4], size[5], size[6], params->arguments, params->extra);
    return text;
}

int cuGraphAddKernelNode(void **node, void *graph, void *const *dependencies, size_t count,
                         const struct kernel *params)
{
    CALLED(" %p, %p, %zu, {%s}", graph, (void *)dependencies, count, kernel(params));
    if (!fake_code)
        *node = (void *)0xadd;
    return fake_code;
}

int cuGraphKernelNodeSetParams(void *node, const struct kernel *params)
{
    CALLED(" %p, {%s}", node, kernel(params));
    return fake_code;
}

int cuGraphExecKernelNodeSetParams(void *exec, void *node, const struct kernel *params)
{
    CALLED(" %p, %p, {%s}", exec, node, kernel(params));
    return fake_code;
}

int cuGraphKernelNodeGetParams(void *node, struct kernel *params)
{
    CALLED(" %p, %s", node, SET(params));
    if (params)
        *params = (struct kernel){(void *)0x1, {2, 3, 4, 5, 6, 7, 8}, (void *)0x9, (void *)0xa};
    return params ? fake_code : 1;
}

int cuGraphAddDependencies(void *graph, void *from, void *onto, size_t count)
{
    CALLED(" %p, %p, %p, %zu", graph, from, onto, count);
    return fake_code;
}

int cuGraphRemoveDependencies(void *graph, void *from, void *onto, size_t count)
{
    CALLED(" %p, %p, %p, %zu", graph, from, onto, count);
    return fake_code;
}

int cuStreamUpdateCaptureDependencies(void *stream, void *dependencies, size_t count, unsigned flags)
{
    CALLED(" %p, %p, %zu, flags %u", stream, dependencies, count, flags);
    return fake_code;
}

int cuStreamUpdateCaptureDependencies_ptsz(void *stream, void *dependencies, size_t count,
                                           unsigned flags)
{
    CALLED(" %p, %p, %zu, flags %u", stream, dependencies, count, flags);
    return fake_code;
}

/* A graph with two edges. Of more, null is written; the count becomes that of those written. */
static int two(void **nodes, size_t *count, char first)
{
    if (!count)
        return 1;
    for (size_t i = 0; !fake_code && nodes && i < *count; i++)
        nodes[i] = i < 2 ? (void *)(first + i) : NULL;
    if (!fake_code && (!nodes || *count > 2))
        *count = 2;
    return fake_code;
}

int cuGraphGetEdges(void *graph, void **from, void **onto, size_t *count)
{
    size_t of_onto = count ? *count : 0;
    CALLED(" %p, %s, %s, %zu", graph, SET(from), SET(onto), of_onto);
    (void)two(onto, &of_onto, 0x20);
    return two(from, count, 0x10);
}

int cuGraphNodeGetDependencies(void *node, void **nodes, size_t *count)
{
    CALLED(" %p, %s, %zu", node, SET(nodes), count ? *count : 0);
    return two(nodes, count, 0x30);
}

int cuGraphNodeGetDependentNodes(void *node, void **nodes, size_t *count)
{
    CALLED(" %p, %s, %zu", node, SET(nodes), count ? *count : 0);
    return two(nodes, count, 0x40);
}

static int capture_info(int *status, u64 *id, void **graph, void **dependencies, size_t *count)
{
    if (fake_code)
        return fake_code;
    *status = 1;
    if (id)
        *id = 77;
    if (graph)
        *graph = (void *)0x50;
    if (dependencies)
        *dependencies = (void *)0x51;
    if (count)
        *count = 3;
    return 0;
}

int cuStreamGetCaptureInfo_v2(void *stream, int *status, u64 *id, void **graph, void **dependencies,
                              size_t *count)
{
    CALLED(" %p", stream);
    return capture_info(status, id, graph, dependencies, count);
}

int cuStreamGetCaptureInfo_v2_ptsz(void *stream, int *status, u64 *id, void **graph,
                                   void **dependencies, size_t *count)
{
    CALLED(" %p", stream);
    return capture_info(status, id, graph, dependencies, count);
}

int cuGraphExecUpdate(void *exec, void *graph, void **error_node, int *result)
{
    CALLED(" %p, %p", exec, graph);
    *error_node = fake_code ? (void *)0x60 : NULL;
    *result = fake_code ? 2 : 0;
    return fake_code;
}

#if VERSION >= 12020
int cuGraphAddNode(void **node, void *graph, void *dependencies, size_t count, void *params)
{
    CALLED(" %p, %p, %zu, %s", graph, dependencies, count, SET(params));
    if (!fake_code)
        *node = (void *)0xad1;
    return fake_code;
}
#endif

#if VERSION >= 12030
int cuGraphAddNode_v2(void **node, void *graph, void *dependencies, const void *edges, size_t count,
                      void *params)
{
    CALLED(" %p, %p, %s, %zu, %s", graph, dependencies, SET(edges), count, SET(params));
    if (!fake_code)
        *node = (void *)0xad2;
    return fake_code;
}
#endif

/* ---- batches of copies ---- */

#if VERSION >= 12080
#define BATCH(name)                                                                                \
    int name(void *onto, void *from, void *sizes, size_t count, void *attributes, void *indices,   \
             size_t attribute_count, size_t *failed, void *stream)                                 \
    {                                                                                              \
        CALLED(" %p, %p, %p, %zu, %p, %p, %zu, %s, %p", onto, from, sizes, count, attributes, indices, \
               attribute_count, SET(failed), stream);                                              \
        *failed = 5;                                                                               \
        return fake_code;                                                                          \
    }
#define BATCH_3D(name)                                                                             \
    int name(size_t count, void *operations, size_t *failed, u64 flags, void *stream)              \
    {                                                                                              \
        CALLED(" %zu, %p, %s, flags %llu, %p", count, operations, SET(failed), flags, stream);     \
        *failed = 5;                                                                               \
        return fake_code;                                                                          \
    }
BATCH(cuMemcpyBatchAsync)
BATCH(cuMemcpyBatchAsync_ptsz)
BATCH_3D(cuMemcpy3DBatchAsync)
BATCH_3D(cuMemcpy3DBatchAsync_ptsz)
#endif

/* ---- attributes: a union of 32 bytes in 11.7, of 64 bytes from 11.8 on ---- */

enum { ATTRIBUTE_SIZE = VERSION < 11080 ? 32 : 64 };

#define GET(name)                                                                                  \
    int name(void *object, int attribute, void *value)                                             \
    {                                                                                              \
        CALLED(" %p, %d, %s", object, attribute, SET(value));                                      \
        if (value)                                                                                 \
            memset(value, 0xaa, ATTRIBUTE_SIZE);                                                   \
        return value ? fake_code : 1;                                                              \
    }
#define GIVE(name)                                                                                 \
    int name(void *object, int attribute, const void *value)                                       \
    {                                                                                              \
        CALLED(" %p, %d, %s, %d bytes set", object, attribute, SET(value),                         \
               value ? count_set(value, ATTRIBUTE_SIZE) : 0);                                      \
        return value ? fake_code : 1;                                                              \
    }
GET(cuStreamGetAttribute)
GET(cuStreamGetAttribute_ptsz)
GET(cuGraphKernelNodeGetAttribute)
GIVE(cuStreamSetAttribute)
GIVE(cuStreamSetAttribute_ptsz)
GIVE(cuGraphKernelNodeSetAttribute)
