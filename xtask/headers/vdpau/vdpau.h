/* Types of VDPAU that the interoperation headers of CUDA use: all versions have them. */
#include <stdint.h>

typedef uint32_t VdpDevice;
typedef uint32_t VdpFuncId;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpVideoSurface;
typedef int VdpStatus;
typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId function_id, void **function_pointer);
