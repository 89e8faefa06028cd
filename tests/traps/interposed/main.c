/* A program that defines functions of the loader itself, as sanitizers and preloaded libraries do. */
#include <dlfcn.h>
#include <string.h>

#include "check.h"

int trap_answer(void);
int trap_other(void);

static int opened, resolved;

void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *, int);
    void *function = dlvsym(RTLD_NEXT, "dlopen", OLDEST);
    memcpy(&next, &function, sizeof next);
    opened++;
    return next(file, mode);
}

void *dlsym(void *handle, const char *name)
{
    void *(*next)(void *, const char *);
    void *function = dlvsym(RTLD_NEXT, "dlsym", OLDEST);
    memcpy(&next, &function, sizeof next);
    resolved += !strcmp(name, "trap_other"); /* the search looks up only the first function */
    return next(handle, name);
}

int main(void)
{
    CHECK(trap_answer() == 42);
    CHECK(trap_other() == 43);
    CHECK(opened > 0 && resolved > 0);
    PASSED();
}
