/* version_query.c: asks a loaded library for its version. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* int f(libraryPropertyType, int *): returns the number of a library, or without a table of releases its version;
 * -1: unknown. */
static int32_t query_property(void *symbol, int has_releases)
{
    const int32_t scales[] = {1000, has_releases ? 100 : 10, has_releases};
    int32_t own = 0;
    int (*ask)(int, int *);
    memcpy(&ask, &symbol, sizeof ask);
    for (int property = 0; property < 3; property++) { /* libraryPropertyType: major, minor, patch level */
        int value = 0;
        if (ask(property, &value) || value < 0 || value >= 1000)
            return -1;
        own += scales[property] * value;
    }
    return own;
}

/* int f(char *, unsigned), which writes "12.535.261.03": returns the driver's branch; -1: unknown. */
static int32_t query_driver(void *symbol)
{
    char text[80] = "";
    int (*ask)(char *, unsigned);
    memcpy(&ask, &symbol, sizeof ask);
    int failed = ask(text, sizeof text - 1);
    const char *branch = failed ? NULL : strchr(text, '.');
    return branch ? (int32_t)strtoul(branch + 1, NULL, 10) : -1;
}

/* Release of a library by its own number; 0: unknown. */
static int32_t find_release(const struct library *library, int32_t own)
{
    int32_t version = 0;
    for (const struct release *release = library->releases; release->own <= own; release++)
        version = release->version;
    return version;
}

int32_t query_version(const struct library *library, void *handle)
{
    int value = 0, minor = 0, failed = 1;
    int (*ask)(int *, int *);
    void *symbol = library->version_function ? find_symbol(handle, library->version_function) : NULL;
    if (!symbol)
        return 0;
    memcpy(&ask, &symbol, sizeof ask); /* ISO C has no cast from object to function pointer */
    switch (library->version_encoding) {
    case ENCODING_CUDA: /* int f(int *): ignores the second argument */
        failed = ask(&value, NULL);
        break;
    case ENCODING_HIP: /* 10000000 * major + 100000 * minor + patch */
        failed = ask(&value, NULL);
        value = value / 10000000 * 1000 + value % 10000000 / 100000 * 10;
        break;
    case ENCODING_PAIR:
        failed = ask(&value, &minor);
        value = value * 1000 + minor * 10;
        break;
    case ENCODING_PROPERTY:
        value = query_property(symbol, library->releases != NULL);
        if (library->releases)
            return find_release(library, value);
        failed = 0;
        break;
    case ENCODING_DRIVER: return find_release(library, query_driver(symbol));
    }
    return failed || value < 0 ? 0 : value;
}
