/* query.c: the functions of gpustub.h. Each image that links stubs has a separate copy, part of the static
 * run time or of client.c, and the linker keeps one: both ask the image's own stubs, then the libraries of
 * stubs that it links. Another image's are never asked. */
#include "shared.h"

/* Tables of the libraries of stubs that this image links (client.c); null in an image without any
 * (elf_table.h). */
extern const struct api *const FIRST_API[] HIDDEN, *const END_OF_APIS[] HIDDEN;

/* Returns the table that knows a library, or NULL. */
static const struct api *find_api(const char *library)
{
    const struct api *own = &gpustub1_api;
    if (!library)
        return NULL;
    if (own && own->has_library(library))
        return own;
    for (const struct api *const *api = FIRST_API; api < END_OF_APIS; api++)
        if (*api && (*api)->has_library(library))
            return *api;
    return NULL;
}

MERGED int QUERY(load)(const char *library)
{
    const struct api *api = find_api(library);
    if (!library)
        return GPUSTUB_INVALID_ARGUMENT;
    return api ? api->load(library) : GPUSTUB_UNKNOWN_LIBRARY;
}

MERGED int QUERY(is_available)(const char *library)
{
    return QUERY(load)(library) == GPUSTUB_OK;
}

MERGED int QUERY(has_function)(const char *library, const char *function)
{
    const struct api *api = find_api(library);
    return api ? api->has_function(library, function) : 0;
}

MERGED const char *QUERY(path)(const char *library)
{
    const struct api *api = find_api(library);
    return api ? api->path(library) : NULL;
}

MERGED int QUERY(version)(const char *library)
{
    const struct api *api = find_api(library);
    return api ? api->version(library) : 0;
}

MERGED const char *QUERY(reason)(const char *library)
{
    const struct api *api = find_api(library);
    return api ? api->reason(library) : "this program has no stubs for a library of that name";
}

MERGED const char *QUERY(report)(const char *library)
{
    const struct api *api = find_api(library);
    return api ? api->report(library) : NULL;
}

MERGED int QUERY(counts)(const char *library, int *bound, int *refused, int *missing)
{
    const struct api *api = find_api(library);
    if (api)
        return api->counts(library, bound, refused, missing);
    if (bound)
        *bound = 0;
    if (refused)
        *refused = 0;
    if (missing)
        *missing = 0;
    return QUERY(load)(library);
}

MERGED int QUERY(set_handle)(const char *library, void *handle)
{
    const struct api *api = find_api(library);
    if (!library || !handle)
        return GPUSTUB_INVALID_ARGUMENT;
    return api ? api->set_handle(library, handle) : GPUSTUB_UNKNOWN_LIBRARY;
}
