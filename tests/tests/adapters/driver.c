/* Calls functions of the driver that an older driver, libcuda.c, lacks: driver LIBRARY PART. Prints results
 * after the calls that the library prints. What a call leaves untouched is filled with 0xee. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;

struct location {
    int type, id;
};
struct context_params {
    void *affinities;
    int count;
    void *graphics;
};
/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct kernel {
    void *func;
    unsigned sizes[7];
    void *arguments, *extra, *kern, *ctx;
};
_Static_assert(sizeof(struct kernel) == 72, "as in cuda.h 12.0");
/* CUgraphNodeParams */
struct node_params {
    int type, reserved[3];
    union {
        struct kernel kernel;
        long long rest[30];
    };
};
_Static_assert(sizeof(struct node_params) == 256, "as in cuda.h 12.3");
struct update {
    int result;
    void *error_node, *error_from_node;
};

int cuCtxCreate_v4(void **, struct context_params *, unsigned, int);
int cuGetProcAddress(const char *, void **, int, u64);
int cuGetProcAddress_v2(const char *, void **, int, u64, int *);
int cuMemPrefetchAsync_v2(u64, size_t, struct location, unsigned, void *);
int cuMemPrefetchAsync_v2_ptsz(u64, size_t, struct location, unsigned, void *);
int cuMemAdvise_v2(u64, size_t, int, struct location);
int cuGraphAddKernelNode_v2(void **, void *, void *, size_t, const struct kernel *);
int cuGraphKernelNodeSetParams_v2(void *, const struct kernel *);
int cuGraphExecKernelNodeSetParams_v2(void *, void *, const struct kernel *);
int cuGraphKernelNodeGetParams_v2(void *, struct kernel *);
int cuGraphAddDependencies_v2(void *, void *, void *, const void *, size_t);
int cuGraphRemoveDependencies_v2(void *, void *, void *, const void *, size_t);
int cuStreamUpdateCaptureDependencies_v2(void *, void *, const void *, size_t, unsigned);
int cuStreamUpdateCaptureDependencies_v2_ptsz(void *, void *, const void *, size_t, unsigned);
int cuGraphGetEdges_v2(void *, void **, void **, void *, size_t *);
int cuGraphNodeGetDependencies_v2(void *, void **, void *, size_t *);
int cuGraphNodeGetDependentNodes_v2(void *, void **, void *, size_t *);
int cuStreamGetCaptureInfo_v3(void *, int *, u64 *, void **, void **, void **, size_t *);
int cuStreamGetCaptureInfo_v3_ptsz(void *, int *, u64 *, void **, void **, void **, size_t *);
int cuGraphExecUpdate_v2(void *, void *, struct update *);
int cuGraphAddNode(void **, void *, void *, size_t, void *);
int cuGraphAddNode_v2(void **, void *, void *, const void *, size_t, void *);
int cuGraphAddNode_v3(void **, void *, void *, const void *, size_t, void *);
int cuMemcpyBatchAsync(void *, void *, void *, size_t, void *, void *, size_t, size_t *, void *);
int cuMemcpyBatchAsync_v2(void *, void *, void *, size_t, void *, void *, size_t, void *);
int cuMemcpyBatchAsync_v2_ptsz(void *, void *, void *, size_t, void *, void *, size_t, void *);
int cuMemcpy3DBatchAsync_v2(size_t, void *, u64, void *);
int cuMemcpy3DBatchAsync_v2_ptsz(size_t, void *, u64, void *);
int cuStreamGetAttribute(void *, int, void *);
int cuStreamGetAttribute_ptsz(void *, int, void *);
int cuGraphKernelNodeGetAttribute(void *, int, void *);
int cuStreamSetAttribute(void *, int, const void *);
int cuStreamSetAttribute_ptsz(void *, int, const void *);
int cuGraphKernelNodeSetAttribute(void *, int, const void *);

static int *fake_code;

