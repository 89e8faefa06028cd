/* python.c: Python environments, whose wheels may contain the library. Below their directory packages are in
 * `Lib/site-packages`, programs in `Scripts`, and those of conda, `python.exe` among them, in the directory itself. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static int is_conda(const char *prefix)
{
    return exists_below(prefix, "conda-meta");
}

/* Returns the environment that contains a program, or NULL: `pyvenv.cfg` marks a virtual one. */
static char *environment_of(const char *program)
{
    for (int components = 1; program && components <= 2; components++) {
        char *prefix = parent_of(program, components);
        if (prefix && (is_conda(prefix) || exists_below(prefix, "pyvenv.cfg")))
            return prefix;
        free(prefix);
    }
    return NULL;
}

/* Adds the wheels and conda's libraries of an environment. */
static void add_prefix(struct search_dirs *dirs, const struct library *library, const char *prefix,
                       const char *found_by)
{
    if (!prefix)
        return;
    char *site = join(prefix, "/Lib/site-packages", "");
    if (site)
        add_subdirs(dirs, site, library->wheel_dirs, found_by);
    free(site);
    if (is_conda(prefix))
        add_search_dir(dirs, prefix, "Library/bin", found_by);
}

/* Adds wheels in the site-packages directory that contains the module, in the environments of module and program,
 * and below VIRTUAL_ENV; then conda's libraries. */
void add_python_dirs(struct search_dirs *dirs, const struct library *library, const char *own)
{
    const char *end = own ? component_end(own, "site-packages") : NULL;
    char *site = end ? copy_string(own) : NULL;
    if (site) {
        site[end - own] = 0;
        add_subdirs(dirs, site, library->wheel_dirs, "site-packages around the program");
    }
    char *around = site ? parent_of(site, 2) : environment_of(own);
    char *program = module_path(NULL);
    char *started = environment_of(program);
    add_prefix(dirs, library, around, "environment of the program");
    add_prefix(dirs, library, started, "environment of the started program");
    add_prefix(dirs, library, read_path("VIRTUAL_ENV"), "VIRTUAL_ENV");
    add_prefix(dirs, library, read_path("CONDA_PREFIX"), "CONDA_PREFIX");
    free(started);
    free(program);
    free(around);
    free(site);
}
