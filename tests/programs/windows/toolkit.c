/* Fakes of the CUDA runtime, the driver and NVRTC, which opens its builtins by a bare name as the real one does. Real
 * ones have a version only, and the driver is in no package. */
#include <windows.h>

__declspec(dllexport) int cudaRuntimeGetVersion(int *version)
{
    *version = 12090;
    return 0;
}

__declspec(dllexport) int cuInit(unsigned flags) { return (int)flags; }

__declspec(dllexport) int cuDriverGetVersion(int *version)
{
    *version = 12090;
    return 0;
}

__declspec(dllexport) int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 9;
    return 0;
}

__declspec(dllexport) int nvrtcGetNumSupportedArchs(int *count)
{
    *count = 1;
    return LoadLibraryA("nvrtc-builtins64_129.dll") ? 0 : 7;
}
