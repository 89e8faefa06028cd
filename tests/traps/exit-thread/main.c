#include <pthread.h>
#include <semaphore.h>

#include "check.h"

int trap_value(void);

static sem_t running;

/* First the library answers, then the stub in its place, and never the library again: not while
 * it is torn down, and not after. The one call that was already on its way may still arrive. */
static void *caller(void *unused)
{
    int late = 0, ended = 0;
    (void)unused;
    CHECK(trap_value() == 42);
    sem_post(&running);
    for (;;) {
        int value = trap_value();
        CHECK(value == 42 || value == 77 || value == -1);
        CHECK(!ended || value == 77);
        ended |= value == 77;
        late += value == -1;
        CHECK(late <= 1);
    }
}

int main(void)
{
    pthread_t thread;
    CHECK(sem_init(&running, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, caller, NULL) == 0);
    while (sem_wait(&running) != 0) {
    }
    PASSED();
}
