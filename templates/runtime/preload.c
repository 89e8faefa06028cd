/* preload.c: loads files that a library opens later by a bare name, where the loader would not find them from
 * that library. A bare name finds an image that is loaded already, by its soname. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether the program has stubs of a function whose name starts with the prefix. */
static int calls_function(const struct library_state *state, const char *prefix)
{
    FOR_EACH_PART (part, state)
        for (const struct slot *slot = part->first; slot < part->last; slot++)
            if (!strncmp(slot_name(slot), prefix, strlen(prefix)))
                return 1;
    return 0;
}

/* Loads the files of a directory whose names start with `name`, or are `name`, unless the loader finds them
 * itself. Returns whether there are any. */
static int preload_from(const char *directory, const char *name, int is_prefix, void *handle)
{
    char *paths[MAX_FILES];
    size_t count = list_files(directory, name, paths, NULL);
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        const char *file = strrchr(paths[i], '/') + 1;
        if (is_prefix || !strcmp(file, name)) {
            found = 1;
            if (!loader_finds(handle, file))
                (void)open_library(paths[i], ROLE_TOOLKIT);
        }
        free(paths[i]);
    }
    return found;
}

static int preload_below(const char *root, const char *below, size_t length, const char *name,
                         int is_prefix, void *handle)
{
    struct text directory = {NULL, 0, 0};
    append(&directory, root);
    append(&directory, "/");
    append_bytes(&directory, below, length);
    int found = directory.data && preload_from(directory.data, name, is_prefix, handle);
    free(directory.data);
    return found;
}

/* Loads one file: beside the library (`own`), else in its directory of the same toolkit. */
static void preload_file(const struct search *search, const struct preload *entry, const char *own)
{
    const struct result *result = search->result;
    const char *slash = strrchr(entry->file, '/');
    const char *base = slash ? slash + 1 : entry->file;
    int is_prefix = *base && strchr("._", base[strlen(base) - 1]); /* the major follows */
    int32_t major = slash ? result->toolkit : result->major;
    struct text name = {NULL, 0, 0};
    append(&name, base);
    if (is_prefix && major)
        append_number(&name, major);
    int found = !name.data || preload_from(own, name.data, is_prefix, result->handle);
    const char *roots[] = {result->root, search->toolkit ? search->toolkit->root : NULL};
    for (int i = 0; i < 2 && slash && !found; i++) {
        if (!roots[i])
            continue;
        found = preload_below(roots[i], entry->file, (size_t)(slash - entry->file), name.data,
                              is_prefix, result->handle);
        for (const char *const *below = search->library->root_subdirs; *below && !found; below++)
            found = preload_below(roots[i], *below, strlen(*below), name.data, is_prefix,
                                  result->handle);
    }
    free(name.data);
}

/* Loads the files that the manifest lists for an accepted library. */
void preload_files(const struct search *search)
{
    const char *path = search->result->path;
    const char *slash = path ? strrchr(path, '/') : NULL;
    char *own = slash ? copy_string(path) : NULL;
    if (own)
        own[slash - path] = 0;
    for (const struct preload *entry = search->library->preload; own && entry->file; entry++)
        if (!entry->functions || calls_function(search->library->state, entry->functions))
            preload_file(search, entry, own);
    free(own);
}
