/* dirs.c: the list of the directories of a search, and the files in one. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- files in a directory ---------------------------------------------------------------------- */

/* Orders names newest first, `cuda-12.10` before `cuda-12.9`: digits as numbers, the rest as bytes. */
static int compare_names(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    for (;;) {
        if (*x >= '0' && *x <= '9' && *y >= '0' && *y <= '9') {
            char *end_x, *end_y;
            unsigned long nx = strtoul(x, &end_x, 10), ny = strtoul(y, &end_y, 10);
            if (nx != ny)
                return nx < ny ? 1 : -1;
            x = end_x;
            y = end_y;
        } else if (*x != *y || !*x) {
            return (unsigned char)*y - (unsigned char)*x;
        } else {
            x++;
            y++;
        }
    }
}

/* Lists the paths of directory entries whose names start with the prefix, newest version first. Returns
 * their number; the caller frees each path. Sets `is_short` if a shortage may be why there are none. */
size_t list_files(const char *directory, const char *prefix, char *paths[MAX_FILES], int *is_short)
{
    size_t count = read_directory(directory, prefix, paths, MAX_FILES, is_short);
    qsort(paths, count, sizeof *paths, compare_names); /* equal directory: compares the names */
    return count;
}

/* ---- parts of a path --------------------------------------------------------------------------- */

/* Returns the end of the last component of this name in a path, or NULL. */
const char *component_end(const char *path, const char *name)
{
    const char *end = NULL;
    size_t length = strlen(name);
    for (const char *p = path; (p = strchr(p, '/')); p++)
        if (!strncmp(p + 1, name, length) && p[1 + length] == '/')
            end = p + 1 + length;
    return end;
}

/* Returns the part of a path before its last `count` components, as an allocated string; NULL if that is
 * nothing. */
char *parent_of(const char *path, int count)
{
    char *parent = copy_string(path);
    for (; parent && count; count--) {
        char *slash = strrchr(parent, '/');
        *(slash ? slash : parent) = 0;
    }
    if (parent && *parent)
        return parent;
    free(parent);
    return NULL;
}

int exists_below(const char *directory, const char *name)
{
    char *path = join(directory, "/", name);
    int exists = path && find_file(path, NULL);
    free(path);
    return exists;
}

/* ---- the list ---------------------------------------------------------------------------------- */

void free_search_dirs(struct search_dirs *dirs)
{
    for (int i = 0; i < dirs->length; i++)
        free(dirs->data[i].path);
    free(dirs->data);
}

/* Appends a directory. Takes ownership of the path. */
void append_dir(struct search_dirs *dirs, char *path, struct search_dir dir)
{
    if (dirs->length == dirs->capacity) {
        int capacity = dirs->capacity ? dirs->capacity * 2 : 32;
        struct search_dir *data = realloc(dirs->data, (size_t)capacity * sizeof *data);
        if (!data) {
            dirs->is_cut = 1;
            free(path);
            return;
        }
        dirs->data = data;
        dirs->capacity = capacity;
    }
    dir.path = path;
    dirs->data[dirs->length++] = dir;
}

/* Adds a directory below a root, unless the list already has it. Relative roots are never searched. */
void add_search_dir(struct search_dirs *dirs, const char *root, const char *below,
                    const char *found_by)
{
    size_t root_length = strlen(root);
    if (!is_absolute(root) || (dirs->except && !strcmp(dirs->except, root)))
        return;
    char *path = join(root, *below ? "/" : "", below);
    if (!path) {
        dirs->is_cut = 1;
        return;
    }
    for (int i = 0; i < dirs->length; i++)
        if (dirs->data[i].kind == DIR_SEARCHED && !strcmp(dirs->data[i].path, path)) {
            free(path);
            return;
        }
    append_dir(dirs, path,
               (struct search_dir){
                   .kind = DIR_SEARCHED, .root_length = root_length, .found_by = found_by});
}

void add_subdirs(struct search_dirs *dirs, const char *root, const char *const *below,
                        const char *found_by)
{
    for (; *below; below++)
        add_search_dir(dirs, root, *below, found_by);
}
