/* search_dirs.c: lists the directories of a search, in order. */
#include "internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* Returns whether an error may be gone at the next attempt. */
int is_shortage(int error)
{
    static const int errors[] = {SHORTAGES};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (error == errors[i])
            return 1;
    return 0;
}

/* Lists the paths of directory entries whose names start with the prefix, newest version first.
 * Returns their number; the caller frees each path. 0: errno is the reason, or 0. */
size_t list_files(const char *directory, const char *prefix, char *paths[MAX_FILES])
{
    size_t count = 0;
    DIR *stream = opendir(directory);
    if (!stream)
        return 0;
    errno = 0;
    for (struct dirent *entry; count < MAX_FILES && (entry = readdir(stream));)
        if (entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix))) {
            paths[count] = join(directory, "/", entry->d_name);
            count += paths[count] != NULL;
        }
    closedir(stream);
    qsort(paths, count, sizeof *paths, compare_names); /* equal directory: compares the names */
    return count;
}

/* ---- properties of a path ---------------------------------------------------------------------- */

static int is_in_stubs_dir(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash - path >= 6 && !strncmp(slash - 6, "/stubs", 6);
}

/* Returns the reason why a file is never the library that its name says, or NULL. */
const char *impostor_reason(const struct library *library, const char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
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

void free_search_dirs(struct search_dirs *dirs)
{
    for (int i = 0; i < dirs->length; i++)
        free(dirs->data[i].path);
    free(dirs->data);
}

/* Appends a directory. Takes ownership of the path. */
static void append_dir(struct search_dirs *dirs, char *path, struct search_dir dir)
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
    if (root[0] != '/' || (dirs->except && !strcmp(dirs->except, root)))
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

static void add_subdirs(struct search_dirs *dirs, const char *root, const char *const *below,
                        const char *found_by)
{
    for (; *below; below++)
        add_search_dir(dirs, root, *below, found_by);
}

/* Returns the end of the last component of this name in a path, or NULL. */
static const char *component_end(const char *path, const char *name)
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
static char *parent_of(const char *path, int count)
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

static int exists_below(const char *directory, const char *name)
{
    struct stat status;
    char *path = join(directory, "/", name);
    int exists = path && !stat(path, &status);
    free(path);
    return exists;
}

/* Adds the wheels of a Python environment, those of its newest Python first. */
static void add_environment(struct search_dirs *dirs, const struct library *library,
                            const char *prefix, const char *found_by)
{
    char *lib = join(prefix, "/lib", "");
    char *pythons[MAX_FILES];
    size_t count = lib ? list_files(lib, "python3", pythons) : 0;
    dirs->is_short |= !count && is_shortage(errno);
    for (size_t i = 0; i < count; i++) {
        char *site = join(pythons[i], "/site-packages", "");
        if (site)
            add_subdirs(dirs, site, library->wheel_dirs, found_by);
        free(site);
        free(pythons[i]);
    }
    free(lib);
}

static int is_conda(const char *prefix)
{
    return prefix && exists_below(prefix, "conda-meta");
}

/* Returns whether a directory is a Python environment: `pyvenv.cfg` marks a virtual one, `conda-meta` one of
 * conda. Both have programs in `bin`, which start without activation (pipx, `uv tool`). */
static int is_environment(const char *prefix)
{
    return is_conda(prefix) || (prefix && exists_below(prefix, "pyvenv.cfg"));
}

/* Returns the prefix of the environment whose Python was started, or NULL. A virtual environment's `bin/python`
 * is a link to another Python, so the path counts as it was written. */
static char *started_environment(void)
{
    const char *names[2];
    size_t count = started_names(names);
    for (size_t i = 0; i < count; i++) {
        const char *name = names[i], *directory = *name == '/' ? "" : read_env("PWD");
        int is_path = directory && strchr(name, '/');
        while (!strncmp(name, "./", 2))
            name += 2;
        char *path = is_path ? join(directory, *directory ? "/" : "", name) : NULL;
        char *prefix = path ? parent_of(path, 2) : NULL;
        free(path);
        if (is_environment(prefix))
            return prefix;
        free(prefix);
    }
    return NULL;
}

/* Adds wheels in the site-packages directory that contains the image, in the environment that contains it, in
 * that of the started Python, and below VIRTUAL_ENV; then conda's libraries. */
static void add_python_dirs(struct search_dirs *dirs, const struct library *library,
                            const char *own)
{
    static const char around[] = "environment of the program";
    static const char by_path[] = "environment of the started program";
    const char *end = own ? component_end(own, "site-packages") : NULL;
    if (own && !end)
        end = component_end(own, "dist-packages");
    char *site = end ? copy_string(own) : NULL;
    if (site) {
        site[end - own] = 0;
        add_subdirs(dirs, site, library->wheel_dirs, "site-packages around the program");
    }
    /* PREFIX/lib/python3.12/site-packages, or PREFIX/bin/program */
    char *prefix = site ? parent_of(site, 3) : own ? parent_of(own, 2) : NULL;
    char *started = is_secure() ? NULL : started_environment();
    const char *environment = read_env("VIRTUAL_ENV"), *conda = read_env("CONDA_PREFIX");
    if (is_environment(prefix))
        add_environment(dirs, library, prefix, around);
    if (started)
        add_environment(dirs, library, started, by_path);
    if (environment)
        add_environment(dirs, library, environment, "VIRTUAL_ENV");
    if (is_conda(prefix))
        add_search_dir(dirs, prefix, "lib", around);
    if (is_conda(started))
        add_search_dir(dirs, started, "lib", by_path);
    if (conda)
        add_search_dir(dirs, conda, "lib", "CONDA_PREFIX");
    free(started);
    free(prefix);
    free(site);
}

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
        const char *root = read_env(*name);
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
            size_t count = list_files(pattern, slash + 1, roots);
            dirs->is_short |= !count && is_shortage(errno);
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

#if defined(__GLIBC__) || defined(__FreeBSD__)
/* Returns the directories that the loader searches for an image, without ld.so.cache; NULL if unknown. */
static Dl_serinfo *loader_dirs(void *handle)
{
    Dl_serinfo size, *info = NULL;
    if (!handle || dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) || !(info = calloc(1, size.dls_size)))
        return NULL;
    info->dls_size = size.dls_size;
    info->dls_cnt = size.dls_cnt;
    if (!dlinfo(handle, RTLD_DI_SERINFO, info))
        return info;
    free(info);
    return NULL;
}
#endif

