/* spawn A B N: starts A and B alternately, N times each; prints of each the median and the least microseconds, and the largest
 * KiB in memory. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n = argc > 3 ? atoi(argv[3]) : 0;
    long memory[2] = {0, 0};
    double *times[2] = {calloc((size_t)n + 1, sizeof(double)), calloc((size_t)n + 1, sizeof(double))};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            char *args[] = {argv[1 + k], NULL};
            struct rusage usage;
            pid_t child;
            int status;
            double start = now();
            if (posix_spawn(&child, argv[1 + k], NULL, NULL, args, environ) ||
                wait4(child, &status, 0, &usage) < 0 || status)
                return 1;
            times[k][i] = now() - start;
            memory[k] = usage.ru_maxrss > memory[k] ? usage.ru_maxrss : memory[k];
        }
    for (int k = 0; k < 2; k++) {
        qsort(times[k], (size_t)n, sizeof(double), compare);
        printf("%.1f %.1f %ld\n", times[k][n / 2], times[k][0], memory[k]);
    }
    return 0;
}
