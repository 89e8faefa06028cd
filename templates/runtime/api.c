/* api.c: gpustub.h. */
#include "internal.h"

#include <dlfcn.h>
#include <string.h>

/* The library's index, or -1. */
static int gpustub1_index(const char *name)
{
    for (int i = 0; name && i < gpustub1_library_count(); i++)
        if (!strcmp(gpustub1_library(i)->id, name))
            return i;
    return -1;
}

static struct gpustub1_outcome *gpustub1_outcome_of(const char *name)
{
    int index = gpustub1_index(name);
    return index < 0 ? NULL : gpustub1_settle(index);
}

GPUSTUB1_HIDDEN int gpustub_load(const char *library)
{
    const struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    if (!library)
        return GPUSTUB_INVALID;
    if (gpustub1_index(library) < 0)
        return GPUSTUB_UNKNOWN;
    return outcome && outcome->handle ? GPUSTUB_OK : GPUSTUB_UNAVAILABLE;
}

GPUSTUB1_HIDDEN int gpustub_is_available(const char *library)
{
    return gpustub_load(library) == GPUSTUB_OK;
}

GPUSTUB1_HIDDEN int gpustub_has(const char *library, const char *function)
{
    const struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    if (!outcome || !outcome->handle || !function)
        return 0;
    const struct gpustub1_library *known = gpustub1_library(gpustub1_index(library));
    struct gpustub1_binding binding;
    for (const struct gpustub1_slot *slot = known->first; slot < known->last; slot++)
        if (!strcmp(gpustub1_slot_name(slot), function))
            return gpustub1_resolve(slot, known, outcome, &binding) != NULL;
    /* A function that the program does not call has no slot: then the library answers. */
    return dlsym(outcome->handle, function) != NULL;
}

GPUSTUB1_HIDDEN const char *gpustub_path(const char *library)
{
    const struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    return outcome && outcome->handle ? outcome->path : NULL;
}

GPUSTUB1_HIDDEN int gpustub_version(const char *library)
{
    const struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    return outcome && outcome->handle ? outcome->version : 0;
}

GPUSTUB1_HIDDEN const char *gpustub_reason(const char *library)
{
    const struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    if (!library || gpustub1_index(library) < 0)
        return "this program has no stubs for a library of that name";
    return !outcome ? "out of memory" : outcome->handle ? "" : outcome->reason;
}

GPUSTUB1_HIDDEN const char *gpustub_report(const char *library)
{
    struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    return outcome ? gpustub1_report(gpustub1_index(library), outcome) : NULL;
}

GPUSTUB1_HIDDEN int gpustub_counts(const char *library, int *bound, int *refused, int *absent)
{
    const struct gpustub1_outcome *outcome = gpustub1_outcome_of(library);
    if (bound)
        *bound = outcome ? GPUSTUB1_READ(&outcome->bound) : 0;
    if (refused)
        *refused = outcome ? GPUSTUB1_READ(&outcome->refused) : 0;
    if (absent)
        *absent = outcome ? GPUSTUB1_READ(&outcome->absent) : 0;
    return gpustub_load(library);
}

GPUSTUB1_HIDDEN int gpustub_set_handle(const char *library, void *handle)
{
    int index = gpustub1_index(library);
    if (!library || !handle)
        return GPUSTUB_INVALID;
    if (index < 0)
        return GPUSTUB_UNKNOWN;
    struct gpustub1_state *state = gpustub1_state(index);
    if (GPUSTUB1_LOAD(&state->outcome))
        return GPUSTUB_TOO_LATE;
    GPUSTUB1_STORE(&state->given, handle);
    return GPUSTUB_OK;
}
