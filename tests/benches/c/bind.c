/* bind LIBRARY NAMES: binds all stubs of a library that is already loaded; then resolves the same
 * names with plain dlsym for comparison, as a hand-written loader would. Both passes touch their
 * own memory for the first time. With the argument `plain-first`, the plain pass runs first; with `sealed`, a
 * pass that does what stubs do: the names are constants of the program, and the table becomes read-only. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "gpustub.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static char names[1 << 20];
static void *table[20000];
static void *sealed_table[8192] __attribute__((aligned(4096))) = {table};
extern const char *const bench_names[]; /* NULL ends the list */

__attribute__((noinline)) static double plain(void *library)
{
    double start = now();
    int n = 0;
    for (char *name = names; *name; name += strlen(name) + 1)
        table[n++] = dlsym(library, name);
    return now() - start;
}

static double sealed(void *library)
{
    double start = now();
    size_t n = 0;
    for (; bench_names[n]; n++)
        sealed_table[n] = dlsym(library, bench_names[n]);
    mprotect(sealed_table, (n * sizeof *sealed_table + 4095) / 4096 * 4096, PROT_READ);
    return now() - start;
}

static double stubs(void *library)
{
    if (gpustub_set_handle("bench", library))
        return -1;
    double start = now();
    gpustub_load("bench");
    return now() - start;
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_LAZY);
    FILE *file = fopen(argv[2], "r");
    int bound = 0;
    if (!library || !file)
        return 1;
    size_t length = fread(names, 1, sizeof names - 2, file);
    for (size_t i = 0; i < length; i++)
        if (names[i] == '\n')
            names[i] = 0;
    double (*plain_pass)(void *) = argc > 3 && !strcmp(argv[3], "sealed") ? sealed : plain;
    double first = argc > 3 ? plain_pass(library) : stubs(library);
    double second = argc > 3 ? stubs(library) : plain(library);
    gpustub_counts("bench", &bound, NULL, NULL);
    printf("%.0f %.0f %d\n", argc > 3 ? second : first, argc > 3 ? first : second, bound);
    return 0;
}
