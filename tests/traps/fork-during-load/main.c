#include <pthread.h>
#include <semaphore.h>

#include "check.h"

int trap_add(int a, int b);

static sem_t loading, forked;
static __thread int is_loader;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

/* Called by the library's constructor: in the thread that loads, it stops half-way. */
void host_loading(void)
{
    if (is_loader) {
        sem_post(&loading);
        wait_for(&forked);
    }
}

static void *loader(void *unused)
{
    is_loader = 1;
    CHECK(trap_add(2, 3) == 5);
    return unused;
}

int main(void)
{
    pthread_t thread;
    CHECK(sem_init(&loading, 0, 0) == 0 && sem_init(&forked, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, loader, NULL) == 0);
    wait_for(&loading);

    pid_t child = fork();
    if (child == 0) {
        alarm(30); /* a deadlock ends the test */
        CHECK(trap_add(40, 2) == 42);
        _exit(0);
    }
    sem_post(&forked);
    check_child(child);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(trap_add(4, 5) == 9);
    PASSED();
}
