/* search_dirs.c: the directories in which a library may lie, in the order in which they are looked at. */
#include "internal.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { GPUSTUB1_MOST_FILES = 64 }; /* of one pattern in one directory */

/* Orders `cuda-12.10` after `cuda-12.9`: digits by their number, the rest by bytes. */
static int gpustub1_compare(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    for (;;) {
        if (*x >= '0' && *x <= '9' && *y >= '0' && *y <= '9') {
            char *end_x, *end_y;
            unsigned long nx = strtoul(x, &end_x, 10), ny = strtoul(y, &end_y, 10);
            if (nx != ny)
                return nx < ny ? 1 : -1; /* newest first */
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

/* Calls back with the path of each entry of a directory whose name starts with the prefix, newest
 * version first, until the callback returns non-zero. */
int gpustub1_each_file(const char *directory, const char *prefix,
                       int (*callback)(void *context, const char *path), void *context)
{
    char *names[GPUSTUB1_MOST_FILES];
    size_t count = 0;
    int result = 0;
    DIR *stream = opendir(directory);
    if (!stream)
        return 0;
    for (struct dirent *entry; count < GPUSTUB1_MOST_FILES && (entry = readdir(stream));)
        if (entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix))) {
            names[count] = gpustub1_copy(entry->d_name);
            count += names[count] != NULL;
        }
    closedir(stream);
    qsort(names, count, sizeof *names, gpustub1_compare);
    for (size_t i = 0; i < count; i++) {
        char *path = result ? NULL : gpustub1_join(directory, "/", names[i]);
        if (path)
            result = callback(context, path);
        free(path);
        free(names[i]);
    }
    return result;
}

/* ---- what a path tells ----------------------------------------------------------------------- */

static int gpustub1_is_in_stubs(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash - path >= 6 && !strncmp(slash - 6, "/stubs", 6);
}

/* Whether a file is never the library that it is named after, and then why not. */
const char *gpustub1_is_impostor(const struct gpustub1_library *library, const char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    const char *why = NULL;
    /* A toolkit's `stubs` directory holds libraries that only serve to be linked against; people
     * link to them from elsewhere. */
    if (gpustub1_is_in_stubs(path) || gpustub1_is_in_stubs(real))
        why = "a toolkit's link-time stub, not the library";
    /* The wheel of the CUDA 11 runtime has a libOpenCL.so.1 beside libcudart. */
    else if (library->role == GPUSTUB1_LOADER && real && strstr(real, "-packages/nvidia/"))
        why = "part of NVIDIA's wheel, not the system's";
    free(real);
    return why;
}

/* The site-packages directory or toolkit root that a file lies in, by the manifest's layout; NULL
 * if in none. So that the rest of the toolkit is looked for beside a library that was found
 * without looking there: loaded already, or by the loader. */
char *gpustub1_root_of(const struct gpustub1_library *library, const char *path)
{
    const char *const *lists[] = {library->wheel_dirs, library->root_dirs};
    const char *slash = path ? strrchr(path, '/') : NULL;
    for (int list = 0; slash && list < 2; list++)
        for (const char *const *below = lists[list]; *below; below++) {
            size_t length = strlen(*below), before = (size_t)(slash - path);
            if (before < length + 2 || path[before - length - 1] != '/' ||
                strncmp(path + before - length, *below, length))
                continue;
            char *root = gpustub1_copy(path);
            if (root)
                root[before - length - 1] = 0;
            return root;
        }
    return NULL;
}

/* ---- walking --------------------------------------------------------------------------------- */

struct gpustub1_walk {
    const struct gpustub1_library *library;
    gpustub1_place_fn *callback;
    void *context;
    const char *found;  /* how the places of the current step are found */
    const char *except; /* not this root, or NULL */
};

/* A directory below a root. */
static int gpustub1_visit(struct gpustub1_walk *walk, const char *root, const char *below)
{
    if (root[0] != '/')
        return 0; /* relative entries are never searched */
    if (walk->except && !strcmp(walk->except, root))
        return 0; /* had its turn */
    char *directory = gpustub1_join(root, *below ? "/" : "", below);
    int result = directory ? walk->callback(walk->context, directory, root, walk->found) : 0;
    free(directory);
    return result;
}

static int gpustub1_visit_each(struct gpustub1_walk *walk, const char *root,
                               const char *const *below)
{
    int result = 0;
    for (; *below && !result; below++)
        result = gpustub1_visit(walk, root, *below);
    return result;
}

static int gpustub1_visit_site(void *context, const char *python)
{
    struct gpustub1_walk *walk = context;
    char *site = gpustub1_join(python, "/site-packages", "");
    int result = site ? gpustub1_visit_each(walk, site, walk->library->wheel_dirs) : 0;
    free(site);
    return result;
}

static int gpustub1_visit_root(void *context, const char *root)
{
    struct gpustub1_walk *walk = context;
    return gpustub1_visit_each(walk, root, walk->library->root_dirs);
}

/* The last component of this name in a path: its end, or NULL. */
static const char *gpustub1_component_end(const char *path, const char *name)
{
    const char *end = NULL;
    size_t length = strlen(name);
    for (const char *p = path; (p = strchr(p, '/')); p++)
        if (!strncmp(p + 1, name, length) && p[1 + length] == '/')
            end = p + 1 + length;
    return end;
}

/* Wheels in the site-packages directory that the image lies in, then below VIRTUAL_ENV. */
static int gpustub1_wheels(struct gpustub1_walk *walk, const char *own)
{
    int result = 0;
    const char *end = own ? gpustub1_component_end(own, "site-packages") : NULL;
    if (own && !end)
        end = gpustub1_component_end(own, "dist-packages");
    char *site = end ? gpustub1_copy(own) : NULL;
    if (site) {
        site[end - own] = 0;
        walk->found = "site-packages around the program";
        result = gpustub1_visit_each(walk, site, walk->library->wheel_dirs);
        free(site);
    }
    const char *environment = gpustub1_env("VIRTUAL_ENV");
    if (!result && environment) {
        walk->found = "VIRTUAL_ENV";
        char *lib = gpustub1_join(environment, "/lib", "");
        if (lib)
            result = gpustub1_each_file(lib, "python3", gpustub1_visit_site, walk);
        free(lib);
    }
    return result;
}

/* A directory of the manifest's, or of GpuStub.toml's: absolute, or from $ORIGIN. */
static int gpustub1_fixed(struct gpustub1_walk *walk, const char *own, const char *const *entries)
{
    static const char origin[] = "$ORIGIN";
    int result = 0;
    for (; *entries && !result; entries++) {
        if (strncmp(*entries, origin, sizeof origin - 1)) {
            result = gpustub1_visit(walk, *entries, "");
        } else if (own) {
            char *directory = gpustub1_copy(own);
            if (directory) {
                *strrchr(directory, '/') = 0;
                char *path = gpustub1_join(directory, *entries + sizeof origin - 1, "");
                if (path)
                    result = gpustub1_visit(walk, path, "");
                free(path);
            }
            free(directory);
        }
    }
    return result;
}

static int gpustub1_toolkit_roots(struct gpustub1_walk *walk)
{
    int result = 0;
    for (const char *const *name = walk->library->variables; *name && !result; name++) {
        const char *root = gpustub1_env(*name);
        walk->found = *name;
        if (root)
            result = gpustub1_visit_root(walk, root);
    }
    walk->found = "well-known directory";
    for (const char *const *root = walk->library->roots; *root && !result; root++) {
        char *pattern = gpustub1_copy(*root);
        char *star = pattern ? strchr(pattern, '*') : NULL;
        char *slash = pattern ? strrchr(pattern, '/') : NULL;
        if (star && slash && slash < star) {
            *star = *slash = 0;
            result = gpustub1_each_file(pattern, slash + 1, gpustub1_visit_root, walk);
        } else if (pattern) {
            result = gpustub1_visit_root(walk, pattern);
        }
        free(pattern);
    }
    return result;
}

static int gpustub1_all_places(struct gpustub1_walk *walk, const char *own)
{
    const struct gpustub1_library *library = walk->library;
    int result;
    walk->found = "search-dirs";
    if ((result = gpustub1_fixed(walk, own, library->search_dirs)))
        return result;
    if (library->role == GPUSTUB1_TOOLKIT) {
        if ((result = gpustub1_wheels(walk, own)))
            return result;
        const char *conda = gpustub1_env("CONDA_PREFIX");
        walk->found = "CONDA_PREFIX";
        if (conda && (result = gpustub1_visit(walk, conda, "lib")))
            return result;
    }
    walk->found = "driver directory";
    if ((result = gpustub1_fixed(walk, own, library->dirs_first)))
        return result;
    if ((result = walk->callback(walk->context, NULL, NULL, "the loader's search")))
        return result;
    if (library->role == GPUSTUB1_TOOLKIT && (result = gpustub1_toolkit_roots(walk)))
        return result;
    walk->found = library->role == GPUSTUB1_DRIVER ? "driver directory" : "well-known directory";
    return gpustub1_fixed(walk, own, library->dirs);
}

int gpustub1_places(const struct gpustub1_library *library, const char *root,
                    gpustub1_place_fn *callback, void *context)
{
    struct gpustub1_walk walk = {library, callback, context, "same toolkit", NULL};
    /* $ORIGIN and the directories around the program are the caller's choice in a secure process
     * (a hard link moves them), as ld.so(8) says. */
    char *own = gpustub1_secure() ? NULL : gpustub1_own_path();
    int result = 0;
    if (root && !(result = gpustub1_visit(&walk, root, "")) &&
        !(result = gpustub1_visit_each(&walk, root, library->wheel_dirs)))
        result = gpustub1_visit_each(&walk, root, library->root_dirs);
    walk.except = root;
    if (!result)
        result = gpustub1_all_places(&walk, own);
    free(own);
    return result;
}
