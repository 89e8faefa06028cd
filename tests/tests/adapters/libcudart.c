/* A fake of a CUDA runtime and of the driver below: real ones return no function without a device. The environment has
 * the versions. The answers are those of 580.159.04 (13.0); a function is the version from which on a name stands for
 * it, from cudaTypedefs.h of 13.5. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned since;
} functions[] = {
    {"cuInit", 2000},
    {"cuLaunchHostFunc", 10000},
    {"cuLaunchHostFunc", 13010},
    {"cuCoredumpGetAttribute", 12010},
    {"cuGraphAddNode", 12020},
    {"cuGraphAddNode", 12030},
    {"cuGraphAddNode", 13040},
    {"cuGraphNodeSetParams", 12020},
    {"cuGraphNodeSetParams", 13040},
    {"cuMemcpyBatchAsync", 12080},
    {"cuMemcpyBatchAsync", 13000},
};

static unsigned version_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? (unsigned)atoi(text) : 0;
}

int cudaRuntimeGetVersion(int *version)
{
    *version = (int)version_of("GPUSTUB_TEST_RUNTIME_VERSION");
    return 0;
}

int cudaDriverGetVersion(int *version)
{
    *version = (int)version_of("GPUSTUB_TEST_DRIVER_VERSION");
    return 0;
}

int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                     unsigned long long flags, int *status)
{
    unsigned driver = version_of("GPUSTUB_TEST_DRIVER_VERSION");
    int is_known = 0;
    (void)flags;
    if (version > driver)
        return 1;
    *function = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].since <= driver && !strcmp(name, functions[i].name)) {
            is_known = 1;
            if (functions[i].since <= version)
                *function = (void *)(uintptr_t)functions[i].since;
        }
    *status = *function ? 0 : is_known ? 2 : 1;
    return 0;
}

int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(
        name, function, version_of("GPUSTUB_TEST_RUNTIME_VERSION"), flags, status);
}
