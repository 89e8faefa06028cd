/* Replaces nvcc's header of this name, which the runtime wheels lack: macros of C declarations. */
#ifndef GPUSTUB_HOST_DEFINES_H
#define GPUSTUB_HOST_DEFINES_H

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDA_CB
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __no_return__ __attribute__((noreturn))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__
#define __location__(a)
#define __specialization_static
/* These two determine layouts: float2 is aligned to 8, cudaLaunchConfig's dim3 to 4. */
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

#endif
