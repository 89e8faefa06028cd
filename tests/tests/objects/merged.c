/* Image with the stubs of several packages: calls the functions of calls.inc, and prints the results, the
 * functions of each library as bound, refused and missing, and whether all slots are read-only. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpustub.h"

#define CALL(function) __attribute__((visibility("hidden"))) int function(void);
#include "calls.inc"
#undef CALL

#ifdef API
/* Returns whether the slot of a trampoline, which is `endbr64; jmp *slot(%rip)`, is writable. */
static int is_writable(int (*function)(void))
{
    int32_t offset;
    char *address = (char *)(uintptr_t)function + 10;
    memcpy(&offset, address - 4, sizeof offset);
    address += offset;
    char line[512], permissions[8];
    int writable = 1;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *start, *end;
        if (sscanf(line, "%p-%p %7s", (void **)&start, (void **)&end, permissions) == 3 &&
            address >= start && address < end)
            writable = permissions[1] == 'w';
    }
    if (maps)
        fclose(maps);
    return writable;
}

static void print_state(void)
{
    static const char *const names[] = {"trap", "other"};
    int writable = 0;
    for (int i = 0; i < 2; i++) {
        int bound, refused, missing, status = gpustub_counts(names[i], &bound, &refused, &missing);
        if (status == GPUSTUB_UNKNOWN_LIBRARY)
            printf("%s unknown, ", names[i]);
        else
            printf("%s %d %d %d, ", names[i], bound, refused, missing);
    }
#define CALL(function) writable += is_writable(function);
#include "calls.inc"
#undef CALL
    printf("%d writable", writable);
}
#endif

#ifdef SHARED
__attribute__((visibility("default"))) int entry(void);
int entry(void)
#else
int main(void)
#endif
{
#define CALL(function) printf("%d ", function());
#include "calls.inc"
#ifdef API
    print_state();
#endif
    puts("");
    return 0;
}
