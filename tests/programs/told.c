/* Prints the major that each file tells. Arguments: how (needed, text), the prefix, in which file
 * beside it (- in itself), and the files. */
#define GPUSTUB1_ONE_UNIT
#include "format.c"
#include "toolkit_version.c"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const struct gpustub1_told_by told_by[] = {
        {strcmp(argv[1], "text") ? GPUSTUB1_TOLD_BY_NEEDED : GPUSTUB1_TOLD_BY_TEXT, argv[2],
         strcmp(argv[3], "-") ? argv[3] : NULL},
        {0, NULL, NULL}};
    const struct gpustub1_library library = {.told_by = told_by};
    for (int i = 4; i < argc; i++)
        printf("%d\n", (int)gpustub1_told_major(&library, argv[i]));
    return 0;
}
