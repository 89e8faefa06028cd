/* As app/main.rs, with functions of the DLL that the argument names. */
#include <stdio.h>
#include <windows.h>

static const char *text(const char *string) { return string ? string : "null"; }

int main(int count, char **arguments)
{
    HMODULE library = count > 1 ? LoadLibraryA(arguments[1]) : NULL;
#define FUNCTION(result, name, parameters) \
    result(*name) parameters = (result(*) parameters)(void *)GetProcAddress(library, #name)
    FUNCTION(int, cudaGetDeviceCount, (int *));
    FUNCTION(const char *, cudaGetErrorName, (int));
    FUNCTION(const char *, cudaGetErrorString, (int));
    FUNCTION(int, cudaRuntimeGetVersion, (int *));
    int devices = -7, version = -7, status = cudaGetDeviceCount(&devices);
    printf("status %d, %d devices\n", status, devices);
    printf("%s, %s\n", text(cudaGetErrorName(status)), text(cudaGetErrorString(status)));
    status = cudaRuntimeGetVersion(&version);
    printf("status %d, version %d\n", status, version);
    return 0;
}
