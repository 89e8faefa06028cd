/* search.c: which file a library is taken from. */
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- all candidates ------------------------------------------------------------------------- */

/* The toolkit major that the current name stands for; 0: none, or the name does not tell. */
static int32_t named_toolkit(const struct search *search)
{
    return search->name && !search->library->independent_major ? search->name->major : 0;
}

/* Why this name is not looked for now, as new text; NULL if it is. */
static char *skip_reason(struct search *search)
{
    struct text why = {NULL, 0, 0};
    int32_t major = named_toolkit(search);
    if (search->toolkit && major && major != search->toolkit->major) {
        append(&why, search->toolkit->claimed_by);
        append(&why, " settled for major ");
        append_number(&why, search->toolkit->major);
    } else if (search->driver && major > search->driver / 1000) {
        append(&why, "newer than the driver supports (");
        append_version(&why, search->driver);
        append(&why, ")");
    } else {
        append(&why, search->result->path ? search->result->path : "another");
        append(&why, " comes first");
    }
    return why.data;
}

static int is_noted(const struct result *result, const char *file)
{
    for (int i = 0; i < result->tries_len; i++)
        if (!strcmp(result->tries[i].what, file))
            return 1;
    return 0;
}

/* Notes a file that is there but was passed over: by the loader, or because it comes too late. */
static void pass_over(struct search *search, const char *directory, int by_loader)
{
    struct stat status;
    char *file = join(directory, "/", search->name->name);
    if (!file || stat(file, &status) || is_noted(search->result, file) ||
        (search->result->path && same_file(file, search->result->path)))
        free(file);
    else if (by_loader)
        note(search, file, copy_string("not what the loader's search came to"));
    else
        note(search, file, skip_reason(search));
}

static void try_file(struct search *search, const char *directory, const char *root,
                     const char *found)
{
    char *file = join(directory, "/", search->name->name);
    struct stat status;
    if (file && stat(file, &status))
        note(search, copy_string(file), NULL);
    else if (file)
        search->settled = open_candidate(search, file, root, found);
    free(file);
}

enum visit { VISIT_LATE, VISIT_BY_LOADER, VISIT_TRY };

/* Visits where the loader looks, since its search cannot be asked without loading. (ld.so.cache is not
 * among that; what it names lies in directories that most systems have in the list too. musl cannot
 * tell.) */
static void at_loader(struct search *search, enum visit visit)
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
        if (visit == VISIT_TRY && !search->settled)
            try_file(search, directory, NULL, "the loader's search");
        else
            pass_over(search, directory, visit != VISIT_LATE);
    }
    free(places);
#else
    (void)search, (void)visit;
#endif
}

static int try_place(void *context, const char *directory, const char *root, const char *found)
{
    struct search *search = context;
    if (directory && search->settled) {
        pass_over(search, directory, 0);
    } else if (directory) {
        try_file(search, directory, root, found);
    } else if (search->settled) {
        at_loader(search, VISIT_LATE);
    } else {
        /* A library stays loaded even if it is not taken: unloading what started threads or hooks is
         * not safe. The loader then answers its soname with it, and we look in its stead. */
        const char *name = search->name->name;
        int was_there = dlopen(name, RTLD_LAZY | RTLD_NOLOAD) != NULL;
        search->settled = open_candidate(search, name, NULL, found);
        at_loader(search, was_there && !search->settled ? VISIT_TRY : VISIT_BY_LOADER);
    }
    return 0;
}

/* When a name has its turn. Unversioned names come last: they may be any major. */
enum { ROUND_FIRST, ROUND_NEWER, ROUND_UNVERSIONED, ROUND_COUNT };

static int round_of(const struct search *search)
{
    int32_t major = named_toolkit(search);
    return !search->name->major                              ? ROUND_UNVERSIONED
           : search->driver && major > search->driver / 1000 ? ROUND_NEWER
                                                             : ROUND_FIRST;
}

/* Every name at every place; names of a major that the family has not settled for are only
 * noted. */
static void try_names(struct search *search)
{
    const struct toolkit *toolkit = search->toolkit;
    for (int turn = 0; turn < ROUND_COUNT; turn++)
        for (search->name = search->library->load_names; search->name->name; search->name++) {
            int32_t major = named_toolkit(search);
            int other = toolkit && major && major != toolkit->major;
            search->last = turn >= ROUND_NEWER;
            if (round_of(search) != turn && !(turn == ROUND_NEWER && search->newer))
                continue;
            int settled = search->settled;
            search->settled |= other;
            each_dir(search->library, toolkit ? toolkit->root : NULL, try_place, search);
            if (other)
                search->settled = settled;
        }
    search->name = NULL;
}

/* ---- what comes before the search ----------------------------------------------------------- */

/* The first candidate that was there and could not be used, or NULL. */
static const struct candidate *gpustub1_first_problem(const struct result *result)
{
    for (int i = 0; i < result->tries_len; i++)
        if (result->tries[i].why)
            return &result->tries[i];
    return NULL;
}

