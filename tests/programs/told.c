/* Prints the major that each of its arguments, a file, tells by what it needs. */
#define GPUSTUB1_ONE_UNIT
#include "needed.c"

#include <stdio.h>

int main(int argc, char **argv)
{
    static const char *const told_by[] = {"libbase.so.", NULL};
    static const struct gpustub1_library library = {.told_by = told_by};
    for (int i = 1; i < argc; i++)
        printf("%d\n", (int)gpustub1_told_major(&library, argv[i]));
    return 0;
}
