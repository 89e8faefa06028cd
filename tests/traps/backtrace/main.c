#include <dlfcn.h>
#include <string.h>

#include "check.h"

#include "api.h"

static void *frames[FRAMES];

/* Exported names, which dladdr knows. */
__attribute__((noinline)) int caller(void)
{
    int count = trap_frames(frames);
    __asm__ volatile("" ::: "memory");
    return count;
}

__attribute__((noinline)) int constructor_caller(void)
{
    int count = trap_constructor_frames(frames);
    __asm__ volatile("" ::: "memory");
    return count;
}

/* Both names are on the stack, the caller's below that of main. */
static int reaches_main(int count, const char *caller)
{
    int at = 0;
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (dladdr((char *)frames[i] - 1, &info) && info.dli_sname) {
            at += at == 0 && strcmp(info.dli_sname, caller) == 0;
            at += at == 1 && strcmp(info.dli_sname, "main") == 0;
        }
    }
    return at == 2;
}

int main(void)
{
    FIRST_AND_WARM(CHECK(reaches_main(caller(), "caller")));
#ifndef LOADER_WITHOUT_TABLES /* unwinding ends in the dynamic loader, which called the constructor */
    pid_t child = fork();
    if (child == 0) {
        CHECK(reaches_main(constructor_caller(), "constructor_caller"));
        _exit(0);
    }
    check_child(child);
#else
    (void)constructor_caller;
#endif
    PASSED();
}
