/* Functions with an additional pointer argument in the library that the program's headers lack;
 * trap_never is not called. */
#include <dlfcn.h>
#include <signal.h>
#include <string.h>

#include "check.h"
#include "shared.h"

long trap_at0(long, long, long, long, long);
long trap_at1(long, long, long, long, long);
long trap_at2(long, long, long, long, long);
long trap_at3(long, long, long, long, long);
long trap_at4(long, long, long, long, long);
long trap_at5(long, long, long, long, long);
int trap_frames(void **frames, int count);
int trap_moved(int value);
int trap_renamed(void);
int trap_refused(void);

#ifdef STATIC
/* Targets of the adapter thunks, which follow the library's slots on the pages made read-only. */
static const struct part *the_part(void)
{
    const struct part *part = __start_gpustub1_parts;
    while (!part->library)
        part++;
    return part;
}

static void **first_target(void)
{
    return (void **)(void *)the_part()->last;
}

static int count_targets(void)
{
    int count = 0;
    for (void **word = first_target(); (char *)word < the_part()->pages_last; word++)
        count += *word != NULL;
    return count;
}

static void cannot_be_written(int number)
{
    (void)number;
    _exit(0);
}
#endif

static void *frames[64];

/* An exported name, which dladdr knows. */
__attribute__((noinline)) int caller(void)
{
    int count = trap_frames(frames, 64);
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (dladdr((char *)frames[i] - 1, &info) && info.dli_sname && !strcmp(info.dli_sname, "caller"))
            return 1;
    }
    return 0;
}

int main(void)
{
#ifdef FAILING
    CHECK(trap_at3(1, 2, 3, 4, 5) == 12345);
    CHECK((int)trap_at3(1, 2, 3, 4, 5) == -7); /* the second */
    CHECK(trap_at3(1, 2, 3, 4, 5) == 12345);
    PASSED();
#endif
    FIRST_AND_WARM(CHECK(trap_at0(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at1(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at2(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at3(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at4(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at5(1, 2, 3, 4, 5) == 12345));
#ifndef NO_FRAMES
    FIRST_AND_WARM(CHECK(caller()));
#else
    FIRST_AND_WARM(CHECK(trap_frames(frames, 64) == 64));
    (void)caller;
#endif
    FIRST_AND_WARM(CHECK(trap_moved(5) == 5));
    FIRST_AND_WARM(CHECK(trap_renamed() == 6));
    FIRST_AND_WARM(CHECK(trap_refused() == 77));
#ifndef SHARED
    CHECK(gpustub_has_function("trap", "trap_at3"));
    CHECK(!gpustub_has_function("trap", "trap_refused"));
    const char *report = gpustub_report("trap");
    CHECK(strstr(report, "\n  bound: trap_renamed as trap_renamed_old\n"));
    CHECK(strstr(report, "\n  adapted: trap_at0 with NULL as argument 0, trap_at1 with"));
    CHECK(strstr(report, "trap_moved as trap_moved_v2 with NULL as argument 0"));
    CHECK(strstr(report, "\n  refused: trap_refused ("));
#endif
#ifdef STATIC
    CHECK(count_targets() == STATIC);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, cannot_be_written);
        *first_target() = NULL;
        _exit(1);
    }
    check_child(child);
#endif
    PASSED();
}
