#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "check.h"
#include "gpustub.h"

int trap_add(int a, int b);
int trap_new(int a);

static volatile sig_atomic_t in_handler, handled;

/* The linker puts these in front of the functions (--wrap): none is async-signal-safe. */
#define FORBID(name) CHECK(!in_handler && #name)

void *__real_dlopen(const char *file, int mode);
void *__wrap_dlopen(const char *file, int mode) { FORBID(dlopen); return __real_dlopen(file, mode); }
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name) { FORBID(dlsym); return __real_dlsym(handle, name); }
void *__real_dlvsym(void *handle, const char *name, const char *version);
void *__wrap_dlvsym(void *handle, const char *name, const char *version) { FORBID(dlvsym); return __real_dlvsym(handle, name, version); }
char *__real_dlerror(void);
char *__wrap_dlerror(void) { FORBID(dlerror); return __real_dlerror(); }
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) { FORBID(calloc); return __real_calloc(count, size); }
void *__real_realloc(void *pointer, size_t size);
void *__wrap_realloc(void *pointer, size_t size) { FORBID(realloc); return __real_realloc(pointer, size); }
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
#if defined(ABSENT) || defined(OLDER)
    CHECK(trap_new(1) == 77);
#else
    CHECK(trap_new(1) == 1);
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
