/* candidate.c: one candidate of the search: whether it is loaded, and whether it is taken. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Notes a candidate that was not taken. Takes both strings over. `why` NULL: not there. */
void gpustub1_note(struct gpustub1_search *search, char *what, char *why)
{
    struct gpustub1_outcome *outcome = search->outcome;
    for (int i = 0; what && i < outcome->tries_len; i++) { /* each thing once */
        const struct gpustub1_try *said = &outcome->tries[i];
        if (!strcmp(said->what, what) && (why ? said->why && !strcmp(said->why, why) : !said->why)) {
            free(what);
            free(why);
            return;
        }
    }
    if (what && outcome->tries_len == outcome->tries_cap) {
        int capacity = outcome->tries_cap ? outcome->tries_cap * 2 : 16;
        struct gpustub1_try *tries = realloc(outcome->tries, (size_t)capacity * sizeof *tries);
        if (tries) {
            outcome->tries = tries;
            outcome->tries_cap = capacity;
        }
    }
    if (!what || outcome->tries_len == outcome->tries_cap) {
        free(what);
        free(why);
        return;
    }
    outcome->tries[outcome->tries_len].what = what;
    outcome->tries[outcome->tries_len++].why = why;
}

void gpustub1_discard(struct gpustub1_outcome *outcome)
{
    if (!outcome)
        return;
    for (int i = 0; i < outcome->tries_len; i++) {
        free(outcome->tries[i].what);
        free(outcome->tries[i].why);
    }
    free(outcome->tries);
    free(outcome->path);
    free(outcome->found);
    free(outcome->reason);
    free(outcome->root);
    free(outcome); /* the handle stays open: a library once loaded is never closed */
}

int gpustub1_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !strcmp(a, b) ||
           (!stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static int gpustub1_preload(void *context, const char *path)
{
    (void)context;
    (void)dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    return 0;
}

/* Loads the files that the library will ask for by a name that the loader cannot find from here
 * (NVRTC 13.0 has no run path, and opens its builtins when it first compiles). */
static void gpustub1_preload_siblings(const struct gpustub1_library *library, const char *path,
                                      int32_t major)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash)
        return;
    char *directory = gpustub1_copy(path);
    if (directory)
        directory[slash - path] = 0;
    for (const char *const *prefix = library->needs; directory && *prefix; prefix++) {
        struct gpustub1_text name = {NULL, 0, 0};
        gpustub1_append(&name, *prefix);
        if (major)
            gpustub1_append_number(&name, major);
        if (name.data)
            gpustub1_each_file(directory, name.data, gpustub1_preload, NULL);
        free(name.data);
    }
    free(directory);
}

static int32_t gpustub1_ask_version(const struct gpustub1_library *library, void *handle)
{
    int value = 0, minor = 0, failed = 1;
    int (*ask)(int *, int *);
    void *symbol = library->version_function ? dlsym(handle, library->version_function) : NULL;
    if (!symbol)
        return 0;
    memcpy(&ask, &symbol, sizeof ask); /* ISO C has no cast from object to function pointer */
    switch (library->version_form) {
    case GPUSTUB1_FORM_CUDA: /* int f(int *): the second argument is not looked at */
        failed = ask(&value, NULL);
        break;
    case GPUSTUB1_FORM_HIP: /* 10000000 * major + 100000 * minor + patch */
        failed = ask(&value, NULL);
        value = value / 10000000 * 1000 + value % 10000000 / 100000 * 10;
        break;
    case GPUSTUB1_FORM_PAIR:
        failed = ask(&value, &minor);
        value = value * 1000 + minor * 10;
        break;
    }
    return failed || value < 0 ? 0 : value;
}

static int gpustub1_accepts_major(const struct gpustub1_library *library, int32_t major)
{
    int newest_accepted = 0, any = 0;
    for (const struct gpustub1_load_name *name = library->names; name->name; name++) {
        if (name->major == major)
            return 1;
        any |= name->major != 0;
        newest_accepted |= name->major == library->newest;
    }
    return !any || !major || (major > library->newest && newest_accepted);
}

/* Whether a file is passed over, with a note, before it is loaded: once it is, a stub with the
 * driver's soname would be what all others in the process find. */
int gpustub1_passes_over_impostor(struct gpustub1_search *search, const char *file)
{
    const char *why = gpustub1_is_impostor(search->library, file);
    if (why)
        gpustub1_note(search, gpustub1_copy(file), gpustub1_copy(why));
    return why != NULL;
}

static void gpustub1_append_unaccepted(struct gpustub1_text *why, int32_t major)
{
    gpustub1_append(why, "major ");
    gpustub1_append_number(why, major);
    gpustub1_append(why, " is not among those accepted");
}

static void gpustub1_append_other_toolkit(struct gpustub1_text *why,
                                          const struct gpustub1_search *search, int32_t toolkit)
{
    if (search->library->own_majors) {
        gpustub1_append(why, "built for major ");
        gpustub1_append_number(why, toolkit);
        gpustub1_append(why, ", and ");
    }
    gpustub1_append(why, search->toolkit->by);
    gpustub1_append(why, " settled for major ");
    gpustub1_append_number(why, search->toolkit->major);
}

/* Why a loaded library cannot be used, as new text; NULL if it can. `version`: the newest that it
 * may be; 0: unknown. */
