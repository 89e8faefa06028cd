/* find.c: which file a library is taken from. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct gpustub1_search {
    int index;
    const struct gpustub1_library *library;
    struct gpustub1_outcome *outcome;
    const struct gpustub1_toolkit *toolkit; /* what the library's family settled for, or NULL */
    int32_t driver;                         /* the driver's version; 0: no limit */
    const struct gpustub1_load_name *name;  /* the name being looked for */
    int settled;                            /* from now on only note what is passed over */
};

/* Notes a candidate that was not taken. Takes both strings over. `why` NULL: not there. */
static void gpustub1_note(struct gpustub1_search *search, char *what, char *why)
{
    struct gpustub1_outcome *outcome = search->outcome;
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

/* ---- one candidate -------------------------------------------------------------------------- */

static int gpustub1_same_file(const char *a, const char *b)
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

static const char gpustub1_a_link_stub[] = "a toolkit's link-time stub, not the library";

/* Whether a file is passed over, with a note, because it only serves to be linked against: once
 * loaded, a stub with the driver's soname would be what all others in the process find. */
static int gpustub1_passes_over_link_stub(struct gpustub1_search *search, const char *file)
{
    int result = gpustub1_is_link_stub(file);
    if (result)
        gpustub1_note(search, gpustub1_copy(file), gpustub1_copy(gpustub1_a_link_stub));
    return result;
}

/* Why a loaded library cannot be used, as new text; NULL if it can. `version`: the newest that it
 * may be; 0: unknown. */
static char *gpustub1_objection(struct gpustub1_search *search, void *handle, int32_t major,
                                int32_t version)
{
    const struct gpustub1_library *library = search->library;
    struct gpustub1_text why = {NULL, 0, 0};
    if (!gpustub1_accepts_major(library, major)) {
        gpustub1_append(&why, "major ");
        gpustub1_append_number(&why, major);
        gpustub1_append(&why, " is not among those accepted");
    } else if (search->toolkit && major && major != search->toolkit->major &&
               !search->outcome->forced) {
        gpustub1_append(&why, search->toolkit->by);
        gpustub1_append(&why, " settled for major ");
        gpustub1_append_number(&why, search->toolkit->major);
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

/* Takes a loaded library if nothing speaks against it. `file`: what was loaded, if we chose it by
 * its path. */
static int gpustub1_take(struct gpustub1_search *search, void *handle, const char *file,
                         const char *root, const char *found)
{
    struct gpustub1_outcome *outcome = search->outcome;
    char *path;
    int32_t major;
    int32_t version = 0;
    char *objection;
    if (!gpustub1_inspect(handle, search->library, &path, &major)) {
        objection = gpustub1_copy("the stubs themselves, not the library");
    } else if (!file && !outcome->forced && gpustub1_is_link_stub(path)) { /* the loader's choice */
        objection = gpustub1_copy(gpustub1_a_link_stub);
    } else {
        version = gpustub1_ask_version(search->library, handle);
        if (!major)
            major = version / 1000;
        if (!major && search->name && !outcome->forced)
            major = search->name->major;
        objection = gpustub1_objection(search, handle, major,
                                       version || !major ? version : major * 1000 + 990);
    }
    if (!path && (file || objection))
        path = gpustub1_copy(file ? file : found);
    if (objection) {
        gpustub1_note(search, path, objection);
        return 0;
    }
    gpustub1_preload_siblings(search->library, path, major);
    outcome->handle = handle;
    outcome->path = path;
    outcome->found = gpustub1_copy(found);
    outcome->root = root ? gpustub1_copy(root) : gpustub1_root_of(search->library, path);
    outcome->exact = version != 0;
    outcome->major = major;
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

/* Tries a file (absolute) or a name for the loader to search. */
static int gpustub1_open(struct gpustub1_search *search, const char *file, const char *root,
                         const char *found)
{
    void *handle;
    if (file[0] == '/' && gpustub1_passes_over_link_stub(search, file))
        return 0;
    handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (handle)
        return gpustub1_take(search, handle, file[0] == '/' ? file : NULL, root, found);
    char *why = gpustub1_loader_message(file);
    gpustub1_note(search,
                  file[0] == '/' ? gpustub1_copy(file)
                                 : gpustub1_join(file, ", by the loader's search", ""),
                  why);
    return 0;
}

/* ---- all candidates ------------------------------------------------------------------------- */

/* Why this name is not looked for now, as new text; NULL if it is. */
static char *gpustub1_too_late(struct gpustub1_search *search)
{
    struct gpustub1_text why = {NULL, 0, 0};
    int32_t major = search->name->major;
    if (search->toolkit && major && major != search->toolkit->major) {
        gpustub1_append(&why, search->toolkit->by);
        gpustub1_append(&why, " settled for major ");
        gpustub1_append_number(&why, search->toolkit->major);
    } else if (search->driver && major > search->driver / 1000) {
        gpustub1_append(&why, "newer than the driver supports (");
        gpustub1_append_version(&why, search->driver);
        gpustub1_append(&why, ")");
    } else {
        gpustub1_append(&why, search->outcome->path ? search->outcome->path : "another");
        gpustub1_append(&why, " comes first");
    }
    return why.data;
}

/* Notes a file that is there but was passed over. */
static void gpustub1_pass_over(struct gpustub1_search *search, const char *directory)
{
    struct stat status;
    char *file = gpustub1_join(directory, "/", search->name->name);
    if (!file || stat(file, &status) ||
        (search->outcome->path && gpustub1_same_file(file, search->outcome->path)))
        free(file);
    else
        gpustub1_note(search, file, gpustub1_too_late(search));
}

/* The loader's own search cannot be asked without loading; its variable can be read. */
static void gpustub1_pass_over_loader(struct gpustub1_search *search)
{
    const char *entry = gpustub1_env("LD_LIBRARY_PATH");
    while (entry && *entry) {
        size_t length = strcspn(entry, ":;");
        char *directory = entry[0] == '/' ? gpustub1_copy(entry) : NULL;
        if (directory) {
            directory[length] = 0;
            gpustub1_pass_over(search, directory);
            free(directory);
        }
        entry += length + (entry[length] != 0);
    }
}

static int gpustub1_try_place(void *context, const char *directory, const char *root,
                              const char *found)
{
    struct gpustub1_search *search = context;
    if (search->settled) {
        if (directory)
            gpustub1_pass_over(search, directory);
        else
            gpustub1_pass_over_loader(search);
        return 0;
    }
    if (!directory) {
        search->settled = gpustub1_open(search, search->name->name, NULL, found);
        return 0;
    }
    char *file = gpustub1_join(directory, "/", search->name->name);
    struct stat status;
    if (!file)
        return 0;
    if (stat(file, &status))
        gpustub1_note(search, gpustub1_copy(file), NULL);
    else
        search->settled = gpustub1_open(search, file, root, found);
    free(file);
    return 0;
}

/* When a name has its turn. Unversioned names come last: they may be any major. */
enum { GPUSTUB1_FIRST, GPUSTUB1_NEWER, GPUSTUB1_UNVERSIONED, GPUSTUB1_TURNS };

static int gpustub1_turn(const struct gpustub1_search *search)
{
    int32_t major = search->name->major;
    return !major                                             ? GPUSTUB1_UNVERSIONED
           : search->driver && major > search->driver / 1000 ? GPUSTUB1_NEWER
                                                              : GPUSTUB1_FIRST;
}

/* Every name at every place; names of a major that the family has not settled for are only
 * noted. */
static void gpustub1_try_names(struct gpustub1_search *search)
{
    const struct gpustub1_toolkit *toolkit = search->toolkit;
    for (int turn = 0; turn < GPUSTUB1_TURNS; turn++)
        for (search->name = search->library->names; search->name->name; search->name++) {
            int32_t major = search->name->major;
            int other = toolkit && major && major != toolkit->major;
            if (gpustub1_turn(search) != turn)
                continue;
            int settled = search->settled;
            search->settled |= other;
            gpustub1_places(search->library, toolkit ? toolkit->root : NULL, gpustub1_try_place,
                            search);
            if (other)
                search->settled = settled;
        }
    search->name = NULL;
}

/* ---- what comes before the search ----------------------------------------------------------- */

/* The first candidate that was there and could not be used, or NULL. */
static const struct gpustub1_try *gpustub1_first_problem(const struct gpustub1_outcome *outcome)
{
    for (int i = 0; i < outcome->tries_len; i++)
        if (outcome->tries[i].why)
            return &outcome->tries[i];
    return NULL;
}

/* The override variable: a file, a directory, or `off`. It has the last word, also in failing. */
static int gpustub1_try_override(struct gpustub1_search *search)
{
    const struct gpustub1_library *library = search->library;
    const char *value = gpustub1_env(library->variable);
    struct gpustub1_outcome *outcome = search->outcome;
    struct stat status;
    if (!value)
        return 0;
    outcome->forced = 1;
    if (!strcmp(value, "off")) {
        outcome->reason = gpustub1_join("switched off by ", library->variable, "=off");
    } else if (value[0] != '/') {
        outcome->reason = gpustub1_join(library->variable, " is not an absolute path: ", value);
    } else if (!stat(value, &status) && S_ISDIR(status.st_mode)) {
        for (search->name = library->names; search->name->name && !search->settled; search->name++)
            gpustub1_try_place(search, value, NULL, library->variable);
        search->name = NULL;
        if (!search->settled && !gpustub1_first_problem(outcome))
            outcome->reason = gpustub1_join(library->variable, " names a directory without it: ", value);
    } else if (!(search->settled = gpustub1_open(search, value, NULL, library->variable))) {
        const char *why = outcome->tries_len ? outcome->tries[outcome->tries_len - 1].why : NULL;
        char *text = gpustub1_join(library->variable, ": ", value);
        outcome->reason = gpustub1_join(text ? text : value, ": ", why ? why : "no such file");
        free(text);
    }
    return 1;
}

/* What had been loaded before we searched, the preferred major first. */
static int gpustub1_try_loaded(struct gpustub1_search *search)
{
    const struct gpustub1_library *library = search->library;
    struct gpustub1_state *state = gpustub1_state(search->index);
    char **loaded = GPUSTUB1_LOAD(&state->loaded);
    if (!loaded) {
        char **mine = gpustub1_loaded_names(library);
        if (!mine)
            return 0;
        /* The first answer counts for all threads: a later one would see what ours loaded. */
        if (!__atomic_compare_exchange_n(&state->loaded, &loaded, mine, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            for (int i = 0; library->names[i].name; i++)
                free(mine[i]);
            free(mine);
        } else {
            loaded = mine;
        }
    }
    for (int i = 0; library->names[i].name && !search->settled; i++) {
        void *handle = loaded[i] ? dlopen(loaded[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
        search->name = &library->names[i];
        if (handle && !gpustub1_passes_over_link_stub(search, loaded[i]))
            search->settled = gpustub1_take(search, handle, loaded[i], NULL, "already loaded");
    }
    search->name = NULL;
    return search->settled;
}

static int gpustub1_yes(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 1;
}

/* The best single line for what went wrong: a library that was there and could not be used says
 * more than all the places where nothing was. */
static char *gpustub1_summary(const struct gpustub1_search *search)
{
    const struct gpustub1_try *problem = gpustub1_first_problem(search->outcome);
    struct gpustub1_text text = {NULL, 0, 0};
    if (problem)
        return gpustub1_join(problem->what, ": ", problem->why);
    for (const struct gpustub1_load_name *name = search->library->names; name->name; name++) {
        gpustub1_append(&text, text.length ? ", " : "");
        gpustub1_append(&text, name->name);
    }
    gpustub1_append(&text, " not found");
    if (search->library->role == GPUSTUB1_LOADER &&
        gpustub1_each_file("/etc/OpenCL/vendors", "", gpustub1_yes, NULL))
        gpustub1_append(&text, "; drivers are listed in /etc/OpenCL/vendors, but there is no loader "
                               "for them (packages ocl-icd-libopencl1, ocl-icd, opencl-icd-loader)");
    return text.data;
}

static struct gpustub1_outcome *gpustub1_search(int index, const struct gpustub1_toolkit *toolkit)
{
    const struct gpustub1_library *library = gpustub1_library(index);
    struct gpustub1_state *state = gpustub1_state(index);
    struct gpustub1_outcome *outcome = calloc(1, sizeof *outcome);
    struct gpustub1_search search = {index, library, outcome, toolkit, 0, NULL, 0};
    if (!outcome)
        return NULL;
    void *given = GPUSTUB1_LOAD(&state->given);
    if (given) {
        outcome->forced = 1;
        search.settled = gpustub1_take(&search, given, NULL, NULL, "handle set by the program");
    } else if (!gpustub1_try_override(&search) && !gpustub1_try_loaded(&search)) {
        if (library->driver >= 0) {
            const struct gpustub1_outcome *driver = gpustub1_settle(library->driver);
            search.driver = driver && driver->handle ? driver->version : 0;
        }
        gpustub1_try_names(&search);
    } else if (search.settled && !outcome->forced) {
        gpustub1_try_names(&search); /* only to note what is passed over */
    }
    if (!outcome->handle && !outcome->reason)
        outcome->reason = gpustub1_summary(&search);
    if (!outcome->handle && !outcome->reason) { /* no memory */
        gpustub1_discard(outcome);
        return NULL;
    }
    return outcome;
}

static int gpustub1_same_toolkit(const struct gpustub1_toolkit *toolkit,
                                 const struct gpustub1_outcome *outcome)
{
    const char *a = toolkit->root, *b = outcome->root;
    return toolkit->major == outcome->major && (!a || !b ? a == b : !strcmp(a, b));
}

/* The outcome of a search, not yet published; NULL if memory is short. */
struct gpustub1_outcome *gpustub1_find(int index)
{
    const struct gpustub1_library *library = gpustub1_library(index);
    int shares = library->role == GPUSTUB1_TOOLKIT && library->family;
    for (;;) {
        const struct gpustub1_toolkit *toolkit = shares ? gpustub1_toolkit(library->family) : NULL;
        struct gpustub1_outcome *outcome = gpustub1_search(index, toolkit);
        if (!outcome || !outcome->handle || !outcome->major || !shares)
            return outcome;
        const struct gpustub1_toolkit *agreed = gpustub1_claim(library->family, outcome, library->id);
        if (!agreed || agreed == toolkit || gpustub1_same_toolkit(agreed, outcome))
            return outcome;
        gpustub1_discard(outcome); /* another library of the family was quicker: follow it */
    }
}
