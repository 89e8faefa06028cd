/* candidate.c: one candidate of the search: whether it is loaded, and whether it is taken. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Notes a candidate that was not taken. Takes both strings over. `why` NULL: not there. */
void note(struct search *search, char *what, char *why)
{
    struct result *result = search->result;
    for (int i = 0; what && i < result->tries_len; i++) { /* each thing once */
        const struct candidate *said = &result->tries[i];
        if (!strcmp(said->what, what) &&
            (why ? said->why && !strcmp(said->why, why) : !said->why)) {
            free(what);
            free(why);
            return;
        }
    }
    if (what && result->tries_len == result->tries_cap) {
        int capacity = result->tries_cap ? result->tries_cap * 2 : 16;
        struct candidate *tries = realloc(result->tries, (size_t)capacity * sizeof *tries);
        if (tries) {
            result->tries = tries;
            result->tries_cap = capacity;
        }
    }
    if (!what || result->tries_len == result->tries_cap) {
        free(what);
        free(why);
        return;
    }
    result->tries[result->tries_len].what = what;
    result->tries[result->tries_len++].why = why;
}

void discard_result(struct result *result)
{
    if (!result)
        return;
    for (int i = 0; i < result->tries_len; i++) {
        free(result->tries[i].what);
        free(result->tries[i].why);
    }
    free(result->tries);
    free(result->path);
    free(result->found_by);
    free(result->reason);
    free(result->root);
    free(result); /* the handle stays open: a library once loaded is never closed */
}

int same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !strcmp(a, b) ||
           (!stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static int preload_file(void *context, const char *path)
{
    (void)context;
    (void)dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    return 0;
}

/* Loads the files that the library will ask for by a name that the loader cannot find from here
 * (NVRTC 13.0 has no run path, and opens its builtins when it first compiles). */
static void preload_siblings(const struct library *library, const char *path, int32_t major)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash)
        return;
    char *directory = copy_string(path);
    if (directory)
        directory[slash - path] = 0;
    for (const char *const *prefix = library->preload; directory && *prefix; prefix++) {
        struct text name = {NULL, 0, 0};
        append(&name, *prefix);
        if (major)
            append_number(&name, major);
        if (name.data)
            each_file(directory, name.data, preload_file, NULL);
        free(name.data);
    }
    free(directory);
}

static int32_t query_version(const struct library *library, void *handle)
{
    int value = 0, minor = 0, failed = 1;
    int (*ask)(int *, int *);
    void *symbol = library->version_function ? dlsym(handle, library->version_function) : NULL;
    if (!symbol)
        return 0;
    memcpy(&ask, &symbol, sizeof ask); /* ISO C has no cast from object to function pointer */
    switch (library->version_encoding) {
    case ENCODING_CUDA: /* int f(int *): the second argument is not looked at */
        failed = ask(&value, NULL);
        break;
    case ENCODING_HIP: /* 10000000 * major + 100000 * minor + patch */
        failed = ask(&value, NULL);
        value = value / 10000000 * 1000 + value % 10000000 / 100000 * 10;
        break;
    case ENCODING_PAIR:
        failed = ask(&value, &minor);
        value = value * 1000 + minor * 10;
        break;
    }
    return failed || value < 0 ? 0 : value;
}

static int accepts_major(const struct library *library, int32_t major)
{
    int newest_accepted = 0, any = 0;
    for (const struct load_name *name = library->load_names; name->name; name++) {
        if (name->major == major)
            return 1;
        any |= name->major != 0;
        newest_accepted |= name->major == library->newest_major;
    }
    return !any || !major || (major > library->newest_major && newest_accepted);
}

/* Whether a file is passed over, with a note, before it is loaded: once it is, a stub with the
 * driver's soname would be what all others in the process find. */
int passes_over_impostor(struct search *search, const char *file)
{
    const char *why = impostor_reason(search->library, file);
    if (why)
        note(search, copy_string(file), copy_string(why));
    return why != NULL;
}

static void append_unaccepted(struct text *why, int32_t major)
{
    append(why, "major ");
    append_number(why, major);
    append(why, " is not among those accepted");
}

static void append_other_toolkit(struct text *why, const struct search *search, int32_t toolkit)
{
    if (search->library->independent_major) {
        append(why, "built for major ");
        append_number(why, toolkit);
        append(why, ", and ");
    }
    append(why, search->toolkit->claimed_by);
    append(why, " settled for major ");
    append_number(why, search->toolkit->major);
}

/* Why a loaded library cannot be used, as new text; NULL if it can. `version`: the newest that it
 * may be; 0: unknown. */
