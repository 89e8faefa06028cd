/* Finds the caller in the stacks that the library records. */
#include "check.h"

int trap_frames(void **frames, void **frames_at_start, int *count_at_start);

static void *frames[64], *frames_at_start[64];
static int count, count_at_start;

__attribute__((noinline, section(".text$caller"))) static void caller(void)
{
    count = trap_frames(frames, frames_at_start, &count_at_start);
    __asm__ volatile("" ::: "memory");
}

static int has_caller(void **list, int length)
{
    for (int i = 0; i < length; i++)
        if ((char *)list[i] > (char *)caller && (char *)list[i] < (char *)caller + 100)
            return 1;
    return 0;
}

int main(void)
{
    caller();
    CHECK(has_caller(frames_at_start, count_at_start));
    CHECK(has_caller(frames, count));
    PASSED();
}
