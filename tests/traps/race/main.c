#include <pthread.h>
#include <stdint.h>

#include "check.h"

int trap_add(int a, int b);
int trap_multiply(int a, int b);

#ifndef THREADS
#define THREADS 64
#endif

static pthread_barrier_t start;

static void *thread(void *argument)
{
    int n = (int)(intptr_t)argument;
    pthread_barrier_wait(&start);
    CHECK(n % 2 ? trap_add(n, 1) == n + 1 : trap_multiply(n, 2) == 2 * n);
    CHECK(n % 2 ? trap_multiply(n, 2) == 2 * n : trap_add(n, 1) == n + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, thread, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    PASSED();
}
