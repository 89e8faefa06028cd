/* Prints the permissions of the page with the slots: at start, with one library bound, with both; and then those of
 * another constant that the loader relocated. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shared.h"

int trap_value(void);
int other_value(void);

static const struct part *first_part(void)
{
    const struct part *part = __start_gpustub1_parts;
    while (!part->library || part->first == part->last)
        part++;
    return part;
}

static int (*const relocated[])(void) = {trap_value, other_value};
static volatile int first; /* keeps the compiler from reading the constant */

static void permissions(const volatile void *address, char *result)
{
    unsigned long start, end, slot = (unsigned long)(uintptr_t)address;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    strcpy(result, "none");
    while (maps && fgets(line, sizeof line, maps)) {
        char found[8];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, found) == 3 && slot >= start && slot < end) {
            strcpy(result, found);
        }
    }
    if (maps) {
        fclose(maps);
    }
}

int main(void)
{
    char at_start[8], one_bound[8], both_bound[8], beside[8];
    const void *slot = first_part()->first;
    permissions(slot, at_start);
    int value = trap_value();
    permissions(slot, one_bound);
    int other = other_value(); /* absent: bound too, there is nothing left to do */
    permissions(slot, both_bound);
    permissions(relocated, beside);
    printf("%s %s %s %s\n", at_start, one_bound, both_bound, beside);
    return value == 42 && other == -1 && relocated[first]() == 42 ? 0 : 1;
}
