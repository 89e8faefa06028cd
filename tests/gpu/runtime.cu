// Work through the CUDA runtime, with results that do not depend on its version. Prints a line for each call, `CALL -> CODE`,
// and lines with results. `since VERSION:` starts the lines of what an older runtime lacks. Exit codes: 0, 1 (a call
// failed), 3 (no device).
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

static int failures;
#define TRY(call)                                                          \
    do {                                                                   \
        cudaError_t code_ = (call);                                        \
        printf("%s -> %d %s\n", #call, code_, cudaGetErrorName(code_));    \
        if (code_) {                                                       \
            failures++;                                                    \
            cudaGetLastError();                                            \
        }                                                                  \
    } while (0)

__device__ float factor_d = 3;
__constant__ float offset_c = 1;

__global__ void scale(float *values, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) values[at] = values[at] * factor_d + offset_c;
}
__global__ void add(float *to, const float *from, int count)
{
    extern __shared__ float shared[];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = at < count ? from[at] : 0;
    __syncthreads();
    if (at < count) to[at] += shared[threadIdx.x];
}
__global__ void sample(cudaTextureObject_t texture, float *out, int count)
{
    int at = threadIdx.x;
    if (at < count) out[at] = tex1Dfetch<float>(texture, at);
}
template <class T> __global__ void fill(T *to, T value, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) to[at] = value;
}

enum { COUNT = 1 << 16 };

static double sum_of(const float *device)
{
    static float host[COUNT];
    TRY(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    double sum = 0;
    for (int i = 0; i < COUNT; i++) sum += host[i];
    return sum;
}

static void CUDART_CB host_function(void *data) { ++*(int *)data; }

static void properties(void)
{
    cudaDeviceProp p;
    memset(&p, 0x5a, sizeof p);
    TRY(cudaGetDeviceProperties(&p, 0));
    printf("  %s, sm_%d%d, %zu bytes, %d processors, warp %d, bus %d L2 %d, managed %d, pools %d, blocks %d, shared %zu %zu\n",
        p.name, p.major, p.minor, p.totalGlobalMem, p.multiProcessorCount, p.warpSize, p.memoryBusWidth, p.l2CacheSize,
        p.managedMemory, p.concurrentManagedAccess, p.maxBlocksPerMultiProcessor, p.sharedMemPerBlockOptin, p.reservedSharedMemPerBlock);
#if CUDART_VERSION < 13000
    printf("  clock %d memory %d overlap %d timeout %d mode %d ratio %d texture %d\n", p.clockRate > 0, p.memoryClockRate > 0, p.deviceOverlap,
        p.kernelExecTimeoutEnabled, p.computeMode, p.singleToDoublePrecisionPerfRatio, p.maxTexture1DLinear);
#endif
    cudaFuncAttributes a;
    memset(&a, 0x5a, sizeof a);
    TRY(cudaFuncGetAttributes(&a, add));
    printf("  threads %d, constant %zu, local %zu, shared %zu, dynamic %d, binary %d\n", a.maxThreadsPerBlock, a.constSizeBytes,
        a.localSizeBytes, a.sharedSizeBytes, a.maxDynamicSharedSizeBytes, a.binaryVersion);
#if CUDART_VERSION >= 12000
    printf("  cluster dims %d, must %d, %d %d %d, policy %d nonportable %d\n", a.clusterDimMustBeSet, a.requiredClusterWidth, a.requiredClusterHeight,
        a.requiredClusterDepth, a.clusterSchedulingPolicyPreference, a.nonPortableClusterSizeAllowed, 0);
#endif
    TRY(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 70000));
    int blocks = 0, grid = 0, block = 0;
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 1024));
    TRY(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale));
    printf("  occupancy %d %d %d\n", blocks, grid, block);
}