/* Prints a call, its code, and its results, each by its first bytes: of runs, one and their length. */
#define CALL(call, ...)                                                                            \
    do {                                                                                           \
        printf("%s\n", #call);                                                                     \
        int code = call;                                                                           \
        printf("  = %d", code);                                                                    \
        const struct result results[] = {__VA_ARGS__ {NULL, 0}};                                   \
        for (const struct result *one = results; one->data; one++)                                 \
            show(one);                                                                             \
        printf("\n");                                                                              \
    } while (0)
#define OUT(variable) {&variable, sizeof variable},

struct result {
    const void *data;
    size_t size;
};

static void show(const struct result *result)
{
    const unsigned char *byte = result->data;
    printf(" |");
    for (size_t i = 0, length; i < result->size; i += length) {
        for (length = 1; i + length < result->size && byte[i + length] == byte[i];)
            length++;
        printf(length > 1 ? " %02x*%zu" : " %02x", byte[i], length);
    }
}

#define FILL(variable) memset(&variable, 0xee, sizeof variable)

static void *const a = (void *)0xa, *const b = (void *)0xb, *const c = (void *)0xc;
static const char zeros[16], data[16] = {[9] = 1};

static void contexts(void)
{
    void *context;
    struct context_params regular = {NULL, 0, NULL}, count_only = {NULL, 3, NULL};
    struct context_params affinities = {a, 2, NULL}, graphics = {NULL, 0, b}, both = {a, 2, b};
    FILL(context);
    CALL(cuCtxCreate_v4(&context, NULL, 4, 1), OUT(context));
    CALL(cuCtxCreate_v4(&context, &affinities, 4, 1), OUT(context));
    CALL(cuCtxCreate_v4(&context, &regular, 4, 1), OUT(context));
    FILL(context);
    CALL(cuCtxCreate_v4(&context, &count_only, 4, 1), OUT(context));
    FILL(context);
    CALL(cuCtxCreate_v4(&context, &graphics, 4, 1), OUT(context));
    CALL(cuCtxCreate_v4(&context, &both, 4, 1), OUT(context));
}

static void addresses(void)
{
    void *function;
    int status;
    FILL(function), FILL(status);
    CALL(cuGetProcAddress_v2("cuKnown", &function, 12000, 2, &status), OUT(function) OUT(status));
    CALL(cuGetProcAddress_v2("cuKnown", &function, 12000, 2, NULL), OUT(function));
    FILL(function), FILL(status);
    CALL(cuGetProcAddress_v2("cuLater", &function, 11030, 2, &status), OUT(function) OUT(status));
    FILL(function), FILL(status);
    CALL(cuGetProcAddress_v2("cuUnknown", &function, 12000, 2, &status), OUT(function) OUT(status));
    CALL(cuGetProcAddress_v2("cuUnknown", NULL, 12000, 2, NULL), );
    FILL(function), FILL(status), *fake_code = 1;
    CALL(cuGetProcAddress_v2("cuKnown", &function, 12000, 2, &status), OUT(function) OUT(status));
    *fake_code = 0;
}

#define LOOK_UP(name, version)                                                                     \
    FILL(function), FILL(status);                                                                  \
    CALL(cuGetProcAddress_v2(name, &function, version, 2, &status), OUT(function) OUT(status))

/* Of versions before and after the driver's. */
static void entries(void)
{
    void *function;
    int status;
    LOOK_UP("cuKnown", 12000);
    LOOK_UP("cuKnown", 13020);
    LOOK_UP("cuUnknown", 12000);
    LOOK_UP("cuUnknown", 13020);
    LOOK_UP("cuLater", 11030);
    LOOK_UP("cuGraphAddNode", 12020);
    LOOK_UP("cuGraphAddNode", 13020);
    LOOK_UP("cuGraphAddNode", 13040);
    FILL(function);
    CALL(cuGetProcAddress_v2("cuGraphAddNode", &function, 13040, 2, NULL), OUT(function));
    FILL(status);
    CALL(cuGetProcAddress_v2("cuKnown", NULL, 13020, 2, &status), OUT(status));
    *fake_code = 46;
    LOOK_UP("cuKnown", 13020);
    *fake_code = 0;
    FILL(function);
    CALL(cuGetProcAddress("cuKnown", &function, 13020, 2), OUT(function));
    FILL(function);
    CALL(cuGetProcAddress("cuGraphAddNode", &function, 13040, 2), OUT(function));
    CALL(cuGetProcAddress("cuKnown", NULL, 13020, 2), );
}

static void locations(void)
{
    struct location none = {0, 0}, device = {1, 3}, host = {2, 9}, numa = {3, 1};
    CALL(cuMemPrefetchAsync_v2(0xa, 8, device, 0, b), );
    CALL(cuMemPrefetchAsync_v2_ptsz(0xa, 8, device, 0, b), );
    CALL(cuMemPrefetchAsync_v2(0xa, 8, host, 0, b), );
    CALL(cuMemPrefetchAsync_v2(0xa, 8, numa, 0, b), );
    CALL(cuMemPrefetchAsync_v2(0xa, 8, device, 1, b), );
    CALL(cuMemAdvise_v2(0xa, 8, 3, device), );
    CALL(cuMemAdvise_v2(0xa, 8, 5, host), );
    CALL(cuMemAdvise_v2(0xa, 8, 3, numa), );
    CALL(cuMemAdvise_v2(0xa, 8, 1, numa), );
    CALL(cuMemAdvise_v2(0xa, 8, 2, none), );
    CALL(cuMemAdvise_v2(0xa, 8, 4, none), );
    CALL(cuMemAdvise_v2(0xa, 8, 6, none), );
}

static void kernels(void)
{
    void *node;
    struct kernel filled, func = {a, {1, 2, 3, 4, 5, 6, 7}, b, c, NULL, NULL}, all = func;
    struct kernel kern = {.kern = a}, ctx = {.ctx = a}, nothing = {.func = NULL};
    all.kern = b, all.ctx = c;
    FILL(node), FILL(filled);
    CALL(cuGraphAddKernelNode_v2(&node, a, b, 2, &func), OUT(node));
    CALL(cuGraphAddKernelNode_v2(&node, a, b, 2, &all), OUT(node));
    FILL(node);
    CALL(cuGraphAddKernelNode_v2(&node, a, b, 2, &kern), OUT(node));
    CALL(cuGraphAddKernelNode_v2(&node, a, b, 2, &ctx), OUT(node));
    CALL(cuGraphAddKernelNode_v2(&node, a, b, 2, &nothing), );
    CALL(cuGraphAddKernelNode_v2(&node, a, b, 2, NULL), );
    CALL(cuGraphKernelNodeSetParams_v2(a, &func), );
    CALL(cuGraphKernelNodeSetParams_v2(a, &kern), );
    CALL(cuGraphKernelNodeSetParams_v2(a, NULL), );
    CALL(cuGraphExecKernelNodeSetParams_v2(a, b, &func), );
    CALL(cuGraphExecKernelNodeSetParams_v2(a, b, &kern), );
    CALL(cuGraphExecKernelNodeSetParams_v2(a, b, NULL), );
    *fake_code = 999;
    CALL(cuGraphKernelNodeGetParams_v2(a, &filled), OUT(filled));
    *fake_code = 0;
    CALL(cuGraphKernelNodeGetParams_v2(a, &filled), OUT(filled));
    CALL(cuGraphKernelNodeGetParams_v2(a, NULL), );
}

static void dependencies(void)
{
    CALL(cuGraphAddDependencies_v2(a, b, c, NULL, 2), );
    CALL(cuGraphAddDependencies_v2(a, b, c, zeros, 2), );
    CALL(cuGraphAddDependencies_v2(a, b, c, data, 2), );
    CALL(cuGraphAddDependencies_v2(a, b, c, data, 1), );
    CALL(cuGraphRemoveDependencies_v2(a, b, c, zeros, 2), );
    CALL(cuGraphRemoveDependencies_v2(a, b, c, data, 2), );
    CALL(cuStreamUpdateCaptureDependencies_v2(a, b, zeros, 2, 1), );
    CALL(cuStreamUpdateCaptureDependencies_v2(a, b, data, 2, 1), );
    CALL(cuStreamUpdateCaptureDependencies_v2_ptsz(a, b, NULL, 2, 1), );
}

static void edges(void)
{
    void *from[3], *onto[3];
    char found[24];
    size_t count = 3;
    FILL(from), FILL(onto), FILL(found);
    CALL(cuGraphGetEdges_v2(a, NULL, NULL, NULL, &count), OUT(count));
    count = 1;
    CALL(cuGraphGetEdges_v2(a, from, onto, found, &count), OUT(from) OUT(onto) OUT(found) OUT(count));
    count = 3;
    CALL(cuGraphGetEdges_v2(a, from, onto, found, &count), OUT(from) OUT(onto) OUT(found) OUT(count));
    count = 3, FILL(found);
    CALL(cuGraphGetEdges_v2(a, from, onto, NULL, &count), OUT(count));
    CALL(cuGraphGetEdges_v2(a, NULL, NULL, found, &count), OUT(found));
    CALL(cuGraphGetEdges_v2(a, from, onto, found, NULL), OUT(found));
    CALL(cuGraphNodeGetDependencies_v2(a, NULL, NULL, &count), OUT(count));
    count = 3;
    CALL(cuGraphNodeGetDependencies_v2(a, from, found, &count), OUT(from) OUT(found) OUT(count));
    count = 1, FILL(found);
    CALL(cuGraphNodeGetDependentNodes_v2(a, onto, found, &count), OUT(onto) OUT(found) OUT(count));
    *fake_code = 999, FILL(found);
    CALL(cuGraphGetEdges_v2(a, from, onto, found, &count), OUT(found) OUT(count));
    CALL(cuGraphNodeGetDependencies_v2(a, from, found, &count), OUT(found) OUT(count));
    *fake_code = 0;
}

static void captures(void)
{
    int status;
    u64 id;
    void *graph, *nodes, *found;
    size_t count;
    FILL(status), FILL(id), FILL(graph), FILL(nodes), FILL(found), FILL(count);
    *fake_code = 999;
    CALL(cuStreamGetCaptureInfo_v3(a, &status, &id, &graph, &nodes, &found, &count),
         OUT(status) OUT(id) OUT(graph) OUT(nodes) OUT(found) OUT(count));
    *fake_code = 0;
    CALL(cuStreamGetCaptureInfo_v3(a, &status, &id, &graph, &nodes, &found, &count),
         OUT(status) OUT(id) OUT(graph) OUT(nodes) OUT(found) OUT(count));
    CALL(cuStreamGetCaptureInfo_v3_ptsz(a, &status, NULL, NULL, NULL, NULL, NULL), OUT(status));
}

static void updates(void)
{
    struct update info;
    memset(&info, 0, sizeof info); /* also the padding */
    info.error_from_node = a;
    *fake_code = 999;
    CALL(cuGraphExecUpdate_v2(a, b, &info), OUT(info));
    *fake_code = 910;
    CALL(cuGraphExecUpdate_v2(a, b, &info), OUT(info));
    *fake_code = 0;
    CALL(cuGraphExecUpdate_v2(a, b, &info), OUT(info));
    CALL(cuGraphExecUpdate_v2(a, b, NULL), );
}

static void nodes(void)
{
    void *node;
    struct node_params kernel = {.kernel = {.func = a}}, context = {.kernel = {.func = a, .ctx = b}};
    struct node_params kern = {.kernel = {.kern = a, .ctx = b}}, copy = context;
    copy.type = 1;
    FILL(node);
    CALL(cuGraphAddNode_v2(&node, a, b, NULL, 2, &context), OUT(node));
    FILL(node);
    CALL(cuGraphAddNode_v2(&node, a, b, data, 2, &kernel), OUT(node));
    CALL(cuGraphAddNode_v3(&node, a, b, data, 2, &kernel), OUT(node));
    CALL(cuGraphAddNode_v3(&node, a, b, zeros, 2, &kernel), OUT(node));
    FILL(node);
    CALL(cuGraphAddNode_v3(&node, a, b, NULL, 2, &context), OUT(node));
    CALL(cuGraphAddNode_v3(&node, a, b, NULL, 2, &kern), OUT(node));
    CALL(cuGraphAddNode_v3(&node, a, b, NULL, 2, &copy), OUT(node));
    CALL(cuGraphAddNode_v3(&node, a, b, NULL, 2, NULL), );
}

static void batches(void)
{
    CALL(cuMemcpyBatchAsync_v2(a, b, c, 1, a, b, 2, c), );
    CALL(cuMemcpyBatchAsync_v2_ptsz(a, b, c, 1, a, b, 2, c), );
    CALL(cuMemcpy3DBatchAsync_v2(1, a, 2, b), );
    CALL(cuMemcpy3DBatchAsync_v2_ptsz(1, a, 2, b), );
    *fake_code = 999;
    CALL(cuMemcpyBatchAsync_v2(a, b, c, 1, a, b, 2, c), );
    CALL(cuMemcpy3DBatchAsync_v2(1, a, 2, b), );
    *fake_code = 0;
}

/* The driver has no function that serves these. */
static void missing(void)
{
    void *node;
    FILL(node);
    CALL(cuGraphAddNode(&node, a, b, 2, c), );
    CALL(cuGraphAddNode_v3(&node, a, b, NULL, 2, c), );
    CALL(cuMemcpyBatchAsync(a, b, c, 1, a, b, 2, NULL, c), );
    CALL(cuMemcpyBatchAsync_v2(a, b, c, 1, a, b, 2, c), );
}

/* The union of the program's headers, and bytes behind it. */
static void attributes(void)
{
    char value[80];
    memset(value, 0xee, sizeof value);
    *fake_code = 999;
    CALL(cuStreamGetAttribute(a, 1, value), OUT(value));
    *fake_code = 0;
    CALL(cuStreamGetAttribute(a, 1, value), OUT(value));
    FILL(value);
    CALL(cuGraphKernelNodeGetAttribute(a, 1, value), OUT(value));
    CALL(cuStreamGetAttribute_ptsz(a, 1, NULL), );
    FILL(value);
    CALL(cuStreamSetAttribute(a, 1, value), );
    CALL(cuStreamSetAttribute_ptsz(a, 1, value), );
    CALL(cuGraphKernelNodeSetAttribute(a, 1, value), );
    CALL(cuGraphKernelNodeSetAttribute(a, 1, NULL), );
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        {"contexts", contexts}, {"addresses", addresses},   {"entries", entries},
        {"locations", locations},
        {"kernels", kernels},   {"dependencies", dependencies}, {"edges", edges},
        {"captures", captures}, {"updates", updates},       {"nodes", nodes},
        {"batches", batches},   {"missing", missing},       {"attributes", attributes},
    };
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    fake_code = library ? dlsym(library, "fake_code") : NULL;
    if (!fake_code)
        return 1;
    for (int i = 2; i < count; i++)
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            if (!strcmp(arguments[i], parts[j].name))
                parts[j].run();
    return 0;
}
