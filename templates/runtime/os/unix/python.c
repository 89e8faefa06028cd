/* python.c: Python environments, whose wheels may contain the library. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* Adds the wheels of a Python environment, those of its newest Python first. */
static void add_environment(struct search_dirs *dirs, const struct library *library,
                            const char *prefix, const char *found_by)
{
    char *lib = join(prefix, "/lib", "");
    char *pythons[MAX_FILES];
    size_t count = lib ? list_files(lib, "python3", pythons, &dirs->is_short) : 0;
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

/* Lists the paths by which the program was started, as they were written: the one that the kernel got, and
 * argv[0], which names the interpreter of a script. Returns their number. */
static size_t started_names(const char *names[2])
{
    size_t count = 0;
#ifdef __linux__
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (path)
        names[count++] = path;
    if (program_invocation_name)
        names[count++] = program_invocation_name;
#else
    (void)names;
#endif
    return count;
}

/* Returns the prefix of the environment whose Python was started, or NULL. A virtual environment's `bin/python`
 * is a link to another Python, so the path counts as it was written. */
static char *started_environment(void)
{
    const char *names[2];
    size_t count = started_names(names);
    for (size_t i = 0; i < count; i++) {
        const char *name = names[i], *directory = is_absolute(name) ? "" : read_env("PWD");
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
void add_python_dirs(struct search_dirs *dirs, const struct library *library,
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