static char *gpustub1_objection(struct gpustub1_search *search, void *handle, int32_t major,
                                int32_t toolkit, int32_t version)
{
    const struct gpustub1_library *library = search->library;
    struct gpustub1_text why = {NULL, 0, 0};
    if (!gpustub1_accepts_major(library, major)) {
        gpustub1_append_unaccepted(&why, major);
    } else if (search->toolkit && toolkit && toolkit != search->toolkit->major &&
               !search->outcome->forced) {
        gpustub1_append_other_toolkit(&why, search, toolkit);
    } else if (library->min_version && version && version < library->min_version) {
        gpustub1_append(&why, "version ");
        gpustub1_append_version(&why, version);
        gpustub1_append(&why, " is older than the required ");
        gpustub1_append_version(&why, library->min_version);
    } else {
        for (const char *const *name = library->require; *name; name++)
            if (!dlsym(handle, *name)) {
                gpustub1_append(&why, "lacks the required ");
                gpustub1_append(&why, *name);
                break;
            }
    }
    return why.data;
}

/* Takes a loaded library if nothing speaks against it.
 * `file`: what was loaded, if we chose it by its path. */
int gpustub1_take(struct gpustub1_search *search, void *handle, const char *file,
                  const char *root, const char *found)
{
    struct gpustub1_outcome *outcome = search->outcome;
    char *path;
    int32_t major;
    int32_t toolkit = 0, version = 0;
    const char *impostor = NULL;
    char *objection;
    if (!gpustub1_inspect(handle, search->library, &path, &major)) {
        objection = gpustub1_copy("the stubs themselves, not the library");
    } else if (!file && !outcome->forced && /* the loader's choice */
               (impostor = gpustub1_is_impostor(search->library, path))) {
        objection = gpustub1_copy(impostor);
    } else {
        version = gpustub1_ask_version(search->library, handle);
        int is_told = search->library->told_by->prefix != NULL, own = search->library->own_majors;
        toolkit = is_told && path ? gpustub1_told_major(search->library, path) : 0;
        if (is_told && !own) { /* then neither soname nor load name tells it */
            major = toolkit;
        } else {
            if (!major)
                major = version / 1000;
            if (!major && search->name && !outcome->forced)
                major = search->name->major;
        }
        if (!own)
            toolkit = major;
        objection = gpustub1_objection(search, handle, major, toolkit,
                                       version || !major ? version : major * 1000 + 990);
    }
    if (objection) { /* `path` is another one, where the file was in the process already */
        gpustub1_note(search, gpustub1_copy(file ? file : path ? path : found), objection);
        free(path);
        return 0;
    }
    if (!path && file)
        path = gpustub1_copy(file);
    gpustub1_preload_siblings(search->library, path, major);
    outcome->handle = handle;
    outcome->path = path;
    outcome->found = gpustub1_copy(found);
    outcome->root = root ? gpustub1_copy(root) : gpustub1_root_of(search->library, path);
    outcome->exact = version != 0;
    outcome->major = major;
    outcome->toolkit = toolkit;
    outcome->version = version ? version : major * 1000;
    return 1;
}

/* The loader's message without the name that it starts with. */
static char *gpustub1_loader_message(const char *name)
{
    const char *message = dlerror();
    const char *named = message ? strstr(message, name) : NULL;
    if (!message)
        return gpustub1_copy("cannot be loaded");
    /* Only this very file is missing: say so shortly (glibc "NAME: cannot open shared object
     * file: No such file or directory", musl "Error loading shared library NAME: No such …", in
     * the user's language). */
    if (named && named[strlen(name)] == ':' && strstr(message, strerror(ENOENT)) &&
        !strstr(message, "needed by"))
        return NULL;
    return gpustub1_copy(message);
}

/* Whether a file that shares its name with another toolkit's is that one. It has its own turn, if
 * there is one of its major. */
static int gpustub1_is_of_other_major(struct gpustub1_search *search, const char *file)
{
    const struct gpustub1_library *library = search->library;
    const struct gpustub1_load_name *name = library->names;
    int32_t major = search->name ? search->name->major : 0, told;
    struct gpustub1_text why = {NULL, 0, 0};
    if (search->outcome->forced || !library->told_by->prefix || (!major && !library->own_majors) ||
        !(told = gpustub1_told_major(library, file)))
        return 0;
    if (library->own_majors) {
        if (!search->toolkit) { /* what the driver does not support comes last */
            int waits = !search->last && search->driver && told > search->driver / 1000;
            search->newer |= waits;
            return waits;
        }
        if (told == search->toolkit->major)
            return 0;
        gpustub1_append_other_toolkit(&why, search, told);
    } else {
        if (told == major)
            return 0;
        while (name->name && name->major != told)
            name++;
        if (name->name)
            return 1;
        gpustub1_append_unaccepted(&why, told);
    }
    gpustub1_note(search, gpustub1_copy(file), why.data);
    return 1;
}

/* Tries a file (absolute) or a name for the loader to search. */
int gpustub1_open(struct gpustub1_search *search, const char *file, const char *root,
                  const char *found)
{
    void *handle;
    if (file[0] == '/' && (gpustub1_passes_over_impostor(search, file) ||
                           gpustub1_is_of_other_major(search, file)))
        return 0;
    handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (handle)
        return gpustub1_take(search, handle, file[0] == '/' ? file : NULL, root, found);
    char *why = gpustub1_loader_message(file);
    struct stat status;
    if (!why && file[0] == '/' && !stat(file, &status)) /* glibc's words for that are the same */
        why = gpustub1_copy("a library for another processor");
    gpustub1_note(search,
                  file[0] == '/' ? gpustub1_copy(file)
                                 : gpustub1_join(file, ", by the loader's search", ""),
                  why);
    return 0;
}
