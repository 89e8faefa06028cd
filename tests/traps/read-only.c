/* Prints the permissions of the page with the slots: at start, with one library bound, with both. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shared.h"

int trap_value(void);
int other_value(void);

static void permissions(char *result)
{
    const struct part *part = __start_gpustub1_parts;
    while (!part->library || part->first == part->last)
        part++;
    unsigned long start, end, slot = (unsigned long)(uintptr_t)part->first;
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
    char at_start[8], one_bound[8], both_bound[8];
    permissions(at_start);
    int value = trap_value();
    permissions(one_bound);
    int other = other_value(); /* absent: bound too, there is nothing left to do */
    permissions(both_bound);
    printf("%s %s %s\n", at_start, one_bound, both_bound);
    return value == 42 && other == -1 && trap_value() == 42 ? 0 : 1;
}
