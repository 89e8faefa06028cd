/* Compiles two sources of CUDA C++ with NVRTC and links them with nvJitLink, which needs no GPU.
 * The header of nvJitLink maps its names to those of its version. Prints a line for each result. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvJitLink.h>

typedef struct _nvrtcProgram *nvrtcProgram;
int nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int count,
                       const char *const *headers, const char *const *names);
int nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options);
int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
int nvrtcGetCUBIN(nvrtcProgram program, char *cubin);

static const char *const sources[] = {
    "extern \"C\" __device__ int helper(int);\n"
    "extern \"C\" __global__ void use(int *out) { *out = helper(3); }\n",
    "extern \"C\" __device__ int helper(int i) { return i * 2; }\n",
};

static void check(const char *what, int status)
{
    if (status) {
        printf("%s failed: %d\n", what, status);
        exit(1);
    }
}

static char *compile(const char *source, size_t *size)
{
    const char *options[] = {"--gpu-architecture=sm_80", "-rdc=true"};
    nvrtcProgram program;
    check("create", nvrtcCreateProgram(&program, source, "device.cu", 0, NULL, NULL));
    check("compile", nvrtcCompileProgram(program, 2, options));
    check("size", nvrtcGetCUBINSize(program, size));
    char *cubin = malloc(*size);
    check("cubin", nvrtcGetCUBIN(program, cubin));
    return cubin;
}

/* Links the first `count` sources. */
static int link_sources(int count)
{
    const char *options[] = {"-arch=sm_80"};
    nvJitLinkHandle handle;
    size_t size = 0;
    check("link create", nvJitLinkCreate(&handle, 1, options));
    for (int i = 0; i < count; i++) {
        size_t length;
        char *cubin = compile(sources[i], &length);
        check("add", nvJitLinkAddData(handle, NVJITLINK_INPUT_CUBIN, cubin, length, "device"));
        free(cubin);
    }
    int status = nvJitLinkComplete(handle);
    if (status) {
        check("log size", nvJitLinkGetErrorLogSize(handle, &size));
        char *log = calloc(1, size + 1);
        check("log", nvJitLinkGetErrorLog(handle, log));
        printf("%d sources: %s\n", count, strstr(log, "helper") ? "helper is undefined" : log);
        free(log);
    } else {
        check("linked size", nvJitLinkGetLinkedCubinSize(handle, &size));
        char *linked = malloc(size);
        check("linked", nvJitLinkGetLinkedCubin(handle, linked));
        printf("%d sources: %s\n", count, memcmp(linked, "\177ELF", 4) ? "garbage" : "linked");
        free(linked);
    }
    check("link destroy", nvJitLinkDestroy(&handle));
    return 0;
}

int main(void)
{
    unsigned major = 0, minor = 0;
    check("version", nvJitLinkVersion(&major, &minor));
    printf("nvJitLink %u.%u\n", major, minor);
    link_sources(1);
    link_sources(2);
    return 0;
}
