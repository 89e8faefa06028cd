/* The cost of one warm call of the same function by three roads: our stub, the PLT, and a pointer
 * from dlsym, as in libloading's Symbol and every hand-written loader. And of a call of a function that the
 * library lacks (missing), or whose library is absent (absent, with a number of calls only).
 * percall LIBRARY         prints nanoseconds per call, the minimum of many interleaved rounds
 * percall LIBRARY ROAD N  makes N calls by one road, for an instruction counter */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpustub.h"

int benchStub(int *a, int *b);
int benchMissing(int *a, int *b);
int bench_plt(int *a, int *b);
static int (*volatile pointer)(int *, int *);

/* Same alignment for each loop: its address can cost more than the measured difference. */
#define LOOP __attribute__((noinline, aligned(64))) static

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

LOOP void by_stub(long n)
{
    int a, b;
    while (n--)
        benchStub(&a, &b);
}

LOOP void by_missing(long n)
{
    int a, b;
    while (n--)
        benchMissing(&a, &b);
}

LOOP void by_plt(long n)
{
    int a, b;
    while (n--)
        bench_plt(&a, &b);
}

LOOP void by_pointer(long n)
{
    int a, b;
    while (n--)
        pointer(&a, &b);
}

static const struct {
    const char *name;
    void (*run)(long);
} roads[] = {{"stub", by_stub}, {"plt", by_plt}, {"pointer", by_pointer}, {"missing", by_missing}};
enum { ROADS = sizeof roads / sizeof *roads };

int main(int argc, char **argv)
{
    double best[ROADS] = {1e18, 1e18, 1e18, 1e18};
    void *library = dlopen(argv[1], RTLD_NOW);
    void *symbol = library ? dlsym(library, "benchStub") : NULL;
    if (argc > 3 && !strcmp(argv[2], "absent")) {
        setenv("GPUSTUB_BENCH_PATH", "off", 1);
        gpustub_load("bench");
        by_missing(atol(argv[3]));
        return 0;
    }
    if (!symbol || gpustub_set_handle("bench", library) || gpustub_load("bench"))
        return 1;
    memcpy((void *)&pointer, &symbol, sizeof symbol);
    if (argc > 3) {
        for (int i = 0; i < ROADS; i++)
            if (!strcmp(argv[2], roads[i].name))
                roads[i].run(atol(argv[3]));
        return 0;
    }
    for (int round = 0; round < 15; round++)
        for (int i = 0; i < ROADS; i++) {
            enum { CALLS = 2000000 };
            double start = now();
            roads[i].run(CALLS);
            double each = (now() - start) / CALLS;
            if (each < best[i])
                best[i] = each;
        }
    for (int i = 0; i < ROADS; i++)
        printf("%s %.4f\n", roads[i].name, best[i]);
    return 0;
}
