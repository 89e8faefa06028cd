/* Prints whether the loader finds a name for a library that opens it: by the library's run path, and in the
 * loader's directories. */
#define SINGLE_UNIT
#include "format.c"
#include "process.c"
#include "dynamic.c"
#include "image.c"
#include "loader.c"
#include "library.c"
#include "file.c"
#include "dirs.c"

#include <stdio.h>

char gpustub1_exiting;

int main(int argc, char **argv)
{
    void *handle = argc == 3 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    puts(loader_finds(handle, argv[2]) ? "found" : "missing");
    return 0;
}
