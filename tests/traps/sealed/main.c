#include "check.h"

#include <stdint.h>
#include <string.h>

#include "shared.h"

#ifdef ABSENT
#define VALUE 77
#else
#define VALUE 42
#endif
#ifndef WRITABLE /* constants of programs without PT_GNU_RELRO, and their slots with glibc */
#define WRITABLE 0
#endif

int trap_value(void);
int trap_other(void);

static int (*const relocated[])(void) = {trap_value, trap_other};
static volatile int first; /* keeps the compiler from reading the constant */
static int is_bound;

static int is_writable(const volatile void *address)
{
    unsigned long start, end, value = (unsigned long)(uintptr_t)address;
    char line[512], permissions[8];
    int writable = -1;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && value >= start &&
            value < end)
            writable = permissions[1] == 'w';
    CHECK(maps && !fclose(maps));
    return writable;
}

static void check_pages(void)
{
    int slots = 0;
#ifdef __GLIBC__
    int expected = WRITABLE;
#else
    int expected = !is_bound; /* on pages of their own */
#endif
    for (const struct part *part = __start_gpustub1_parts; part < __stop_gpustub1_parts; part++)
        for (const struct slot *slot = part->first; slot < part->last; slot++) {
            CHECK(is_writable(slot) == expected);
            slots++;
        }
    CHECK(slots == 2);
    CHECK(is_writable(&relocated[0]) == WRITABLE);
}

static void call(void)
{
    check_pages();
    CHECK(relocated[first]() == VALUE);
    is_bound = 1;
    check_pages();
}

int main(void)
{
    FIRST_AND_WARM(call());
    call();
    /* The exit hook of a child of a fork points the slots at their thunks again. */
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        call();
        exit(0);
    }
    check_child(child);
    call();
    PASSED();
}
