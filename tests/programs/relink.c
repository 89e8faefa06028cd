/* Repeats a device link for another GPU: `relink ARCH OUTPUT FATBIN…`. The CUDA driver links the
 * objects of a program in the same way if the device link has no code for its GPU. */
#include <stdio.h>
#include <stdlib.h>

#include <nvJitLink.h>

static nvJitLinkHandle handle;

static void check(const char *what, int status)
{
    size_t size = 0;
    if (!status)
        return;
    fprintf(stderr, "%s: %d\n", what, status);
    if (handle && !nvJitLinkGetErrorLogSize(handle, &size)) {
        char *log = calloc(1, size + 1);
        if (log && !nvJitLinkGetErrorLog(handle, log))
            fprintf(stderr, "%s\n", log);
    }
    exit(1);
}

int main(int argc, char **argv)
{
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", argv[1]);
    const char *options[] = {arch};
    check("create", nvJitLinkCreate(&handle, 1, options));
    for (int i = 3; i < argc; i++)
        check(argv[i], nvJitLinkAddFile(handle, NVJITLINK_INPUT_FATBIN, argv[i]));
    check("complete", nvJitLinkComplete(handle));
    size_t size = 0;
    check("size", nvJitLinkGetLinkedCubinSize(handle, &size));
    char *image = malloc(size);
    check("image", nvJitLinkGetLinkedCubin(handle, image));
    FILE *output = fopen(argv[2], "wb");
    return !output || fwrite(image, 1, size, output) != size || fclose(output);
}
