#include <gpustub.h>
int puts(const char *text);
int cuInit(unsigned flags);
__declspec(dllimport) int cudaGetDeviceCount(int *count);
int nvrtcVersion(int *major, int *minor);
int main(void)
{
    int count = -7, major = -7, minor = -7, nvrtc = nvrtcVersion(&major, &minor);
    puts(cuInit(0) == 100 && cudaGetDeviceCount(&count) == 35 && count == 0 ? "no CUDA" : "CUDA");
    puts(nvrtc == 0 && major == 12 && minor == 9 ? "NVRTC 12.9" : nvrtc == 11 ? "no NVRTC" : "wrong");
    puts(gpustub_is_available("nvrtc") ? "available" : "not available");
    return 0;
}
