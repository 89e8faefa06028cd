/* The library of 1.5 and later. */
#ifndef NO_FRAMES
#include <execinfo.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "layouts.h"

/* NO_VERSION: the version is unknown. */
int trap_version(int *version)
{
    const char *set = getenv("TRAP_VERSION");
    *version = set ? atoi(set) : 1050;
#ifdef NO_VERSION
    return 1;
#else
    return 0;
#endif
}

int trap_gain(int a, long b, int c, int d, int e, int f, int g, int h, long i, int j)
{
    return a == -1 && b == -(1L << 40) && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == -8 && i == 9 && j == 10
               ? -12
               : 1;
}

int trap_lose(const long *all, int count)
{
    for (int i = 0; i < count - 1; i++)
        if (all[i] != -1 - i)
            return 100 + i;
    return count == 9 && all[8] == 1L << 40 ? 99 : 1;
}

int trap_words(int a, long b, const char *c, int d, int e, short f, long g, int h, int i, long j, int k, int l, int m)
{
    int registers = a == -1 && b == -(1L << 40) && *c == 'c' && d == -4 && e == 5 && f == -6 && g == 1L << 41;
    return registers && h == -8 && i == -9 && j == -(1L << 42) && k == 11 && l == -9 && m == 11 ? -14 : 1;
}

int trap_by_value(const void *pointer, struct location location, unsigned flags)
{
    return pointer ? (int)flags + 1000 * location.type + location.id : TRAP_INVALID;
}

int trap_of_value(const void *pointer, int device, int flags)
{
    return pointer ? 10 * device + flags : TRAP_INVALID;
}

int trap_inner(int *value, int attribute, int device)
{
    if (device == 3)
        return 44; /* the properties succeed, the attribute fails */
    *value = 1000 + attribute;
    return 0;
}

int trap_properties(struct new_properties *properties, int device)
{
    if (!properties)
        return TRAP_INVALID;
    memset(properties, 0x5a, sizeof *properties);
    if (device == 2)
        return 43;
    memcpy(properties->name, "gpu", 4);
    properties->memory = (int64_t)1 << 40 | device;
    return 0;
}

int trap_choose(int *device, const struct new_properties *properties)
{
    if (!properties || properties->cores || properties->reserved[5])
        return TRAP_INVALID;
    *device = (int)properties->memory + properties->name[4];
    return 0;
}

int trap_call_back(void *null, int (*function)(void *), void *data, char *temporary)
{
    return null ? -1 : function(data) + temporary[0] - 1;
}

int trap_frames(int zero, void **frames, int count)
{
#ifdef NO_FRAMES
    (void)frames;
    return zero + count;
#else
    return zero ? -1 : backtrace(frames, count);
#endif
}

int trap_partial(int value, int more) { return value + more; }
int trap_extra(int value) { return value; }
#ifndef LACKS
int trap_last(int value) { return value; }
int trap_missing(void) { return -1; }
#endif

int trap_function_with_a_name_that_is_longer_than_those_of_the_shipped_libraries_and_goes_on_for_a_while(int value)
{
    return value;
}

/* From 1.7 up to 1.9 it takes a pointer, which is null. */
int trap_chain(int value, long second) { return value * 100 + (int)second; }

int trap_passed(int value) { return value; }
int trap_refused(void) { return -1; }
int trap_kept(void) { return 5; }
int trap_never(int zero) { return zero; }
