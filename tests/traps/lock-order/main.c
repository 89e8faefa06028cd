/* One thread holds a lock of the program and calls; the other is in a dlopen whose constructor wants that
 * lock. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "check.h"
#include "gpustub.h"

int trap_answer(void);
void program_lock(void);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t waits;

void program_lock(void)
{
    sem_post(&waits);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *load_plugin(void *unused)
{
    (void)unused;
    CHECK(dlopen(PLUGIN, RTLD_NOW) != NULL);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    alarm(300); /* ends a deadlock */
    gpustub_load("trap");
    CHECK(!sem_init(&waits, 0, 0));
    pthread_mutex_lock(&mutex);
    CHECK(!pthread_create(&thread, NULL, load_plugin, NULL));
    CHECK(!sem_wait(&waits));
    CHECK(trap_answer() == EXPECTED);
    pthread_mutex_unlock(&mutex);
    CHECK(!pthread_join(thread, NULL));
    PASSED();
}