static void managed(void)
{
    float *m;
    TRY(cudaMallocManaged(&m, COUNT * sizeof *m));
    for (int i = 0; i < COUNT; i++) m[i] = 1;
#if CUDART_VERSION >= 13000
    cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    TRY(cudaMemAdvise(m, COUNT * sizeof *m, cudaMemAdviseSetPreferredLocation, device));
    TRY(cudaMemAdvise(m, COUNT * sizeof *m, cudaMemAdviseSetReadMostly, device));
    TRY(cudaMemPrefetchAsync(m, COUNT * sizeof *m, device, 0, 0));
#else
    TRY(cudaMemAdvise(m, COUNT * sizeof *m, cudaMemAdviseSetPreferredLocation, 0));
    TRY(cudaMemAdvise(m, COUNT * sizeof *m, cudaMemAdviseSetReadMostly, 0));
    TRY(cudaMemPrefetchAsync(m, COUNT * sizeof *m, 0, 0));
#endif
    scale<<<COUNT / 256, 256>>>(m, COUNT);
    TRY(cudaGetLastError());
#if CUDART_VERSION >= 13000
    TRY(cudaMemPrefetchAsync(m, COUNT * sizeof *m, host, 0, 0));
#else
    TRY(cudaMemPrefetchAsync(m, COUNT * sizeof *m, cudaCpuDeviceId, 0));
#endif
    TRY(cudaDeviceSynchronize());
    double sum = 0;
    for (int i = 0; i < COUNT; i++) sum += m[i];
    printf("  managed sum %.0f\n", sum);
    int location = -9, read = -9;
    TRY(cudaMemRangeGetAttribute(&location, 4, cudaMemRangeAttributePreferredLocation, m, COUNT * sizeof *m));
    TRY(cudaMemRangeGetAttribute(&read, 4, cudaMemRangeAttributeReadMostly, m, COUNT * sizeof *m));
    printf("  preferred %d read mostly %d\n", location, read);
    cudaPointerAttributes a;
    memset(&a, 0x5a, sizeof a);
    TRY(cudaPointerGetAttributes(&a, m));
    printf("  type %d device %d same %d %d\n", a.type, a.device, a.devicePointer == m, a.hostPointer == m);
    int local;
    memset(&a, 0x5a, sizeof a);
    TRY(cudaPointerGetAttributes(&a, &local));
    printf("  type %d device %d null %d %d\n", a.type, a.device, !a.devicePointer, !a.hostPointer);
    TRY(cudaFree(m));
}