static char *find_objection(struct search *search, void *handle, int32_t major, int32_t toolkit,
                       int32_t version)
{
    const struct library *library = search->library;
    struct text why = {NULL, 0, 0};
    if (!accepts_major(library, major)) {
        append_unaccepted(&why, major);
    } else if (search->toolkit && toolkit && toolkit != search->toolkit->major &&
               !search->result->forced) {
        append_other_toolkit(&why, search, toolkit);
    } else if (library->min_version && version && version < library->min_version) {
        append(&why, "version ");
        append_version(&why, version);
        append(&why, " is older than the required ");
        append_version(&why, library->min_version);
    } else {
        for (const char *const *name = library->required_functions; *name; name++)
            if (!dlsym(handle, *name)) {
                append(&why, "lacks the required ");
                append(&why, *name);
                break;
            }
    }
    return why.data;
}

/* Takes a loaded library if nothing speaks against it.
 * `file`: what was loaded, if we chose it by its path. */
int accept_library(struct search *search, void *handle, const char *file, const char *root,
                   const char *found)
{
    struct result *result = search->result;
    char *path;
    int32_t major;
    int32_t toolkit = 0, version = 0;
    const char *impostor = NULL;
    char *objection;
    if (!inspect_handle(handle, search->library, &path, &major)) {
        objection = copy_string("the stubs themselves, not the library");
    } else if (!file && !result->forced && /* the loader's choice */
               (impostor = impostor_reason(search->library, path))) {
        objection = copy_string(impostor);
    } else {
        version = query_version(search->library, handle);
        int is_told = search->library->version_probes->prefix != NULL,
            own = search->library->independent_major;
        toolkit = is_told && path ? toolkit_major(search->library, path) : 0;
        if (is_told && !own) { /* then neither soname nor load name tells it */
            major = toolkit;
        } else {
            if (!major)
                major = version / 1000;
            if (!major && search->name && !result->forced)
                major = search->name->major;
        }
        if (!own)
            toolkit = major;
        objection = find_objection(search, handle, major, toolkit,
                              version || !major ? version : major * 1000 + 990);
    }
    if (objection) { /* `path` is another one, where the file was in the process already */
        note(search, copy_string(file ? file : path ? path : found), objection);
        free(path);
        return 0;
    }
    if (!path && file)
        path = copy_string(file);
    preload_siblings(search->library, path, major);
    result->handle = handle;
    result->path = path;
    result->found_by = copy_string(found);
    result->root = root ? copy_string(root) : toolkit_root_of(search->library, path);
    result->exact = version != 0;
    result->major = major;
    result->toolkit = toolkit;
    result->version = version ? version : major * 1000;
    return 1;
}

/* The loader's message without the name that it starts with. */
static char *loader_message(const char *name)
{
    const char *message = dlerror();
    const char *named = message ? strstr(message, name) : NULL;
    if (!message)
        return copy_string("cannot be loaded");
    /* Only this very file is missing: say so shortly (glibc "NAME: cannot open shared object
     * file: No such file or directory", musl "Error loading shared library NAME: No such …", in
     * the user's language). */
    if (named && named[strlen(name)] == ':' && strstr(message, strerror(ENOENT)) &&
        !strstr(message, "needed by"))
        return NULL;
    return copy_string(message);
}

/* Whether a file that shares its name with another toolkit's is that one. It has its own turn, if
 * there is one of its major. */
static int is_of_other_major(struct search *search, const char *file)
{
    const struct library *library = search->library;
    const struct load_name *name = library->load_names;
    int32_t major = search->name ? search->name->major : 0, told;
    struct text why = {NULL, 0, 0};
    if (search->result->forced || !library->version_probes->prefix ||
        (!major && !library->independent_major) || !(told = toolkit_major(library, file)))
        return 0;
    if (library->independent_major) {
        if (!search->toolkit) { /* what the driver does not support comes last */
            int waits = !search->last && search->driver && told > search->driver / 1000;
            search->newer |= waits;
            return waits;
        }
        if (told == search->toolkit->major)
            return 0;
        append_other_toolkit(&why, search, told);
    } else {
        if (told == major)
            return 0;
        while (name->name && name->major != told)
            name++;
        if (name->name)
            return 1;
        append_unaccepted(&why, told);
    }
    note(search, copy_string(file), why.data);
    return 1;
}

/* Tries a file (absolute) or a name for the loader to search. */
int open_candidate(struct search *search, const char *file, const char *root, const char *found)
{
    void *handle;
    if (file[0] == '/' && (passes_over_impostor(search, file) || is_of_other_major(search, file)))
        return 0;
    handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (handle)
        return accept_library(search, handle, file[0] == '/' ? file : NULL, root, found);
    char *why = loader_message(file);
    struct stat status;
    if (!why && file[0] == '/' && !stat(file, &status)) /* glibc's words for that are the same */
        why = copy_string("a library for another processor");
    note(search, file[0] == '/' ? copy_string(file) : join(file, ", by the loader's search", ""),
         why);
    return 0;
}
