/* names.h: fields and enumerators of HIP by name, for each version of the headers. What the fake library and the
 * program print does not depend on the layouts, so that an adapted call prints what a direct one does. */
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SINCE(major, minor)                                                                        \
    (HIP_VERSION_MAJOR > (major) || (HIP_VERSION_MAJOR == (major) && HIP_VERSION_MINOR >= (minor)))

struct name {
    int number;
    const char *name;
};

static const struct name memory_types[] = {
    {hipMemoryTypeHost, "Host"},       {hipMemoryTypeDevice, "Device"},
    {hipMemoryTypeArray, "Array"},     {hipMemoryTypeUnified, "Unified"},
#if SINCE(5, 3)
    {hipMemoryTypeManaged, "Managed"},
#endif
#if SINCE(6, 0)
    {hipMemoryTypeUnregistered, "Unregistered"},
#endif
    {0, NULL},
};

static const struct name node_types[] = {
    {hipGraphNodeTypeKernel, "Kernel"},
    {hipGraphNodeTypeMemcpy, "Memcpy"},
    {hipGraphNodeTypeMemset, "Memset"},
    {hipGraphNodeTypeHost, "Host"},
    {hipGraphNodeTypeGraph, "Graph"},
    {hipGraphNodeTypeEmpty, "Empty"},
    {hipGraphNodeTypeWaitEvent, "WaitEvent"},
    {hipGraphNodeTypeEventRecord, "EventRecord"},
    {hipGraphNodeTypeMemcpyFromSymbol, "MemcpyFromSymbol"},
    {hipGraphNodeTypeMemcpyToSymbol, "MemcpyToSymbol"},
#if SINCE(5, 3)
    {hipGraphNodeTypeExtSemaphoreSignal, "ExtSemaphoreSignal"},
    {hipGraphNodeTypeExtSemaphoreWait, "ExtSemaphoreWait"},
    {hipGraphNodeTypeMemAlloc, "MemAlloc"},
    {hipGraphNodeTypeMemFree, "MemFree"},
#else
    {hipGraphNodeTypeMemcpy1D, "Memcpy1D"},
#endif
#if SINCE(6, 0)
    {hipGraphNodeTypeBatchMemOp, "BatchMemOp"},
#endif
    {0, NULL},
};

static inline const char *name_of(const struct name *names, int number)
{
    while (names->name && names->number != number)
        names++;
    return names->name ? names->name : "?";
}

/* The number of a name; -2 if the headers lack it. */
static inline int number_of(const struct name *names, const char *name)
{
    while (names->name && strcmp(names->name, name))
        names++;
    return names->name ? names->number : -2;
}

/* Functions of one field of the struct `s`. */
#define FILL(field) s->field = (__typeof__(s->field))(uintptr_t)++number;
#define SHOW(field) printf(" %lld", (long long)(uintptr_t)s->field);

#define PROPERTIES(X)                                                                              \
    X(totalGlobalMem) X(sharedMemPerBlock) X(regsPerBlock) X(warpSize) X(maxThreadsPerBlock)       \
    X(maxThreadsDim[0]) X(maxThreadsDim[1]) X(maxThreadsDim[2]) X(maxGridSize[0])                  \
    X(maxGridSize[1]) X(maxGridSize[2]) X(clockRate) X(memoryClockRate) X(memoryBusWidth)          \
    X(totalConstMem) X(major) X(minor) X(multiProcessorCount) X(l2CacheSize)                       \
    X(maxThreadsPerMultiProcessor) X(computeMode) X(clockInstructionRate) X(concurrentKernels)     \
    X(pciDomainID) X(pciBusID) X(pciDeviceID) X(maxSharedMemoryPerMultiProcessor)                  \
    X(isMultiGpuBoard) X(canMapHostMemory) X(integrated) X(cooperativeLaunch)                      \
    X(cooperativeMultiDeviceLaunch) X(maxTexture1DLinear) X(maxTexture1D) X(maxTexture2D[0])       \
    X(maxTexture2D[1]) X(maxTexture3D[0]) X(maxTexture3D[1]) X(maxTexture3D[2])                    \
    X(hdpMemFlushCntl) X(hdpRegFlushCntl) X(memPitch) X(textureAlignment)                          \
    X(texturePitchAlignment) X(kernelExecTimeoutEnabled) X(ECCEnabled) X(tccDriver)                \
    X(cooperativeMultiDeviceUnmatchedFunc) X(cooperativeMultiDeviceUnmatchedGridDim)               \
    X(cooperativeMultiDeviceUnmatchedBlockDim) X(cooperativeMultiDeviceUnmatchedSharedMem)         \
    X(isLargeBar) X(asicRevision) X(managedMemory) X(directManagedMemAccessFromHost)               \
    X(concurrentManagedAccess) X(pageableMemoryAccess) X(pageableMemoryAccessUsesHostPageTables)