/* The override variable: a file, a directory, or `off`. It has the last word, also in failing. */
static int try_override(struct search *search)
{
    const struct library *library = search->library;
    const char *value = read_env(library->override_env);
    struct result *result = search->result;
    struct stat status;
    if (!value)
        return 0;
    result->forced = 1;
    if (!strcmp(value, "off")) {
        result->reason = join("switched off by ", library->override_env, "=off");
    } else if (value[0] != '/') {
        result->reason = join(library->override_env, " is not an absolute path: ", value);
    } else if (!stat(value, &status) && S_ISDIR(status.st_mode)) {
        for (search->name = library->load_names; search->name->name; search->name++)
            try_place(search, value, NULL, library->override_env);
        search->name = NULL;
        if (!search->settled && !gpustub1_first_problem(result))
            result->reason = join(library->override_env, " names a directory without it: ", value);
    } else if (!(search->settled = open_candidate(search, value, NULL, library->override_env))) {
        const char *why = result->tries_len ? result->tries[result->tries_len - 1].why : NULL;
        char *text = join(library->override_env, ": ", value);
        result->reason = join(text ? text : value, ": ", why ? why : "no such file");
        free(text);
    }
    return 1;
}

/* Each loaded image of this name; NULL: of a newer major. */
static void try_images(struct search *search, const struct loaded_image *image,
                       const struct load_name *name)
{
    search->name = name;
    for (; image->path; image++) {
        void *handle = image->name == name ? dlopen(image->path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (handle && search->settled)
            note(search, copy_string(image->path), skip_reason(search));
        else if (handle && !passes_over_impostor(search, image->path))
            search->settled = accept_library(search, handle, image->path, NULL, "already loaded");
    }
}

/* What had been loaded before we searched, the preferred major first. */
static int try_loaded(struct search *search)
{
    struct library_state *state = get_state(search->index);
    struct loaded_image *loaded = LOAD_ACQUIRE(&state->loaded_images);
    if (!loaded) {
        struct loaded_image *mine = list_loaded_images(search->library);
        if (!mine)
            return 0;
        /* The first answer counts for all threads: a later one would see what ours loaded. */
        if (!__atomic_compare_exchange_n(&state->loaded_images, &loaded, mine, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            for (int i = 0; mine[i].path; i++)
                free(mine[i].path);
            free(mine);
        } else {
            loaded = mine;
        }
    }
    for (const struct load_name *name = search->library->load_names; name->name; name++)
        try_images(search, loaded, name);
    try_images(search, loaded, NULL);
    return search->settled;
}

static int yes(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 1;
}

/* The best single line for what went wrong: a library that was there and could not be used says
 * more than all the places where nothing was. */
static char *summarize(const struct search *search)
{
    const struct candidate *problem = gpustub1_first_problem(search->result);
    struct text text = {NULL, 0, 0};
    if (problem)
        return join(problem->what, ": ", problem->why);
    for (const struct load_name *name = search->library->load_names; name->name; name++) {
        append(&text, text.length ? ", " : "");
        append(&text, name->name);
    }
    append(&text, " not found");
    if (search->library->role == ROLE_LOADER && each_file("/etc/OpenCL/vendors", "", yes, NULL))
        append(&text, "; drivers are listed in /etc/OpenCL/vendors, but there is no loader "
                      "for them (packages ocl-icd-libopencl1, ocl-icd, opencl-icd-loader)");
    return text.data;
}

static struct result *search_once(int index, const struct toolkit *toolkit)
{
    const struct library *library = get_library(index);
    struct library_state *state = get_state(index);
    struct result *result = calloc(1, sizeof *result);
    struct search search = {index, library, result, toolkit, 0, NULL, 0, 0, 0};
    if (!result)
        return NULL;
    void *given = LOAD_ACQUIRE(&state->handle);
    if (given) {
        result->forced = 1;
        search.settled = accept_library(&search, given, NULL, NULL, "handle set by the program");
    } else if (!try_override(&search) && !try_loaded(&search)) {
        if (library->driver >= 0) {
            const struct result *driver = settle_library(library->driver);
            search.driver = driver && driver->handle ? driver->version : 0;
        }
        try_names(&search);
    } else if (search.settled && !result->forced) {
        try_names(&search); /* only to note what is passed over */
    }
    if (!result->handle && !result->reason)
        result->reason = summarize(&search);
    if (!result->handle && !result->reason) { /* no memory */
        discard_result(result);
        return NULL;
    }
    return result;
}

static int same_toolkit(const struct toolkit *toolkit, const struct result *result)
{
    const char *a = toolkit->root, *b = result->root;
    return toolkit->major == result->toolkit && (!a || !b ? a == b : !strcmp(a, b));
}

/* The result of a search, not yet published; NULL if memory is short. */
struct result *find_library(int index)
{
    const struct library *library = get_library(index);
    int shares = library->role == ROLE_TOOLKIT && library->family;
    for (;;) {
        const struct toolkit *toolkit = shares ? get_toolkit(library->family) : NULL;
        struct result *result = search_once(index, toolkit);
        if (!result || !result->handle || !result->toolkit || !shares)
            return result;
        const struct toolkit *agreed = claim_toolkit(library->family, result, library->id);
        if (!agreed || agreed == toolkit || same_toolkit(agreed, result))
            return result;
        discard_result(result); /* another library of the family was quicker: follow it */
    }
}
