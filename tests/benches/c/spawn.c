/* spawn A B N: starts A and B alternately, N times each; prints the median microseconds of each. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
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
    double *times[2] = {calloc((size_t)n + 1, sizeof(double)), calloc((size_t)n + 1, sizeof(double))};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            char *args[] = {argv[1 + k], NULL};
            pid_t child;
            int status;
            double start = now();
            if (posix_spawn(&child, argv[1 + k], NULL, NULL, args, environ) ||
                waitpid(child, &status, 0) < 0)
                return 1;
            times[k][i] = now() - start;
        }
    for (int k = 0; k < 2; k++) {
        qsort(times[k], (size_t)n, sizeof(double), compare);
        printf("%.1f %.1f\n", times[k][n / 2], times[k][0]);
    }
    return 0;
}
