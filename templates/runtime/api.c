/* api.c: the functions of gpustub.h for the stubs of this image, as a table (query.c). */
#include "internal.h"

#include <string.h>

/* Returns the library of a name, or NULL. The image has parts if it has ours: the reference keeps them. */
static struct library_state *find_state(const char *name)
{
    if (!name || !gpustub1_own_parts)
        return NULL;
    FOR_EACH_PART (part, NULL)
        if (!strcmp(part->library->id, name))
            return part->library->state;
    return NULL;
}

static struct result *result_of(const char *name)
{
    struct library_state *state = find_state(name);
    return state ? settle_library(state) : NULL;
}

static int api_load(const char *library)
{
    const struct result *result = result_of(library);
    if (!library)
        return GPUSTUB_INVALID_ARGUMENT;
    if (!find_state(library))
        return GPUSTUB_UNKNOWN_LIBRARY;
    return result && result->handle ? GPUSTUB_OK : GPUSTUB_UNAVAILABLE;
}

static int api_has_library(const char *library)
{
    return find_state(library) != NULL;
}

static int api_has_function(const char *library, const char *function)
{
    const struct result *result = result_of(library);
    if (!result || !result->handle || !function)
        return 0;
    struct binding binding;
    int has = -1;
    FOR_EACH_PART (part, find_state(library))
        for (const struct slot *slot = part->first; slot < part->last && has < 0; slot++)
            if (!strcmp(slot_name(slot), function))
                has = !slot_reason(slot) && resolve_slot(slot, part->library, result, &binding);
    if (has < 0) /* a function that the program does not call has no slot: the library decides */
        has = find_symbol(result->handle, function) != NULL;
    clear_errors();
    return has;
}

static const char *api_path(const char *library)
{
    const struct result *result = result_of(library);
    return result && result->handle ? result->path : NULL;
}

static int api_version(const char *library)
{
    const struct result *result = result_of(library);
    return result && result->handle ? result->version : 0;
}

static const char *api_reason(const char *library)
{
    const struct result *result = result_of(library);
    if (!find_state(library))
        return "this program has no stubs for a library of that name";
    return !result ? "out of memory" : result->handle ? "" : result->reason;
}

static const char *api_report(const char *library)
{
    struct result *result = result_of(library);
    const char *report = result ? get_report(find_state(library), result) : NULL;
    clear_errors();
    return report;
}

static int api_counts(const char *library, int *bound, int *refused, int *missing)
{
    const struct result *result = result_of(library);
    if (bound)
        *bound = result ? LOAD_RELAXED(&result->bound) : 0;
    if (refused)
        *refused = result ? LOAD_RELAXED(&result->refused) : 0;
    if (missing)
        *missing = result ? LOAD_RELAXED(&result->missing) : 0;
    return api_load(library);
}

static int api_set_handle(const char *library, void *handle)
{
    struct library_state *state = find_state(library);
    if (!library || !handle)
        return GPUSTUB_INVALID_ARGUMENT;
    if (!state)
        return GPUSTUB_UNKNOWN_LIBRARY;
    if (LOAD_ACQUIRE(&state->result))
        return GPUSTUB_ALREADY_BOUND;
    STORE_RELEASE(&state->handle, handle);
    return GPUSTUB_OK;
}

API_TABLE = {
    api_has_library, api_load, api_has_function, api_path,   api_version,
    api_reason,      api_report, api_counts,     api_set_handle,
};
