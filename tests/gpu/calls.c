/* calls LIBRARY: cost of a call through a stub, beside that of the same function of the CUDA runtime LIBRARY. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

int cudaGetDevice(int *device);
int cudaSetDevice(int device);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Nanoseconds per call: the least of several rounds. */
static double cost(int (*function)(int *))
{
    enum { ROUNDS = 50, CALLS = 100000 };
    double least = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        int device;
        double start = now();
        for (int i = 0; i < CALLS; i++)
            function(&device);
        double took = (now() - start) / CALLS;
        least = took < least ? took : least;
    }
    return least;
}

int main(int count, char **words)
{
    if (count != 2)
        return fputs("usage: calls LIBRARY\n", stderr), 2;
    if (cudaSetDevice(0))
        return puts("no device"), 3;
    void *library = dlopen(words[1], RTLD_NOW);
    int (*direct)(int *) = library ? (int (*)(int *))dlsym(library, "cudaGetDevice") : 0;
    if (!direct)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    double without = cost(direct), with = cost(cudaGetDevice);
    printf("cudaGetDevice: %.1f ns, through the stub %.1f\n", without, with);
    return 0;
}
