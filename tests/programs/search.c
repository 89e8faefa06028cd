/* Requests the libraries that its arguments name, in this order, and prints their files. `+FILE` first loads a
 * file, as a part of a program without stubs would. */
#include <dlfcn.h>
#include <stdio.h>

#include "gpustub.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '+') {
            (void)dlopen(argv[i] + 1, RTLD_LAZY | RTLD_LOCAL);
            continue;
        }
        if (gpustub_load(argv[i]) == GPUSTUB_UNKNOWN_LIBRARY)
            return 2;
        printf("%s %s\n", argv[i], gpustub_path(argv[i]) ? gpustub_path(argv[i]) : "nowhere");
    }
    return 0;
}
