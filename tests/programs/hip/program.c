/* program.c: calls of HIP with the structs of one version of the headers. Each test prints "== NAME", what the
 * library prints, and the results by name. */
#include "names.h"

#include <sys/resource.h>

/* Memory for a result of `size` bytes, with guard bytes around it. */
enum { GUARD = 64, UNTOUCHED = 0xA5 };
static unsigned char memory[GUARD + 2048 + GUARD];

static void *result(void)
{
    memset(memory, UNTOUCHED, sizeof memory);
    return memory + GUARD;
}

static const char *state(size_t size)
{
    int is_written = 0;
    for (size_t i = 0; i < sizeof memory; i++) {
        if (memory[i] == UNTOUCHED)
            continue;
        if (i < GUARD || i >= GUARD + size)
            return "overrun";
        is_written = 1;
    }
    return is_written ? "written" : "untouched";
}

static void title(const char *name)
{
    printf("== %s\n", name);
}

static void returned(int code)
{
    printf("-> %d\n", code);
}

static void properties(void)
{
    hipDeviceProp_t *s = result();
    title("properties");
    printf("-> %d", hipGetDeviceProperties(s, 3));
    printf(" %s: %s, %s, %d %d", state(sizeof *s), s->name, s->gcnArchName,
           s->arch.hasGlobalInt32Atomics, s->arch.hasDynamicParallelism);
    PROPERTIES(SHOW)
    printf("\n");
#if SINCE(6, 0)
#define SHOW_NEW(field, attribute)                                                                 \
    if (s->field != 1000 + hipDeviceAttribute##attribute)                                          \
        printf(#field "=%d ", (int)s->field);
    title("new properties that are not their attributes");
    NEW_PROPERTIES(SHOW_NEW)
#define CHECK_ZERO(field)                                                                          \
    if (s->field)                                                                                  \
        printf(#field " ");
    title("properties without attribute that are not zero");
    PROPERTIES_WITHOUT_ATTRIBUTE(CHECK_ZERO)
    title("unsupported attributes");
    s = result();
    printf("-> %d", hipGetDeviceProperties(s, 7));
    printf(" %d %d, last error %d\n", (int)s->surfaceAlignment, s->memoryPoolsSupported,
           hipPeekAtLastError());
#endif
    title("failures of properties");
    s = result();
    returned(hipGetDeviceProperties(s, 9));
    returned(hipGetDeviceProperties(NULL, 3));
    printf("%s\n", state(sizeof *s));
    title("properties of a lost device");
    printf("-> %d", hipGetDeviceProperties(s, 8));
    printf(" %s\n", state(sizeof *s));
}

static void choose(void)
{
    hipDeviceProp_t properties, *s = &properties;
    int number = 0, device = -1;
    memset(s, 0xEE, sizeof *s);
    strcpy(s->name, "wanted");
    strcpy(s->gcnArchName, "such");
    memset(&s->arch, 0, sizeof s->arch);
    s->arch.hasDynamicParallelism = 1;
    PROPERTIES(FILL)
    title("choose");
    printf("-> %d", hipChooseDevice(&device, s));
    printf(" %d\n", device);
    printf("-> %d", hipChooseDevice(&device, NULL));
    printf(" %d\n", device);
}

static void pointer(const char *type)
{
    hipPointerAttribute_t *s = result();
    printf("-> %d", hipPointerGetAttributes(s, type));
    if (strcmp(state(sizeof *s), "untouched")) {
        int found;
        memcpy(&found, s, sizeof found);
        printf(" %s", name_of(memory_types, found));
        SHOW(device) SHOW(devicePointer) SHOW(hostPointer) SHOW(isManaged) SHOW(allocationFlags)
    }
    printf(" %s\n", state(sizeof *s));
}

static void pointers(void)
{
    title("pointers");
    pointer("Host");
    pointer("Device");
    pointer("Array");
    pointer("Unified");
    title("managed pointer");
    pointer("Managed");
    title("unregistered pointer");
    pointer("Unregistered");
    title("failures of pointers");
    pointer("lost");
    returned(hipPointerGetAttributes(NULL, "Host"));
}

static void attribute(char *pointer)
{
    int type = -7;
    void *address = NULL;
    hipPointer_attribute wanted[] = {HIP_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                     HIP_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *data[] = {&address, &type};
    printf("-> %d", hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    printf(" %s\n", type == -7 ? "untouched" : name_of(memory_types, type));
    printf("-> %d", hipDrvPointerGetAttributes(2, wanted, data, pointer));
    printf(" %s %d\n", name_of(memory_types, type), (int)(uintptr_t)address);
}

static void attributes(void)
{
    void *address = NULL;
    title("attributes of pointers");
    attribute("Host");
    attribute("Device");
    attribute("Array");
    title("attributes of unknown memory");
    attribute("lost");
    title("other attributes of pointers");
    printf("-> %d", hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, "Host"));
    printf(" %d\n", (int)(uintptr_t)address);
    returned(hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, "Host"));
    returned(hipDrvPointerGetAttributes(2, NULL, NULL, "Host"));
}

static void copy_2d(int source, int target)
{
    hip_Memcpy2D copy, *s = &copy;
    int number = 0;
    memset(s, 0xEE, sizeof *s);
    COPY_2D(FILL)
    s->srcMemoryType = (hipMemoryType)source;
    s->dstMemoryType = (hipMemoryType)target;
    returned(hipMemcpyParam2D(s));
    returned(hipMemcpyParam2DAsync(s, (hipStream_t)6));
    returned(hipDrvMemcpy2DUnaligned(s));
}

static void copy_3d(int source, int target)
{
    HIP_MEMCPY3D copy, *s = &copy;
    int number = 0;
    memset(s, 0xEE, sizeof *s);
    COPY_3D(FILL)
    s->Depth = 0xFFFFFFFF;
    s->srcMemoryType = (hipMemoryType)source;
    s->dstMemoryType = (hipMemoryType)target;
    returned(hipDrvMemcpy3D(s));
    returned(hipDrvMemcpy3DAsync(s, (hipStream_t)6));
#if SINCE(6, 0)
    size_t *const extents[] = {&s->srcXInBytes, &s->srcPitch, &s->dstLOD, &s->Depth};
    if (source != hipMemoryTypeHost)
        return;
    title("large extents");
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
        size_t before = *extents[i];
        *extents[i] = 1ull << 32;
        returned(i % 2 ? hipDrvMemcpy3D(s) : hipDrvMemcpy3DAsync(s, NULL));
        *extents[i] = before;
    }
#endif
}

static void copies(void)
{
    const char *const names[] = {"Host", "Device", "Array", "Unified"};
    title("copies in two dimensions");
    for (int i = 0; i < 4; i++)
        copy_2d(number_of(memory_types, names[i]), number_of(memory_types, names[(i + 1) % 4]));
    returned(hipMemcpyParam2D(NULL));
    returned(hipMemcpyParam2DAsync(NULL, NULL));
    returned(hipDrvMemcpy2DUnaligned(NULL));
    title("copies in three dimensions");
    copy_3d(hipMemoryTypeArray, hipMemoryTypeDevice);
    returned(hipDrvMemcpy3D(NULL));
    returned(hipDrvMemcpy3DAsync(NULL, NULL));
    copy_3d(hipMemoryTypeHost, hipMemoryTypeUnified);
#if SINCE(5, 3)
    title("copies of managed memory");
    copy_2d(hipMemoryTypeManaged, hipMemoryTypeDevice);
    copy_3d(hipMemoryTypeDevice, hipMemoryTypeManaged);
#endif
#if SINCE(6, 0)
    title("copies of unregistered memory");
    copy_2d(hipMemoryTypeUnregistered, hipMemoryTypeDevice);
    copy_3d(hipMemoryTypeDevice, hipMemoryTypeUnregistered);
#endif
    title("copies of an unknown type");
    copy_2d(99, hipMemoryTypeDevice);
    copy_3d(hipMemoryTypeDevice, -1);
}

static void external_memory(void)
{
    void *out = NULL;
    int number = 0;
    title("external memory");
    {
        hipExternalMemoryHandleDesc description, *s = &description;
        memset(s, 0xEE, sizeof *s);
        MEMORY(FILL)
#if SINCE(6, 0)
        memset(s->reserved, 0, sizeof s->reserved);
#endif
        printf("-> %d", hipImportExternalMemory(&out, s));
        printf(" %llx\n", (unsigned long long)(uintptr_t)out);
        returned(hipImportExternalMemory(&out, NULL));
    }
    {
        hipExternalSemaphoreHandleDesc description, *s = &description;
        memset(s, 0xEE, sizeof *s);
        SEMAPHORE(FILL)
#if SINCE(6, 0)
        memset(s->reserved, 0, sizeof s->reserved);
#endif
        returned(hipImportExternalSemaphore(&out, s));
        returned(hipImportExternalSemaphore(&out, NULL));
    }
    {
        hipExternalMemoryBufferDesc description, *s = &description;
        memset(s, 0xEE, sizeof *s);
        BUFFER(FILL)
#if SINCE(6, 0)
        memset(s->reserved, 0, sizeof s->reserved);
#endif
        returned(hipExternalMemoryGetMappedBuffer(&out, (hipExternalMemory_t)8, s));
        returned(hipExternalMemoryGetMappedBuffer(&out, (hipExternalMemory_t)8, NULL));
    }
}

static void semaphores(void)
{
    enum { MANY = 9, HUGE = 1 << 30 };
    hipExternalSemaphore_t handles[] = {(hipExternalSemaphore_t)51};
    hipExternalSemaphoreSignalParams signals[MANY];
    hipExternalSemaphoreWaitParams waits[MANY];
    int number = 0, version = 0;
    memset(signals, 0, sizeof signals);
    memset(waits, 0, sizeof waits);
    for (hipExternalSemaphoreSignalParams *s = signals; s < signals + MANY; s++) {
        SIGNAL(FILL)
    }
    for (hipExternalSemaphoreWaitParams *s = waits; s < waits + MANY; s++) {
        WAIT(FILL)
    }
    title("semaphores");
    static const unsigned counts[] = {0, 2, MANY};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        unsigned count = counts[i];
        returned(hipSignalExternalSemaphoresAsync(handles, signals, count, (hipStream_t)6));
        returned(hipWaitExternalSemaphoresAsync(handles, waits, count, (hipStream_t)6));
    }
    returned(hipSignalExternalSemaphoresAsync(handles, NULL, HUGE, NULL));
    returned(hipWaitExternalSemaphoresAsync(handles, NULL, HUGE, NULL));
    /* Only an adapter allocates memory. */
    if (hipRuntimeGetVersion(&version) || (version >= 60000000) == SINCE(6, 0))
        return;
    title("semaphores without memory");
    struct rlimit limit = {1u << 31, 1u << 31};
    setrlimit(RLIMIT_AS, &limit);
    returned(hipSignalExternalSemaphoresAsync(handles, signals, HUGE, NULL));
    returned(hipWaitExternalSemaphoresAsync(handles, waits, HUGE, NULL));
}

static void allocations(void)
{
    hipMemAllocationProp properties, *s = &properties;
    hipMemGenericAllocationHandle_t handle = NULL;
    size_t granularity = 0;
    int number = 0;
    memset(s, 0xEE, sizeof *s);
    ALLOCATION(FILL) ALLOCATION_FLAGS(FILL)
    title("allocations");
    printf("-> %d", hipMemCreate(&handle, 4096, s, 9));
    printf(" %d\n", (int)(uintptr_t)handle);
    printf("-> %d", hipMemGetAllocationGranularity(&granularity, s,
                                                   hipMemAllocationGranularityRecommended));
    printf(" %zu\n", granularity);
    returned(hipMemCreate(&handle, 4096, NULL, 9));
    returned(hipMemGetAllocationGranularity(&granularity, NULL,
                                            hipMemAllocationGranularityMinimum));
    s = result();
    printf("-> %d", hipMemGetAllocationPropertiesFromHandle(s, handle));
    printf(" %s:", state(sizeof *s));
    ALLOCATION(SHOW)
#if SINCE(5, 3)
    printf(" %d %d %d\n", s->allocFlags.compressionType, s->allocFlags.usage,
           s->allocFlags.gpuDirectRDMACapable);
#else
    printf(" %d %d 0\n", s->compressionType, s->usage);
#endif
    s = result();
    printf("-> %d", hipMemGetAllocationPropertiesFromHandle(s, NULL));
    printf(" %s\n", state(sizeof *s));
    returned(hipMemGetAllocationPropertiesFromHandle(NULL, handle));
}

static void node_type(const char *name)
{
    hipGraphNodeType *type = result();
    int code = hipGraphNodeGetType((hipGraphNode_t)name, type);
    printf("%s -> %d %s\n", name, code,
           strcmp(state(sizeof *type), "written") ? state(sizeof *type)
                                                  : name_of(node_types, (int)*type));
}

static void graphs(void)
{
    static const char *const common[] = {"Kernel", "Memcpy", "Memset", "Host", "Graph",
                                         "Empty", "WaitEvent", "EventRecord", "MemcpyFromSymbol",
                                         "MemcpyToSymbol", "no type"};
    static const char *const others[] = {"ExtSemaphoreSignal", "ExtSemaphoreWait", "MemAlloc",
                                         "MemFree", "Memcpy1D"};
    title("node types");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        node_type(common[i]);
    returned(hipGraphNodeGetType((hipGraphNode_t) "Kernel", NULL));
    title("node types of some versions");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        node_type(others[i]);
}

static void kernel_nodes(void)
{
    hipGraphNode_t node = (hipGraphNode_t)61;
    hipKernelNodeAttrValue *value = result();
    title("kernel nodes");
    printf("-> %d", hipGraphKernelNodeGetAttribute(node, (hipKernelNodeAttrID)2, value));
    printf(" %x %s\n", (unsigned)value->cooperative, state(sizeof value->cooperative));
    value = result();
    printf("-> %d", hipGraphKernelNodeGetAttribute(node, (hipKernelNodeAttrID)1, value));
    printf(" %x %x %s\n", (unsigned)(uintptr_t)value->accessPolicyWindow.base_ptr,
           (unsigned)value->accessPolicyWindow.num_bytes, state(sizeof value->accessPolicyWindow));
    value = result();
    printf("-> %d", hipGraphKernelNodeGetAttribute(node, (hipKernelNodeAttrID)3, value));
    printf(" %s\n", state(sizeof *value));
    returned(hipGraphKernelNodeGetAttribute(node, (hipKernelNodeAttrID)1, NULL));
    memset(value, 0, sizeof *value);
    value->accessPolicyWindow.base_ptr = (void *)62;
    value->accessPolicyWindow.num_bytes = 63;
    returned(hipGraphKernelNodeSetAttribute(node, (hipKernelNodeAttrID)1, value));
    returned(hipGraphKernelNodeSetAttribute(node, (hipKernelNodeAttrID)1, NULL));
}

#if SINCE(6, 0)
static void memset_nodes(void)
{
    memset_params parameters, *s = &parameters;
    hipGraphNode_t node = NULL, before = (hipGraphNode_t)71;
    hipGraph_t graph = (hipGraph_t)72;
    hipGraphExec_t exec = (hipGraphExec_t)73;
    hipCtx_t context = (hipCtx_t)74;
    int number = 0;
    memset(s, 0xEE, sizeof *s);
    MEMSET(FILL)
    title("memset nodes");
    printf("-> %d", hipDrvGraphAddMemsetNode(&node, graph, &before, 1, s, context));
    printf(" %d\n", (int)(uintptr_t)node);
    returned(hipDrvGraphAddMemsetNode(&node, graph, &before, 1, NULL, context));
    returned(hipDrvGraphExecMemsetNodeSetParams(exec, before, s, context));
    returned(hipDrvGraphExecMemsetNodeSetParams(exec, before, NULL, context));
    title("functions by name");
    hipDriverProcAddressQueryResult status;
    void *function = &number;
    returned(hipGetProcAddress("hipMalloc", &function, HIP_VERSION, 0, &status));
}
#endif

int main(void)
{
    properties();
    choose();
    pointers();
    attributes();
    copies();
    external_memory();
    allocations();
    graphs();
    kernel_nodes();
#if SINCE(6, 0)
    memset_nodes();
#endif
    semaphores();
    return 0;
}