static void graphs(float *x, float *y)
{
    cudaStream_t s;
    cudaGraph_t g, built;
    cudaGraphExec_t e;
    TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    TRY(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    TRY(cudaMemsetAsync(x, 0, COUNT * sizeof *x, s));
    scale<<<COUNT / 256, 256, 0, s>>>(x, COUNT);
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    cudaGraph_t capturing = 0;
    const cudaGraphNode_t *dependencies = 0;
    size_t count = 99;
#if CUDART_VERSION >= 13000
    const cudaGraphEdgeData *edges = 0;
    TRY(cudaStreamGetCaptureInfo(s, &status, &id, &capturing, &dependencies, &edges, &count));
#elif CUDART_VERSION >= 12000
    TRY(cudaStreamGetCaptureInfo(s, &status, &id, &capturing, &dependencies, &count));
#else
    TRY(cudaStreamGetCaptureInfo_v2(s, &status, &id, &capturing, &dependencies, &count));
#endif
    printf("  status %d id %d graph %d dependencies %zu\n", status, id != 0, capturing != 0, count);
#if CUDART_VERSION >= 13000
    TRY(cudaStreamUpdateCaptureDependencies(s, (cudaGraphNode_t *)dependencies, 0, count, cudaStreamSetCaptureDependencies));
#else
    TRY(cudaStreamUpdateCaptureDependencies(s, (cudaGraphNode_t *)dependencies, count, cudaStreamSetCaptureDependencies));
#endif
    add<<<COUNT / 256, 256, 1024, s>>>(y, x, COUNT);
    TRY(cudaStreamEndCapture(s, &g));
#if CUDART_VERSION >= 12000
    TRY(cudaGraphInstantiate(&e, g, 0));
#else
    TRY(cudaGraphInstantiate(&e, g, 0, 0, 0));
#endif
    TRY(cudaGraphLaunch(e, s));
    TRY(cudaGraphLaunch(e, s));
    TRY(cudaStreamSynchronize(s));
    printf("  graph sums %.0f %.0f\n", sum_of(x), sum_of(y));

    size_t nodes = 0, froms = 0;
    TRY(cudaGraphGetNodes(g, 0, &nodes));
    cudaGraphNode_t all[8], from[8], to[8];
    nodes = 8;
    TRY(cudaGraphGetNodes(g, all, &nodes));
    froms = 8;
#if CUDART_VERSION >= 13000
    cudaGraphEdgeData data[8];
    TRY(cudaGraphGetEdges(g, from, to, data, &froms));
#else
    TRY(cudaGraphGetEdges(g, from, to, &froms));
#endif
    printf("  nodes %zu edges %zu\n", nodes, froms);
    for (size_t i = 0; i < nodes; i++) {
        cudaGraphNodeType type;
        size_t before = 8, after = 8;
        TRY(cudaGraphNodeGetType(all[i], &type));
#if CUDART_VERSION >= 13000
        TRY(cudaGraphNodeGetDependencies(all[i], from, data, &before));
        TRY(cudaGraphNodeGetDependentNodes(all[i], to, data, &after));
#else
        TRY(cudaGraphNodeGetDependencies(all[i], from, &before));
        TRY(cudaGraphNodeGetDependentNodes(all[i], to, &after));
#endif
        printf("  node type %d, %zu before, %zu after\n", type, before, after);
        if (type == cudaGraphNodeTypeKernel) {
            cudaKernelNodeParams k;
            memset(&k, 0x5a, sizeof k);
            TRY(cudaGraphKernelNodeGetParams(all[i], &k));
            printf("  grid %u block %u shared %u func %d\n", k.gridDim.x, k.blockDim.x, k.sharedMemBytes, k.func == (void *)scale ? 1 : k.func == (void *)add ? 2 : 0);
        }
    }

    TRY(cudaGraphCreate(&built, 0));
    cudaGraphNode_t set, first, second, copy, hosted;
    cudaMemsetParams m = {};
    m.dst = x, m.elementSize = 4, m.width = COUNT, m.height = 1, m.value = 0;
    TRY(cudaGraphAddMemsetNode(&set, built, 0, 0, &m));
    int number = COUNT;
    void *arguments[] = {&x, &number}, *sums[] = {&y, &x, &number};
    cudaKernelNodeParams k = {};
    k.func = (void *)scale, k.gridDim = dim3(COUNT / 256), k.blockDim = dim3(256), k.kernelParams = arguments;
    TRY(cudaGraphAddKernelNode(&first, built, 0, 0, &k));
    k.func = (void *)add, k.sharedMemBytes = 1024, k.kernelParams = sums;
    TRY(cudaGraphAddKernelNode(&second, built, &first, 1, &k));
#if CUDART_VERSION >= 13000
    TRY(cudaGraphAddDependencies(built, &set, &first, 0, 1));
#else
    TRY(cudaGraphAddDependencies(built, &set, &first, 1));
#endif
    static float out[COUNT];
    TRY(cudaGraphAddMemcpyNode1D(&copy, built, &second, 1, out, y, sizeof out, cudaMemcpyDeviceToHost));
    int calls = 0;
    cudaHostNodeParams h = {host_function, &calls};
    TRY(cudaGraphAddHostNode(&hosted, built, &copy, 1, &h));
    cudaGraphExec_t exec;
#if CUDART_VERSION >= 12000
    TRY(cudaGraphInstantiate(&exec, built, 0));
#else
    TRY(cudaGraphInstantiate(&exec, built, 0, 0, 0));
#endif
    TRY(cudaGraphLaunch(exec, s));
    TRY(cudaStreamSynchronize(s));
    printf("  built: %.0f, calls %d\n", sum_of(y), calls);
    sums[0] = &x;
    TRY(cudaGraphExecKernelNodeSetParams(exec, second, &k));
    TRY(cudaGraphLaunch(exec, s));
    TRY(cudaStreamSynchronize(s));
    printf("  changed: %.0f %.0f, calls %d\n", sum_of(x), sum_of(y), calls);
#if CUDART_VERSION >= 12000
    cudaGraphExecUpdateResultInfo info;
    memset(&info, 0x5a, sizeof info);
    TRY(cudaGraphExecUpdate(exec, built, &info));
    printf("  update %d\n", info.result);
    cudaGraphExecUpdate(exec, g, &info);
    cudaGetLastError();
    printf("  update with another graph: refused %d\n", info.result != 0);
#else
    cudaGraphExecUpdateResult result;
    cudaGraphNode_t bad;
    TRY(cudaGraphExecUpdate(exec, built, &bad, &result));
    printf("  update %d\n", result);
    cudaGraphExecUpdate(exec, g, &bad, &result);
    cudaGetLastError();
    printf("  update with another graph: refused %d\n", result != 0);
#endif
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphExecDestroy(e));
    TRY(cudaGraphDestroy(g));
    TRY(cudaGraphDestroy(built));
    TRY(cudaStreamDestroy(s));
}