/* The fields that 6.0 adds: with an attribute of 5.2, and without. */
#define NEW_PROPERTIES(X)                                                                          \
    X(accessPolicyMaxWindowSize, AccessPolicyMaxWindowSize) X(asyncEngineCount, AsyncEngineCount)  \
    X(canUseHostPointerForRegisteredMem, CanUseHostPointerForRegisteredMem)                        \
    X(computePreemptionSupported, ComputePreemptionSupported) X(deviceOverlap, DeviceOverlap)      \
    X(globalL1CacheSupported, GlobalL1CacheSupported)                                              \
    X(hostNativeAtomicSupported, HostNativeAtomicSupported)                                        \
    X(localL1CacheSupported, LocalL1CacheSupported) X(luidDeviceNodeMask, LuidDeviceNodeMask)      \
    X(maxBlocksPerMultiProcessor, MaxBlocksPerMultiProcessor) X(maxSurface1D, MaxSurface1D)        \
    X(maxSurfaceCubemap, MaxSurfaceCubemap) X(maxTexture1DMipmap, MaxTexture1DMipmap)              \
    X(maxTextureCubemap, MaxTextureCubemap) X(multiGpuBoardGroupID, MultiGpuBoardGroupID)          \
    X(persistingL2CacheMaxSize, PersistingL2CacheMaxSize)                                          \
    X(regsPerMultiprocessor, MaxRegistersPerMultiprocessor)                                        \
    X(reservedSharedMemPerBlock, ReservedSharedMemPerBlock)                                        \
    X(sharedMemPerBlockOptin, SharedMemPerBlockOptin)                                              \
    X(sharedMemPerMultiprocessor, SharedMemPerMultiprocessor)                                      \
    X(singleToDoublePrecisionPerfRatio, SingleToDoublePrecisionPerfRatio)                          \
    X(streamPrioritiesSupported, StreamPrioritiesSupported)                                        \
    X(surfaceAlignment, SurfaceAlignment) X(unifiedAddressing, UnifiedAddressing)                  \
    X(memoryPoolsSupported, MemoryPoolsSupported)
#define PROPERTIES_WITHOUT_ATTRIBUTE(X)                                                            \
    X(uuid.bytes[0]) X(uuid.bytes[15]) X(luid[0]) X(luid[7]) X(maxTexture2DMipmap[0])              \
    X(maxTexture2DMipmap[1]) X(maxTexture2DLinear[0]) X(maxTexture2DLinear[2])                     \
    X(maxTexture2DGather[0]) X(maxTexture3DAlt[2]) X(maxTexture1DLayered[0])                       \
    X(maxTexture2DLayered[2]) X(maxTextureCubemapLayered[1]) X(maxSurface2D[0]) X(maxSurface2D[1]) \
    X(maxSurface3D[2]) X(maxSurface1DLayered[1]) X(maxSurface2DLayered[2])                         \
    X(maxSurfaceCubemapLayered[1]) X(hostRegisterSupported) X(sparseHipArraySupported)             \
    X(hostRegisterReadOnlySupported) X(timelineSemaphoreInteropSupported)                          \
    X(gpuDirectRDMASupported) X(gpuDirectRDMAFlushWritesOptions) X(gpuDirectRDMAWritesOrdering)    \
    X(memoryPoolSupportedHandleTypes) X(deferredMappingHipArraySupported) X(ipcEventSupported)     \
    X(clusterLaunch) X(unifiedFunctionPointers)

#define COPY_2D(X)                                                                                 \
    X(srcXInBytes) X(srcY) X(srcHost) X(srcDevice) X(srcArray) X(srcPitch) X(dstXInBytes) X(dstY)  \
    X(dstHost) X(dstDevice) X(dstArray) X(dstPitch) X(WidthInBytes) X(Height)
#define COPY_3D(X)                                                                                 \
    COPY_2D(X) X(srcZ) X(srcLOD) X(srcHeight) X(dstZ) X(dstLOD) X(dstHeight) X(Depth)

#define MEMORY(X) X(type) X(handle.win32.handle) X(handle.win32.name) X(size) X(flags)
#define SEMAPHORE(X) X(type) X(handle.win32.handle) X(handle.win32.name) X(flags)
#define BUFFER(X) X(offset) X(size) X(flags)
#define SIGNAL(X) X(params.fence.value) X(params.keyedMutex.key) X(flags)
#define WAIT(X) SIGNAL(X) X(params.keyedMutex.timeoutMs)

#if SINCE(5, 3)
#define ALLOCATION_FLAGS(X) X(allocFlags.compressionType) X(allocFlags.usage)
#else
#define ALLOCATION_FLAGS(X) X(compressionType) X(usage)
#endif
#define ALLOCATION(X)                                                                              \
    X(type) X(requestedHandleType) X(location.type) X(location.id) X(win32HandleMetaData)

#define MEMSET(X) X(dst) X(pitch) X(value) X(elementSize) X(width) X(height)
#if SINCE(7, 0)
typedef hipMemsetParams memset_params;
#elif SINCE(6, 0)
typedef HIP_MEMSET_NODE_PARAMS memset_params;
#endif
