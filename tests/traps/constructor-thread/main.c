#include <semaphore.h>

#include "check.h"

int trap_add(int a, int b);

static sem_t done;
static int from_thread;

void *host_thread(void *unused)
{
    from_thread = trap_add(40, 2);
    sem_post(&done);
    return unused;
}

int main(void)
{
    CHECK(sem_init(&done, 0, 0) == 0);
    CHECK(trap_add(2, 3) == 5);
    while (sem_wait(&done) != 0) {
    }
    CHECK(from_thread == 42);
    PASSED();
}
