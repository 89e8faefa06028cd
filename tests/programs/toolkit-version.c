/* Prints the toolkit major of each file. Arguments: its location (needed, text), the prefix, the
 * sibling of the file that contains it (- for the file itself), and the files. */
#define SINGLE_UNIT
#include "format.c"
#include "toolkit_version.c"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const struct version_probe probes[] = {
        {.kind = strcmp(argv[1], "text") ? PROBE_NEEDED : PROBE_RODATA,
         .prefix = argv[2],
         .sibling = strcmp(argv[3], "-") ? argv[3] : NULL},
        {.prefix = NULL}};
    const struct library library = {.version_probes = probes};
    for (int i = 4; i < argc; i++)
        printf("%d\n", (int)toolkit_major(&library, argv[i]));
    return 0;
}