static void pools(float *x)
{
    cudaMemPoolProps p;
    memset(&p, 0, sizeof p);
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool;
    float *m = 0;
    TRY(cudaMemPoolCreate(&pool, &p));
    TRY(cudaMallocFromPoolAsync((void **)&m, COUNT * sizeof *m, pool, 0));
    fill<float><<<COUNT / 256, 256>>>(m, 2, COUNT);
    TRY(cudaMemcpyAsync(x, m, COUNT * sizeof *m, cudaMemcpyDeviceToDevice, 0));
    TRY(cudaFreeAsync(m, 0));
    TRY(cudaStreamSynchronize(0));
    printf("  pool sum %.0f\n", sum_of(x));
    TRY(cudaMemPoolDestroy(pool));
}

static void textures(float *x, float *y)
{
    fill<float><<<COUNT / 256, 256>>>(x, 5, COUNT);
    cudaResourceDesc r;
    memset(&r, 0, sizeof r);
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = x, r.res.linear.desc = cudaCreateChannelDesc<float>(), r.res.linear.sizeInBytes = 256 * 4;
    cudaTextureDesc t;
    memset(&t, 0, sizeof t);
    t.readMode = cudaReadModeElementType;
    cudaTextureObject_t object;
    TRY(cudaCreateTextureObject(&object, &r, &t, 0));
    TRY(cudaMemset(y, 0, COUNT * sizeof *y));
    sample<<<1, 256>>>(object, y, 256);
    printf("  texture sum %.0f\n", sum_of(y));
    memset(&r, 0x5a, sizeof r), memset(&t, 0x5a, sizeof t);
    TRY(cudaGetTextureObjectResourceDesc(&r, object));
    TRY(cudaGetTextureObjectTextureDesc(&t, object));
    printf("  resource %d %d %zu, mode %d\n", r.resType, r.res.linear.devPtr == x, r.res.linear.sizeInBytes, t.readMode);
    TRY(cudaDestroyTextureObject(object));
    cudaArray_t array;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(), got;
    TRY(cudaMallocArray(&array, &desc, 64, 64));
    TRY(cudaMemcpy2DToArray(array, 0, 0, x, 256, 256, 64, cudaMemcpyDeviceToDevice));
    cudaExtent extent;
    unsigned flags;
    TRY(cudaArrayGetInfo(&got, &extent, &flags, array));
    printf("  array %d %zu %zu %zu %u\n", got.x, extent.width, extent.height, extent.depth, flags);
    TRY(cudaFreeArray(array));
}

