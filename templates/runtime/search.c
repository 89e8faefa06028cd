/* search.c: which file a library is taken from. */
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- all candidates ------------------------------------------------------------------------- */

/* The toolkit major that the current name stands for; 0: none, or the name does not tell. */
static int32_t gpustub1_named_toolkit(const struct gpustub1_search *search)
{
    return search->name && !search->library->own_majors ? search->name->major : 0;
}

/* Why this name is not looked for now, as new text; NULL if it is. */
static char *gpustub1_too_late(struct gpustub1_search *search)
{
    struct gpustub1_text why = {NULL, 0, 0};
    int32_t major = gpustub1_named_toolkit(search);
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

static int gpustub1_is_noted(const struct gpustub1_outcome *outcome, const char *file)
{
    for (int i = 0; i < outcome->tries_len; i++)
        if (!strcmp(outcome->tries[i].what, file))
            return 1;
    return 0;
}

/* Notes a file that is there but was passed over: by the loader, or because it comes too late. */
static void gpustub1_pass_over(struct gpustub1_search *search, const char *directory, int by_loader)
{
    struct stat status;
    char *file = gpustub1_join(directory, "/", search->name->name);
    if (!file || stat(file, &status) || gpustub1_is_noted(search->outcome, file) ||
        (search->outcome->path && gpustub1_same_file(file, search->outcome->path)))
        free(file);
    else if (by_loader)
        gpustub1_note(search, file, gpustub1_copy("not what the loader's search came to"));
    else
        gpustub1_note(search, file, gpustub1_too_late(search));
}

static void gpustub1_try_file(struct gpustub1_search *search, const char *directory,
                              const char *root, const char *found)
{
    char *file = gpustub1_join(directory, "/", search->name->name);
    struct stat status;
    if (file && stat(file, &status))
        gpustub1_note(search, gpustub1_copy(file), NULL);
    else if (file)
        search->settled = gpustub1_open(search, file, root, found);
    free(file);
}

enum gpustub1_visit { GPUSTUB1_LATE, GPUSTUB1_BY_LOADER, GPUSTUB1_TRY };

/* Visits where the loader looks, since its search cannot be asked without loading. (ld.so.cache is not
 * among that; what it names lies in directories that most systems have in the list too. musl cannot
 * tell.) */
static void gpustub1_at_loader(struct gpustub1_search *search, enum gpustub1_visit visit)
{
#if defined(__GLIBC__) || defined(__FreeBSD__)
    Dl_serinfo size, *places = NULL;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (program && !dlinfo(program, RTLD_DI_SERINFOSIZE, &size) &&
        (places = calloc(1, size.dls_size))) {
        places->dls_size = size.dls_size;
        places->dls_cnt = size.dls_cnt;
        if (dlinfo(program, RTLD_DI_SERINFO, places))
            places->dls_cnt = 0;
    }
    for (unsigned i = 0; places && i < places->dls_cnt; i++) {
        const char *directory = places->dls_serpath[i].dls_name;
        if (directory[0] != '/')
            continue;
        if (visit == GPUSTUB1_TRY && !search->settled)
            gpustub1_try_file(search, directory, NULL, "the loader's search");
        else
            gpustub1_pass_over(search, directory, visit != GPUSTUB1_LATE);
    }
    free(places);
#else
    (void)search, (void)visit;
#endif
}

static int gpustub1_try_place(void *context, const char *directory, const char *root,
                              const char *found)
{
    struct gpustub1_search *search = context;
    if (directory && search->settled) {
        gpustub1_pass_over(search, directory, 0);
    } else if (directory) {
        gpustub1_try_file(search, directory, root, found);
    } else if (search->settled) {
        gpustub1_at_loader(search, GPUSTUB1_LATE);
    } else {
        /* A library stays loaded even if it is not taken: unloading what started threads or hooks is
         * not safe. The loader then answers its soname with it, and we look in its stead. */
        const char *name = search->name->name;
        int was_there = dlopen(name, RTLD_LAZY | RTLD_NOLOAD) != NULL;
        search->settled = gpustub1_open(search, name, NULL, found);
        gpustub1_at_loader(search, was_there && !search->settled ? GPUSTUB1_TRY : GPUSTUB1_BY_LOADER);
    }
    return 0;
}

/* When a name has its turn. Unversioned names come last: they may be any major. */
enum { GPUSTUB1_FIRST, GPUSTUB1_NEWER, GPUSTUB1_UNVERSIONED, GPUSTUB1_TURNS };

static int gpustub1_turn(const struct gpustub1_search *search)
{
    int32_t major = gpustub1_named_toolkit(search);
    return !search->name->major                               ? GPUSTUB1_UNVERSIONED
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
            int32_t major = gpustub1_named_toolkit(search);
            int other = toolkit && major && major != toolkit->major;
            search->last = turn >= GPUSTUB1_NEWER;
            if (gpustub1_turn(search) != turn && !(turn == GPUSTUB1_NEWER && search->newer))
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
        for (search->name = library->names; search->name->name; search->name++)
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

/* Each loaded image of this name; NULL: of a newer major. */
static void gpustub1_try_images(struct gpustub1_search *search, const struct gpustub1_loaded *image,
                                const struct gpustub1_load_name *name)
{
    search->name = name;
    for (; image->path; image++) {
        void *handle =
            image->name == name ? dlopen(image->path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (handle && search->settled)
            gpustub1_note(search, gpustub1_copy(image->path), gpustub1_too_late(search));
        else if (handle && !gpustub1_passes_over_impostor(search, image->path))
            search->settled = gpustub1_take(search, handle, image->path, NULL, "already loaded");
    }
}

/* What had been loaded before we searched, the preferred major first. */
static int gpustub1_try_loaded(struct gpustub1_search *search)
{
    struct gpustub1_state *state = gpustub1_state(search->index);
    struct gpustub1_loaded *loaded = GPUSTUB1_LOAD(&state->loaded);
    if (!loaded) {
        struct gpustub1_loaded *mine = gpustub1_loaded_images(search->library);
        if (!mine)
            return 0;
        /* The first answer counts for all threads: a later one would see what ours loaded. */
        if (!__atomic_compare_exchange_n(&state->loaded, &loaded, mine, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            for (int i = 0; mine[i].path; i++)
                free(mine[i].path);
            free(mine);
        } else {
            loaded = mine;
        }
    }
    for (const struct gpustub1_load_name *name = search->library->names; name->name; name++)
        gpustub1_try_images(search, loaded, name);
    gpustub1_try_images(search, loaded, NULL);
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
    struct gpustub1_search search = {index, library, outcome, toolkit, 0, NULL, 0, 0, 0};
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
    return toolkit->major == outcome->toolkit && (!a || !b ? a == b : !strcmp(a, b));
}

/* The outcome of a search, not yet published; NULL if memory is short. */
struct gpustub1_outcome *gpustub1_find(int index)
{
    const struct gpustub1_library *library = gpustub1_library(index);
    int shares = library->role == GPUSTUB1_TOOLKIT && library->family;
    for (;;) {
        const struct gpustub1_toolkit *toolkit = shares ? gpustub1_toolkit(library->family) : NULL;
        struct gpustub1_outcome *outcome = gpustub1_search(index, toolkit);
        if (!outcome || !outcome->handle || !outcome->toolkit || !shares)
            return outcome;
        const struct gpustub1_toolkit *agreed = gpustub1_claim(library->family, outcome, library->id);
        if (!agreed || agreed == toolkit || gpustub1_same_toolkit(agreed, outcome))
            return outcome;
        gpustub1_discard(outcome); /* another library of the family was quicker: follow it */
    }
}
