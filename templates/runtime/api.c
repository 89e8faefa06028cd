/* api.c: the functions of gpustub.h. */
#include "internal.h"

#include <dlfcn.h>
#include <string.h>

/* Returns the index of the library, or -1. */
static int library_index(const char *name)
{
    for (int i = 0; name && i < library_count(); i++)
        if (!strcmp(get_library(i)->id, name))
            return i;
    return -1;
}

static struct result *result_of(const char *name)
{
    int index = library_index(name);
    return index < 0 ? NULL : settle_library(index);
}

HIDDEN int gpustub_load(const char *library)
{
    const struct result *result = result_of(library);
    if (!library)
        return GPUSTUB_INVALID_ARGUMENT;
    if (library_index(library) < 0)
        return GPUSTUB_UNKNOWN_LIBRARY;
    return result && result->handle ? GPUSTUB_OK : GPUSTUB_UNAVAILABLE;
}

HIDDEN int gpustub_is_available(const char *library)
{
    return gpustub_load(library) == GPUSTUB_OK;
}

HIDDEN int gpustub_has_function(const char *library, const char *function)
{
    const struct result *result = result_of(library);
    if (!result || !result->handle || !function)
        return 0;
    const struct library *known = get_library(library_index(library));
    struct binding binding;
    for (const struct slot *slot = known->first; slot < known->last; slot++)
        if (!strcmp(slot_name(slot), function))
            return resolve_slot(slot, known, result, &binding) != NULL;
    /* A function that the program does not call has no slot: dlsym decides. */
    return dlsym(result->handle, function) != NULL;
}

HIDDEN const char *gpustub_path(const char *library)
{
    const struct result *result = result_of(library);
    return result && result->handle ? result->path : NULL;
}

HIDDEN int gpustub_version(const char *library)
{
    const struct result *result = result_of(library);
    return result && result->handle ? result->version : 0;
}

HIDDEN const char *gpustub_reason(const char *library)
{
    const struct result *result = result_of(library);
    if (!library || library_index(library) < 0)
        return "this program has no stubs for a library of that name";
    return !result ? "out of memory" : result->handle ? "" : result->reason;
}

HIDDEN const char *gpustub_report(const char *library)
{
    struct result *result = result_of(library);
    return result ? get_report(library_index(library), result) : NULL;
}

HIDDEN int gpustub_counts(const char *library, int *bound, int *refused, int *missing)
{
    const struct result *result = result_of(library);
    if (bound)
        *bound = result ? LOAD_RELAXED(&result->bound) : 0;
    if (refused)
        *refused = result ? LOAD_RELAXED(&result->refused) : 0;
    if (missing)
        *missing = result ? LOAD_RELAXED(&result->missing) : 0;
    return gpustub_load(library);
}

HIDDEN int gpustub_set_handle(const char *library, void *handle)
{
    int index = library_index(library);
    if (!library || !handle)
        return GPUSTUB_INVALID_ARGUMENT;
    if (index < 0)
        return GPUSTUB_UNKNOWN_LIBRARY;
    struct library_state *state = get_state(index);
    if (LOAD_ACQUIRE(&state->result))
        return GPUSTUB_ALREADY_BOUND;
    STORE_RELEASE(&state->handle, handle);
    return GPUSTUB_OK;
}
