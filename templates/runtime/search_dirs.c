/* search_dirs.c: lists the directories of a search, in order. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static int is_in_stubs_dir(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash - path >= 6 && !strncmp(slash - 6, "/stubs", 6);
}

/* Returns the reason why a file is never the library that its name says, or NULL. */
const char *impostor_reason(const struct library *library, const char *path)
{
    char *real = path ? real_path(path) : NULL;
    const char *why = NULL;
    /* A toolkit's `stubs` directory contains link-time libraries, to which symbolic links elsewhere may
     * lead. */
    if (is_in_stubs_dir(path) || is_in_stubs_dir(real))
        why = "a toolkit's link-time stub, not the library";
    /* The wheel of the CUDA 11 runtime has a libOpenCL.so.1 beside libcudart. */
    else if (library->role == ROLE_LOADER && real && strstr(real, "-packages/nvidia/"))
        why = "part of NVIDIA's wheel, not the system's";
    free(real);
    return why ? why : file_objection(path);
}

/* Returns the site-packages directory or toolkit root of a file, by the manifest's layout, or NULL. With
 * it, the rest of the toolkit is searched beside a library that was already loaded or that the loader
 * found. */
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

/* ---- the list ---------------------------------------------------------------------------------- */

/* Adds directories of the manifest or of GpuStub.toml: absolute, or relative to $ORIGIN. */
static void add_fixed_dirs(struct search_dirs *dirs, const char *own, const char *const *entries,
                           const char *found_by)
{
    static const char origin[] = "$ORIGIN";
    for (; *entries; entries++) {
        if (strncmp(*entries, origin, sizeof origin - 1)) {
            add_search_dir(dirs, *entries, "", found_by);
        } else if (own) {
            char *directory = copy_string(own);
            if (directory)
                *strrchr(directory, '/') = 0;
            char *path = directory ? join(directory, *entries + sizeof origin - 1, "") : NULL;
            if (path)
                add_search_dir(dirs, path, "", found_by);
            free(path);
            free(directory);
        }
    }
}

static void add_toolkit_roots(struct search_dirs *dirs, const struct library *library)
{
    static const char known[] = "well-known directory";
    for (const char *const *name = library->root_env; *name; name++) {
        const char *root = read_path(*name);
        if (root)
            add_subdirs(dirs, root, library->root_subdirs, *name);
    }
    for (const char *const *root = library->roots; *root; root++) {
        char *pattern = copy_string(*root);
        char *star = pattern ? strchr(pattern, '*') : NULL;
        char *slash = pattern ? strrchr(pattern, '/') : NULL;
        if (star && slash && slash < star) {
            char *roots[MAX_FILES];
            *star = *slash = 0;
            size_t count = list_files(pattern, slash + 1, roots, &dirs->is_short);
            for (size_t i = 0; i < count; i++) {
                add_subdirs(dirs, roots[i], library->root_subdirs, known);
                free(roots[i]);
            }
        } else if (pattern) {
            add_subdirs(dirs, pattern, library->root_subdirs, known);
        }
        free(pattern);
    }
}

/* Lists all directories to search for a library, in search order: those of the toolkit that the library's
 * family settled for (root, or NULL), GpuStub.toml's, wheels, conda, driver directories, the loader's
 * search, toolkits, well-known ones. */
void list_search_dirs(struct search_dirs *dirs, const struct library *library, const char *root)
{
    /* In a secure process the caller controls $ORIGIN and the directories around the program through a
     * hard link, as ld.so(8) says. */
    char *own = is_secure() ? NULL : own_image_path();
    int is_toolkit = library->role == ROLE_TOOLKIT;
    if (root) {
        add_search_dir(dirs, root, "", "same toolkit");
        add_subdirs(dirs, root, library->wheel_dirs, "same toolkit");
        add_subdirs(dirs, root, library->root_subdirs, "same toolkit");
    }
    dirs->except = root;
    add_fixed_dirs(dirs, own, library->search_dirs, "search-dirs");
    if (is_toolkit)
        add_python_dirs(dirs, library, own);
    add_fixed_dirs(dirs, own, library->dirs_before_loader, "driver directory");
    add_loader_dirs(dirs);
    if (is_toolkit)
        add_toolkit_roots(dirs, library);
    add_fixed_dirs(dirs, own, library->dirs_after_loader,
                   library->role == ROLE_DRIVER ? "driver directory" : "well-known directory");
    if (is_toolkit)
        add_last_dirs(dirs);
    dirs->except = NULL;
    free(own);
}
