/* search_dirs.c: the directories in which a library may lie, in the order in which they are looked at. */
#include "internal.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 64 }; /* of one pattern in one directory */

/* Orders `cuda-12.10` after `cuda-12.9`: digits by their number, the rest by bytes. */
static int compare_names(const void *a, const void *b)
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
int each_file(const char *directory, const char *prefix,
              int (*callback)(void *context, const char *path), void *context)
{
    char *names[MAX_FILES];
    size_t count = 0;
    int result = 0;
    DIR *stream = opendir(directory);
    if (!stream)
        return 0;
    for (struct dirent *entry; count < MAX_FILES && (entry = readdir(stream));)
        if (entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix))) {
            names[count] = copy_string(entry->d_name);
            count += names[count] != NULL;
        }
    closedir(stream);
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        char *path = result ? NULL : join(directory, "/", names[i]);
        if (path)
            result = callback(context, path);
        free(path);
        free(names[i]);
    }
    return result;
}

/* ---- what a path tells ----------------------------------------------------------------------- */

static int is_in_stubs_dir(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash - path >= 6 && !strncmp(slash - 6, "/stubs", 6);
}

/* Whether a file is never the library that it is named after, and then why not. */
const char *impostor_reason(const struct library *library, const char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    const char *why = NULL;
    /* A toolkit's `stubs` directory holds libraries that only serve to be linked against; people
     * link to them from elsewhere. */
    if (is_in_stubs_dir(path) || is_in_stubs_dir(real))
        why = "a toolkit's link-time stub, not the library";
    /* The wheel of the CUDA 11 runtime has a libOpenCL.so.1 beside libcudart. */
    else if (library->role == ROLE_LOADER && real && strstr(real, "-packages/nvidia/"))
        why = "part of NVIDIA's wheel, not the system's";
    free(real);
    return why;
}

/* The site-packages directory or toolkit root that a file lies in, by the manifest's layout; NULL
 * if in none. So that the rest of the toolkit is looked for beside a library that was found
 * without looking there: loaded already, or by the loader. */
char *toolkit_root_of(const struct library *library, const char *path)
{
    const char *const *lists[] = {library->wheel_dirs, library->root_subdirs};
    const char *slash = path ? strrchr(path, '/') : NULL;
    for (int list = 0; slash && list < 2; list++)
        for (const char *const *below = lists[list]; *below; below++) {
            size_t length = strlen(*below), before = (size_t)(slash - path);
            if (before < length + 2 || path[before - length - 1] != '/' ||
                strncmp(path + before - length, *below, length))
                continue;
            char *root = copy_string(path);
            if (root)
                root[before - length - 1] = 0;
            return root;
        }
    return NULL;
}

/* ---- walking --------------------------------------------------------------------------------- */

struct walk {
    const struct library *library;
    dir_callback *callback;
    void *context;
    const char *found;  /* how the places of the current step are found */
    const char *except; /* not this root, or NULL */
};

/* A directory below a root. */
static int visit(struct walk *walk, const char *root, const char *below)
{
    if (root[0] != '/')
        return 0; /* relative entries are never searched */
    if (walk->except && !strcmp(walk->except, root))
        return 0; /* had its turn */
    char *directory = join(root, *below ? "/" : "", below);
    int result = directory ? walk->callback(walk->context, directory, root, walk->found) : 0;
    free(directory);
    return result;
}

static int visit_each(struct walk *walk, const char *root, const char *const *below)
{
    int result = 0;
    for (; *below && !result; below++)
        result = visit(walk, root, *below);
    return result;
}

static int visit_site(void *context, const char *python)
{
    struct walk *walk = context;
    char *site = join(python, "/site-packages", "");
    int result = site ? visit_each(walk, site, walk->library->wheel_dirs) : 0;
    free(site);
    return result;
}

static int visit_root(void *context, const char *root)
{
    struct walk *walk = context;
    return visit_each(walk, root, walk->library->root_subdirs);
}

/* The last component of this name in a path: its end, or NULL. */
static const char *component_end(const char *path, const char *name)
{
    const char *end = NULL;
    size_t length = strlen(name);
    for (const char *p = path; (p = strchr(p, '/')); p++)
        if (!strncmp(p + 1, name, length) && p[1 + length] == '/')
            end = p + 1 + length;
    return end;
}