/* Returns whether a library finds this name by its run path or in the loader's directories. 0: unknown. */
int loader_finds(void *handle, const char *name)
{
    int found = 0;
#if defined(__GLIBC__) || defined(__FreeBSD__)
    Dl_serinfo *info = loader_dirs(handle);
    for (unsigned i = 0; info && i < info->dls_cnt && !found; i++)
        found = exists_below(info->dls_serpath[i].dls_name, name);
    free(info);
#else
    (void)handle;
    (void)name;
#endif
    return found;
}

/* Adds the loader's search, and the directories that it searches, since the loader cannot be queried
 * without loading. (ld.so.cache is not in that list; on most systems its files are in directories of the
 * list. musl does not list them.) */
static void add_loader_dirs(struct search_dirs *dirs)
{
    static const char found_by[] = "dynamic loader";
    append_dir(dirs, NULL, (struct search_dir){.kind = DIR_LOADER, .found_by = found_by});
#if defined(__GLIBC__) || defined(__FreeBSD__)
    Dl_serinfo *info = loader_dirs(dlopen(NULL, RTLD_LAZY));
    for (unsigned i = 0; info && i < info->dls_cnt; i++) {
        const char *directory = info->dls_serpath[i].dls_name;
        char *path = directory[0] == '/' ? copy_string(directory)
                                         : realpath(*directory ? directory : ".", NULL);
        if (path)
            append_dir(dirs, path,
                       (struct search_dir){.kind = DIR_OF_LOADER, .found_by = found_by});
    }
    free(info);
#endif
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
    dirs->except = NULL;
    free(own);
}
