/* Compiles a kernel with hiprtc, which needs no GPU. Prints a line for each result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct _hiprtcProgram *hiprtcProgram;
int hiprtcCreateProgram(hiprtcProgram *program, const char *source, const char *name, int count,
                        const char **headers, const char **names);
int hiprtcCompileProgram(hiprtcProgram program, int count, const char **options);
int hiprtcGetCodeSize(hiprtcProgram program, size_t *size);
int hiprtcGetCode(hiprtcProgram program, char *code);
int hiprtcDestroyProgram(hiprtcProgram *program);
const char *hiprtcGetErrorString(int status);

static void check(const char *what, int status)
{
    printf("%s: %s\n", what, hiprtcGetErrorString(status));
    if (status)
        exit(1);
}

int main(void)
{
    const char *options[] = {"--gpu-architecture=gfx906"};
    const char *source = "extern \"C\" __global__ void twice(int *x) { x[threadIdx.x] *= 2; }\n";
    hiprtcProgram program;
    size_t size = 0;
    check("create", hiprtcCreateProgram(&program, source, "twice.hip", 0, NULL, NULL));
    check("compile", hiprtcCompileProgram(program, 1, options));
    check("size", hiprtcGetCodeSize(program, &size));
    char *code = malloc(size);
    check("code", hiprtcGetCode(program, code));
    /* An ELF file, or a bundle of ELF files. */
    int known = size > 24 && (!memcmp(code, "\177ELF", 4) || !memcmp(code, "__CLANG_OFFLOAD_BUNDLE__", 24));
    printf("the code is %s\n", known ? "for a GPU" : "unknown");
    free(code);
    check("destroy", hiprtcDestroyProgram(&program));
    return 0;
}
