/* Adds the directory of its argument to the loader's, and prints where stubs found the libraries. */
#include <stdio.h>
#include <windows.h>

#include "gpustub.h"

int cudaRuntimeGetVersion(int *version);
int cuInit(unsigned flags);
int nvrtcGetNumSupportedArchs(int *count);

int main(int count, char **arguments)
{
    wchar_t directory[MAX_PATH];
    const char *path;
    int version = -1, archs = -1;
    if (count > 1 && MultiByteToWideChar(CP_UTF8, 0, arguments[1], -1, directory, MAX_PATH))
        AddDllDirectory(directory);
    cudaRuntimeGetVersion(&version);
    path = gpustub_path("cudart");
    printf("%d %s\n", version, path ? path : "none");
    printf("driver %d, nvrtc %d\n", cuInit(0), nvrtcGetNumSupportedArchs(&archs));
    return 0;
}
