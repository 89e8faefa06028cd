#include <dlfcn.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"

#ifdef MEMORY
#define RESOURCE RLIMIT_AS
#else
#define RESOURCE RLIMIT_NOFILE
#endif

int trap_answer(void);

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

static int searches;

/* Each search tries the file beside the program once. */
void *__wrap_dlopen(const char *name, int flags)
{
    searches += name && strstr(name, "/libtrap.so.1") && !(flags & RTLD_NOLOAD);
    return __real_dlopen(name, flags);
}

int main(void)
{
    enum { CALLS = 1000, DOUBLINGS = 10 };
    struct rlimit limit, none;
    CHECK(!getrlimit(RESOURCE, &limit));
    none = limit;
    none.rlim_cur = 0;
    void *volatile heap = malloc(50000); /* the run time itself has memory, the loader cannot map */
    free(heap);
    CHECK(!setrlimit(RESOURCE, &none));
    for (int i = 0; i < CALLS; i++)
        CHECK(trap_answer() == 77);
    CHECK(searches > 1 && searches <= DOUBLINGS);
    CHECK(!setrlimit(RESOURCE, &limit));
    int calls = 0;
    while (calls < CALLS + 1 && trap_answer() != 42)
        calls++;
    CHECK(calls <= CALLS);
    CHECK(trap_answer() == 42);
    PASSED();
}