/* Wheels in the site-packages directory that the image lies in, then below VIRTUAL_ENV. */
static int wheel_dirs(struct walk *walk, const char *own)
{
    int result = 0;
    const char *end = own ? component_end(own, "site-packages") : NULL;
    if (own && !end)
        end = component_end(own, "dist-packages");
    char *site = end ? copy_string(own) : NULL;
    if (site) {
        site[end - own] = 0;
        walk->found = "site-packages around the program";
        result = visit_each(walk, site, walk->library->wheel_dirs);
        free(site);
    }
    const char *environment = read_env("VIRTUAL_ENV");
    if (!result && environment) {
        walk->found = "VIRTUAL_ENV";
        char *lib = join(environment, "/lib", "");
        if (lib)
            result = each_file(lib, "python3", visit_site, walk);
        free(lib);
    }
    return result;
}

/* A directory of the manifest's, or of GpuStub.toml's: absolute, or from $ORIGIN. */
static int fixed_dirs(struct walk *walk, const char *own, const char *const *entries)
{
    static const char origin[] = "$ORIGIN";
    int result = 0;
    for (; *entries && !result; entries++) {
        if (strncmp(*entries, origin, sizeof origin - 1)) {
            result = visit(walk, *entries, "");
        } else if (own) {
            char *directory = copy_string(own);
            if (directory) {
                *strrchr(directory, '/') = 0;
                char *path = join(directory, *entries + sizeof origin - 1, "");
                if (path)
                    result = visit(walk, path, "");
                free(path);
            }
            free(directory);
        }
    }
    return result;
}

static int toolkit_roots(struct walk *walk)
{
    int result = 0;
    for (const char *const *name = walk->library->root_env; *name && !result; name++) {
        const char *root = read_env(*name);
        walk->found = *name;
        if (root)
            result = visit_root(walk, root);
    }
    walk->found = "well-known directory";
    for (const char *const *root = walk->library->roots; *root && !result; root++) {
        char *pattern = copy_string(*root);
        char *star = pattern ? strchr(pattern, '*') : NULL;
        char *slash = pattern ? strrchr(pattern, '/') : NULL;
        if (star && slash && slash < star) {
            *star = *slash = 0;
            result = each_file(pattern, slash + 1, visit_root, walk);
        } else if (pattern) {
            result = visit_root(walk, pattern);
        }
        free(pattern);
    }
    return result;
}

static int all_dirs(struct walk *walk, const char *own)
{
    const struct library *library = walk->library;
    int result;
    walk->found = "search-dirs";
    if ((result = fixed_dirs(walk, own, library->search_dirs)))
        return result;
    if (library->role == ROLE_TOOLKIT) {
        if ((result = wheel_dirs(walk, own)))
            return result;
        const char *conda = read_env("CONDA_PREFIX");
        walk->found = "CONDA_PREFIX";
        if (conda && (result = visit(walk, conda, "lib")))
            return result;
    }
    walk->found = "driver directory";
    if ((result = fixed_dirs(walk, own, library->dirs_before_loader)))
        return result;
    if ((result = walk->callback(walk->context, NULL, NULL, "the loader's search")))
        return result;
    if (library->role == ROLE_TOOLKIT && (result = toolkit_roots(walk)))
        return result;
    walk->found = library->role == ROLE_DRIVER ? "driver directory" : "well-known directory";
    return fixed_dirs(walk, own, library->dirs_after_loader);
}

int each_dir(const struct library *library, const char *root, dir_callback *callback, void *context)
{
    struct walk walk = {library, callback, context, "same toolkit", NULL};
    /* $ORIGIN and the directories around the program are the caller's choice in a secure process
     * (a hard link moves them), as ld.so(8) says. */
    char *own = is_secure() ? NULL : own_image_path();
    int result = 0;
    if (root && !(result = visit(&walk, root, "")) &&
        !(result = visit_each(&walk, root, library->wheel_dirs)))
        result = visit_each(&walk, root, library->root_subdirs);
    walk.except = root;
    if (!result)
        result = all_dirs(&walk, own);
    free(own);
    return result;
}