static void launches(float *x)
{
    int number = COUNT;
    void *arguments[] = {&x, &number};
    TRY(cudaLaunchKernel((void *)scale, dim3(COUNT / 256), dim3(256), arguments, 0, 0));
    TRY(cudaLaunchCooperativeKernel((void *)scale, dim3(128), dim3(256), arguments, 0, 0));
#if CUDART_VERSION >= 11080
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(COUNT / 256), c.blockDim = dim3(256);
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = 2, attribute[0].val.clusterDim.y = 1, attribute[0].val.clusterDim.z = 1;
    c.attrs = attribute;
    int major = 0, clusters = 0;
    TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    c.numAttrs = major >= 9; // devices before Hopper have no clusters
    TRY(cudaLaunchKernelExC(&c, (void *)scale, arguments));
    if (major >= 9)
        TRY(cudaOccupancyMaxActiveClusters(&clusters, scale, &c));
    printf("  clusters %d\n", clusters > 0);
#endif
    TRY(cudaDeviceSynchronize());
    // The code depends on the version.
    scale<<<1, 4096>>>(x, COUNT);
    printf("  too many threads: refused %d\n", cudaGetLastError() != cudaSuccess);
    void *symbol;
    TRY(cudaGetSymbolAddress(&symbol, factor_d));
    float seven = 7, back = 0;
    TRY(cudaMemcpyToSymbol(factor_d, &seven, 4));
    TRY(cudaMemcpyFromSymbol(&back, factor_d, 4));
    printf("  symbol %.0f\n", back);
    seven = 3;
    TRY(cudaMemcpyToSymbol(factor_d, &seven, 4));
    cudaStream_t s;
    cudaEvent_t a, b;
    TRY(cudaStreamCreateWithPriority(&s, cudaStreamDefault, -1));
    TRY(cudaEventCreate(&a));
    TRY(cudaEventCreateWithFlags(&b, cudaEventBlockingSync));
    TRY(cudaEventRecord(a, s));
    scale<<<COUNT / 256, 256, 0, s>>>(x, COUNT);
    TRY(cudaEventRecord(b, s));
    TRY(cudaEventSynchronize(b));
    float ms = -1;
    TRY(cudaEventElapsedTime(&ms, a, b));
    printf("  elapsed %d\n", ms >= 0 && ms < 1000);
    int priority = 9;
    TRY(cudaStreamGetPriority(s, &priority));
    cudaStreamAttrValue value;
    memset(&value, 0, sizeof value);
    value.syncPolicy = cudaSyncPolicyYield;
    TRY(cudaStreamSetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &value));
    memset(&value, 0, sizeof value);
    TRY(cudaStreamGetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &value));
    printf("  priority %d policy %d\n", priority, value.syncPolicy);
    int calls = 0;
    TRY(cudaLaunchHostFunc(s, host_function, &calls));
    TRY(cudaStreamSynchronize(s));
    printf("  calls %d\n", calls);
    TRY(cudaStreamDestroy(s));
    TRY(cudaEventDestroy(a));
    TRY(cudaEventDestroy(b));
}

static void entry_points(void)
{
    void *entry = 0;
#if CUDART_VERSION >= 13000
    cudaDriverEntryPointQueryResult query;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuCtxGetDevice", &entry, 12000, cudaEnableDefault, &query);
    printf("since 12.5: cudaGetDriverEntryPointByVersion -> %d, query %d\n", code, query);
    const char *since = "since 12.5: ";
#elif CUDART_VERSION >= 12000
    cudaDriverEntryPointQueryResult query;
    TRY(cudaGetDriverEntryPoint("cuCtxGetDevice", &entry, cudaEnableDefault, &query));
    printf("  query %d\n", query);
    const char *since = "  ";
#else
    TRY(cudaGetDriverEntryPoint("cuCtxGetDevice", &entry, cudaEnableDefault));
    const char *since = "  ";
#endif
    int device = -1, code_of_entry = -1;
    if (entry)
        code_of_entry = ((int (*)(int *))entry)(&device);
    printf("%scuCtxGetDevice -> %d, device %d\n", since, code_of_entry, device);
}

int main(void)
{
    int runtime = 0, driver = 0, devices = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    fprintf(stderr, "headers %d runtime %d driver %d\n", CUDART_VERSION, runtime, driver);
    TRY(cudaGetDeviceCount(&devices));
    TRY(cudaSetDevice(0));
    float *x, *y;
    TRY(cudaMalloc(&x, COUNT * sizeof *x));
    TRY(cudaMalloc(&y, COUNT * sizeof *y));
    if (failures)
        return 3;
    TRY(cudaMemset(x, 0, COUNT * sizeof *x));
    TRY(cudaMemset(y, 0, COUNT * sizeof *y));
    printf("== properties\n"), properties();
    printf("== managed\n"), managed();
    printf("== graphs\n"), graphs(x, y);
    printf("== pools\n"), pools(x);
    printf("== textures\n"), textures(x, y);
    printf("== launches\n"), launches(x);
    printf("== entry points\n"), entry_points();
    printf("== end\n");
    TRY(cudaFree(x));
    TRY(cudaFree(y));
    TRY(cudaDeviceReset());
    printf("failures %d\n", failures);
    return failures != 0;
}
