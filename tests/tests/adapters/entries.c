/* Asks the driver for functions by name and version: prints the code, the status and whether there is a function. */
#include <stdio.h>

int cuGetProcAddress_v2(const char *, void **, int, unsigned long long, int *);

static void look_up(const char *name, int version)
{
    int status = -1;
    void *function = NULL;
    int code = cuGetProcAddress_v2(name, &function, version, 0, &status);
    printf("%s %d: %d, status %d, %s\n", name, version, code, status, function ? "set" : "null");
}

int main(void)
{
    look_up("cuInit", 13020);
    look_up("cuUnknown", 13020);
    look_up("cuGraphAddNode", 12000);
    look_up("cuGraphAddNode", 12020);
    look_up("cuGraphAddNode", 12030);
    look_up("cuCtxCreate", 12040);
    look_up("cuCtxCreate", 12050);
    return 0;
}
