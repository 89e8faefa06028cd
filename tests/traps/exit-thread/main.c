#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "check.h"

int trap_value(void);
void guest_at_end(void (*function)(void));

static sem_t running;
static unsigned long calls; /* atomic */

/* First the library returns its value, then the stub, and never the library again, neither during
 * its destruction nor afterwards. The single call already in progress may still arrive. */
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
        __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    }
}

static void wait_for_calls(unsigned long more)
{
    unsigned long enough = __atomic_load_n(&calls, __ATOMIC_SEQ_CST) + more;
    while (__atomic_load_n(&calls, __ATOMIC_SEQ_CST) < enough) {
        sched_yield();
    }
}

/* Runs after the destructors of the program and of the stubs, while the thread continues. */
static void end(void)
{
    wait_for_calls(1000);
    CHECK(trap_value() == 77);
    puts("late");
    fflush(stdout);
}

int main(void)
{
    pthread_t thread;
    guest_at_end(end);
    CHECK(sem_init(&running, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, caller, NULL) == 0);
    while (sem_wait(&running) != 0) {
    }
    wait_for_calls(10);
    PASSED();
}
