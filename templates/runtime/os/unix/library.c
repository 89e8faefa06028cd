/* library.c: the dynamic loader. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- libraries and symbols --------------------------------------------------------------------- */

/* Loads a file, or a bare name that the loader resolves. NULL: open_error() has the reason. */
void *open_library(const char *name, enum role role)
{
    (void)role;
    return dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

/* Returns the handle of a library that is loaded already, or NULL. */
void *loaded_library(const char *name)
{
    return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

/* musl has no dlvsym, and always returns the default version. */
void *find_versioned_symbol(void *handle, const char *name, const char *version)
{
#if defined(__GLIBC__) || defined(__FreeBSD__)
    return dlvsym(handle, name, version);
#else
    (void)version;
    return dlsym(handle, name);
#endif
}

/* Drops the message of a failed call, which the program's dlerror() would return. */
void clear_errors(void)
{
    (void)dlerror();
}

/* ---- errors ------------------------------------------------------------------------------------ */

/* Returns whether one of SHORTAGES is the reason for the loader's message. */
static int names_shortage(const char *message)
{
    static const int errors[] = {SHORTAGES};
    for (size_t i = 0; message && i < sizeof errors / sizeof *errors; i++)
        if (strstr(message, strerror(errors[i])))
            return 1;
    return 0;
}

/* Returns whether the process cannot map a file of this size. glibc's message names no error then ("failed to
 * map segment from shared object"). */
static int cannot_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED || munmap(memory, size);
}

/* Returns why the last open_library() failed, as an allocated string; NULL if `name` does not exist. Sets
 * `is_short` for a shortage. `size`: of the file; 0: `name` is a bare name. */
char *open_error(const char *name, size_t size, int *is_short)
{
    const char *message = dlerror();
    const char *named = message ? strstr(message, name) : NULL;
    *is_short |= names_shortage(message) || (size && cannot_map(size));
    if (!message)
        return copy_string("cannot be loaded");
    /* Only this file is missing, not one that it needs (glibc "NAME: cannot open shared object file: No
     * such file or directory", musl "Error loading shared library NAME: No such …", in the user's
     * language). */
    if (named && named[strlen(name)] == ':' && strstr(message, strerror(ENOENT)) &&
        !strstr(message, "needed by"))
        return NULL;
    return copy_string(message);
}

/* Returns what to add to the report if there is no library of a ROLE_LOADER. */
const char *missing_loader_hint(void)
{
    char *driver[1];
    if (!read_directory("/etc/OpenCL/vendors", "", driver, 1, NULL))
        return "";
    free(driver[0]);
    return "; drivers are listed in /etc/OpenCL/vendors, but no ICD loader was found "
           "(packages ocl-icd-libopencl1, ocl-icd, opencl-icd-loader)";
}

/* ---- the loader's directories ------------------------------------------------------------------ */

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

/* The loader's directories are all. */
void add_last_dirs(struct search_dirs *dirs)
{
    (void)dirs;
}

/* Adds the loader's search, and the directories that it searches, since the loader cannot be queried
 * without loading. (ld.so.cache is not in that list; on most systems its files are in directories of the
 * list. musl does not list them.) */
void add_loader_dirs(struct search_dirs *dirs)
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
