#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "check.h"
#include "gpustub.h"

int trap_add(int a, int b);

static volatile sig_atomic_t in_handler, handled;

/* The linker puts these in front of the functions (--wrap): none is async-signal-safe. */
#define FORBID(name) CHECK(!in_handler && #name)

void *__real_dlopen(const char *file, int mode);
void *__wrap_dlopen(const char *file, int mode) { FORBID(dlopen); return __real_dlopen(file, mode); }
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name) { FORBID(dlsym); return __real_dlsym(handle, name); }
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size) { FORBID(malloc); return __real_malloc(size); }
void __real_free(void *pointer);
void __wrap_free(void *pointer) { FORBID(free); __real_free(pointer); }
char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name) { FORBID(getenv); return __real_getenv(name); }
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) { FORBID(pthread_mutex_lock); return __real_pthread_mutex_lock(mutex); }
int __real_pthread_once(pthread_once_t *once, void (*routine)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void)) { FORBID(pthread_once); return __real_pthread_once(once, routine); }

static void handler(int number)
{
    (void)number;
    in_handler = 1;
#ifdef ABSENT
    CHECK(trap_add(40, 2) == 77);
#else
    CHECK(trap_add(40, 2) == 42);
#endif
    in_handler = 0;
    handled++;
}

int main(void)
{
    signal(SIGUSR1, handler);
#ifdef ABSENT
    CHECK(gpustub_load("trap") == GPUSTUB_UNAVAILABLE);
#else
    CHECK(gpustub_load("trap") == GPUSTUB_OK);
#endif
    CHECK(raise(SIGUSR1) == 0);
    CHECK(raise(SIGUSR1) == 0);
    CHECK(handled == 2);
    PASSED();
}
