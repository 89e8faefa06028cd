#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "check.h"

int trap_add(int a, int b);
int trap_new(int a);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t in_constructor;

/* The constructor runs in dlopen, under the dynamic loader's lock. */
__attribute__((visibility("default"))) void program_lock(void)
{
    sem_post(&in_constructor);
    pthread_mutex_lock(&mutex);
}

__attribute__((visibility("default"))) void program_unlock(void) { pthread_mutex_unlock(&mutex); }

static void *open_plugin(void *unused)
{
    CHECK(dlopen(PLUGIN, RTLD_NOW));
    return unused;
}

int main(void)
{
    pthread_t thread;
    const char *error;
    alarm(60); /* ends a test that waits */
    CHECK(sem_init(&in_constructor, 0, 0) == 0);

    /* The search, the binding and the first calls leave no message. */
    trap_add(1, 2);
    CHECK(!dlerror());
    CHECK(trap_new(1) == 77);
    CHECK(!dlerror());

    /* Later calls keep the message of the program. */
    CHECK(!dlopen("/nowhere/libnowhere.so", RTLD_LAZY));
    CHECK(trap_new(1) == 77);
    error = dlerror();
    CHECK(error && strstr(error, "libnowhere"));

    /* A call under a lock that a constructor waits for, in the middle of another thread's dlopen. */
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_create(&thread, NULL, open_plugin, NULL) == 0);
    CHECK(sem_wait(&in_constructor) == 0);
    CHECK(trap_new(1) == 77);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    PASSED();
}
