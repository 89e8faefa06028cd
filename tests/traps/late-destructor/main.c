#include <string.h>

#include "check.h"

int trap_value(void);
void guest_at_end(void (*function)(void));

/* Whether the library is mapped. */
static int mapped(void)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        found |= strstr(line, "libtrap.so.1") != NULL;
    }
    fclose(maps);
    return found;
}

/* Runs after the destructors of the program and of the stubs. */
static void late(void)
{
    CHECK(trap_value() == 77);
#ifdef NEVER_LOADED
    CHECK(!mapped());
#else
    CHECK(mapped());
#endif
    puts("late");
    fflush(stdout);
}

#ifdef TORN_DOWN
/* musl has torn the library down by now. */
__attribute__((destructor)) static void early(void) { CHECK(trap_value() == 77); }
#elif !defined(NEVER_LOADED)
/* A destructor of the program itself may still call the library. */
__attribute__((destructor)) static void early(void) { CHECK(trap_value() == 42); }
#endif

int main(void)
{
    guest_at_end(late);
#ifndef NEVER_LOADED
    CHECK(trap_value() == 42);
#endif
    PASSED();
}
