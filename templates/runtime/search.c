/* search.c: the candidates for a library as a list of values, and the loop that tries them.
 *
 * The list is built in stages, because each stage depends on the result of the previous one: loaded
 * images; names in every directory; names of majors that the driver does not support; unversioned
 * names. It belongs to the result of one thread's search, grows by doubling, and is bounded by names
 * times directories, which are bounded themselves. Candidates that no report shows are dropped at the
 * end. No state is shared: several threads may search for one library at once, a child of a fork
 * continues with its copy, and a constructor of a candidate that calls a stub starts a separate
 * search. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---------------------------------------------------------------------------------- */

static void add_candidate(struct search *search, struct candidate candidate)
{
    struct result *result = search->result;
    if (result->candidates_len == result->candidates_cap) {
        int capacity = result->candidates_cap ? result->candidates_cap * 2 : 64;
        struct candidate *candidates =
            realloc(result->candidates, (size_t)capacity * sizeof *candidates);
        if (!candidates) {
            search->is_cut = 1;
            free(candidate.file);
            return;
        }
        result->candidates = candidates;
        result->candidates_cap = capacity;
    }
    result->candidates[result->candidates_len++] = candidate;
}

/* Rounds of the search for names. Unversioned names come last: they may be any major. */
enum round { ROUND_SUPPORTED, ROUND_NEWER, ROUND_UNVERSIONED, ROUND_COUNT };

static enum round round_of(const struct search *search, const struct candidate *candidate)
{
    if (!candidate->major)
        return ROUND_UNVERSIONED;
    return search->driver && named_toolkit(search, candidate) > search->driver / 1000
               ? ROUND_NEWER
               : ROUND_SUPPORTED;
}

/* Adds a load name in every directory. */
static void add_name(struct search *search, const struct load_name *name, enum round round)
{
    const struct search_dirs *dirs = &search->result->dirs;
    struct candidate candidate = {.name = name->name, .major = name->major};
    int32_t major = named_toolkit(search, &candidate);
    if (round_of(search, &candidate) != round)
        return;
    candidate.may_wait = round == ROUND_SUPPORTED;
    candidate.is_excluded = search->toolkit && major && major != search->toolkit->major;
    for (int i = 0; i < dirs->length; i++) {
        const struct search_dir *dir = &dirs->data[i];
        candidate.kind = dir->kind == DIR_LOADER      ? CANDIDATE_LOADER
                         : dir->kind == DIR_OF_LOADER ? CANDIDATE_LOADER_DIR
                                                      : CANDIDATE_FILE;
        candidate.directory = dir->path;
        candidate.root_length = dir->root_length;
        candidate.found_by = dir->found_by;
        add_candidate(search, candidate);
    }
}

/* Adds the candidates of a round. ROUND_NEWER first moves deferred candidates to the end of the list, to be
 * tried again. */
static void add_round(struct search *search, enum round round)
{
    int length = search->result->candidates_len;
    for (int i = 0; round == ROUND_NEWER && i < length; i++) {
        struct candidate *first = &search->result->candidates[i];
        struct candidate second = *first;
        if (first->status != CANDIDATE_DEFERRED)
            continue;
        first->status = second.status = CANDIDATE_UNTRIED;
        second.may_wait = 0;
        if (second.kind == CANDIDATE_LOADER_DIR)
            second.kind = CANDIDATE_FILE;
        add_candidate(search, second);
    }
    for (const struct load_name *name = search->library->load_names; name->name; name++)
        add_name(search, name, round);
}

/* Returns the images that were loaded before any thread searched. NULL if memory is short. */
static const struct loaded_image *loaded_before(const struct search *search)
{
    struct library_state *state = search->library->state;
    struct loaded_image *loaded = LOAD_ACQUIRE(&state->loaded_images);
    struct loaded_image *mine = loaded ? NULL : list_loaded_images(search->library);
    if (!mine)
        return loaded;
    /* The first list serves all threads: a later one would include images that this search loaded. */
    if (__atomic_compare_exchange_n(&state->loaded_images, &loaded, mine, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return mine;
    for (int i = 0; mine[i].path; i++)
        free(mine[i].path);
    free(mine);
    return loaded;
}

/* Adds the loaded images of one load name; NULL: images of a newer major. */
static void add_images(struct search *search, const struct loaded_image *image,
                       const struct load_name *name)
{
    for (; image && image->path; image++) {
        char *file = image->name == name ? copy_string(image->path) : NULL;
        if (file)
            add_candidate(search, (struct candidate){.kind = CANDIDATE_LOADED,
                                                     .name = name ? name->name : NULL,
                                                     .major = name ? name->major : 0,
                                                     .file = file,
                                                     .found_by = "already loaded"});
    }
}

/* Adds the images that are already loaded, the preferred major first. */
static void add_loaded(struct search *search)
{
    const struct loaded_image *loaded = loaded_before(search);
    for (const struct load_name *name = search->library->load_names; name->name; name++)
        add_images(search, loaded, name);
    add_images(search, loaded, NULL);
}

/* Returns the first candidate that exists but was rejected, or NULL. Stubs are no problem: under the name of the
 * library they are where the user put them. */
static const struct candidate *first_problem(const struct result *result)
{
    for (int i = 0; i < result->candidates_len; i++) {
        const struct candidate *candidate = &result->candidates[i];
        const char *why = candidate->status == CANDIDATE_REJECTED ? candidate->reason : NULL;
        if (why && strcmp(why, STUB_LIBRARY) && strcmp(why, OWN_STUBS))
            return candidate;
    }
    return NULL;
}

/* Adds the candidates of an override variable: a file, or all names in a directory. */
static void add_override(struct search *search, const char *value)
{
    const struct library *library = search->library;
    struct result *result = search->result;
    if (!is_directory(value)) {
        char *file = copy_string(value);
        search->is_cut |= !file;
        if (file)
            add_candidate(search, (struct candidate){.kind = CANDIDATE_FILE,
                                                     .file = file,
                                                     .found_by = library->override_env});
        return;
    }
    add_search_dir(&result->dirs, value, "", library->override_env);
    search->is_cut |= result->dirs.is_cut;
    for (const struct load_name *name = library->load_names; name->name; name++)
        for (int i = 0; i < result->dirs.length; i++)
            add_candidate(search, (struct candidate){.kind = CANDIDATE_FILE,
                                                     .name = name->name,
                                                     .major = name->major,
                                                     .directory = result->dirs.data[i].path,
                                                     .found_by = library->override_env});
}

/* Drops the candidates that reports do not show. */
static void drop_untried(struct result *result)
{
    int length = 0;
    for (int i = 0; i < result->candidates_len; i++) {
        if (is_reported(&result->candidates[i]) || result->candidates[i].status == CANDIDATE_CHOSEN)
            result->candidates[length++] = result->candidates[i];
        else
            free(result->candidates[i].file);
    }
    result->candidates_len = length;
    struct candidate *candidates =
        length ? realloc(result->candidates, (size_t)length * sizeof *candidates) : NULL;
    if (candidates) {
        result->candidates = candidates;
        result->candidates_cap = length;
    }
}

/* ---- the loop ---------------------------------------------------------------------------------- */

/* Use of the dynamic loader for a bare name. */
enum loader_use {
    LOADER_UNUSED,
    LOADER_HOLDS_REJECTED, /* an image with this soname was loaded, or would be, that is rejected */
    LOADER_SEARCHED
};

/* Returns whether the loader would map a file that is rejected, because it is the first of this name in the
 * loader's directories: a truncated one, or stubs. */
static int would_map_rejected(const struct search *search, const char *name)
{
    const struct search_dirs *dirs = &search->result->dirs;
    int found = 0, is_rejected = 0;
    for (int i = 0; i < dirs->length && !found; i++) {
        char *path = dirs->data[i].kind == DIR_OF_LOADER ? join(dirs->data[i].path, "/", name) : NULL;
        if (path && find_file(path, NULL)) {
            const char *why = file_objection(path);
            /* The loader itself skips files for another processor. */
            found = !why || strcmp(why, FOREIGN_FILE);
            is_rejected = found && why;
        }
        free(path);
    }
    return is_rejected;
}

/* Lets the loader resolve a name. A rejected library stays loaded: unloading code that started threads or
 * hooks is not safe. The loader then returns it for its soname, so the loader's directories are searched
 * instead. */
static enum loader_use open_through_loader(struct search *search, struct candidate *candidate)
{
    int was_there = loaded_library(candidate->name) != NULL;
    if (!was_there && would_map_rejected(search, candidate->name)) {
        candidate->status = CANDIDATE_UNTRIED;
        return LOADER_HOLDS_REJECTED;
    }
    const char *why = NULL;
    if (!was_there)
        candidate->file = cached_file(candidate->name, &why);
    if (candidate->file) {
        reject_candidate(search, candidate, copy_string(why));
        return LOADER_HOLDS_REJECTED;
    }
    open_candidate(search, candidate);
    return was_there && !search->result->handle ? LOADER_HOLDS_REJECTED : LOADER_SEARCHED;
}

/* Tries the file to which the loader's cache leads for a name that a rejected image holds. The cache is not among
 * the directories that the loader lists. */
static void open_cached(struct search *search, const struct candidate *named)
{
    char *file = cached_file(named->name, NULL);
    if (!file)
        return;
    add_candidate(search, (struct candidate){.kind = CANDIDATE_CACHED,
                                             .name = named->name,
                                             .major = named->major,
                                             .file = file,
                                             .found_by = named->found_by});
    if (!search->is_cut)
        open_candidate(search, &search->result->candidates[search->result->candidates_len - 1]);
}

/* Returns whether the candidate is the last of the loader's directories for its name. */
static int ends_loader_dirs(const struct search *search)
{
    const struct result *result = search->result;
    return search->next + 1 == result->candidates_len ||
           result->candidates[search->next + 1].kind != CANDIDATE_LOADER_DIR;
}

/* Tries the candidates from `next` on, in order; once a library is found, records the remaining ones that
 * exist. */
static void try_candidates(struct search *search)
{
    const struct result *result = search->result;
    enum loader_use loader = LOADER_UNUSED;
    for (; search->next < result->candidates_len; search->next++) {
        struct candidate *candidate = &result->candidates[search->next];
        int late = result->handle || candidate->is_excluded;
        switch (candidate->kind) {
        case CANDIDATE_FILE:
            if (late)
                skip_candidate(search, candidate, NULL);
            else
                open_candidate(search, candidate);
            break;
        case CANDIDATE_LOADER:
            loader = late ? LOADER_UNUSED : open_through_loader(search, candidate);
            break;
        case CANDIDATE_LOADER_DIR:
            if (loader == LOADER_HOLDS_REJECTED && !late)
                open_candidate(search, candidate);
            else
                skip_candidate(search, candidate,
                               loader == LOADER_UNUSED
                                   ? NULL
                                   : "not the file that the dynamic loader chose");
            if (loader == LOADER_HOLDS_REJECTED && !late && !result->handle &&
                ends_loader_dirs(search))
                open_cached(search, candidate);
            break;
        case CANDIDATE_CACHED: break;
        case CANDIDATE_LOADED: open_loaded(search, candidate); break;
        case CANDIDATE_HANDLE:
            accept_library(search, candidate, LOAD_ACQUIRE(&search->library->state->handle));
            break;
        }
    }
}

/* Tries every name in every directory. */
static void search_names(struct search *search)
{
    struct search_dirs *dirs = &search->result->dirs;
    list_search_dirs(dirs, search->library, search->toolkit ? search->toolkit->root : NULL);
    search->is_cut |= dirs->is_cut;
    search->is_short |= dirs->is_short;
    for (int round = 0; round < ROUND_COUNT; round++) {
        add_round(search, (enum round)round);
        try_candidates(search);
    }
}

/* ---- one search -------------------------------------------------------------------------------- */

/* Searches only what the override variable names: a file, a directory, or `off`. */
static void search_override(struct search *search, const char *value)
{
    const char *variable = search->library->override_env;
    struct result *result = search->result;
    result->forced = 1;
    if (!strcmp(value, "off")) {
        result->reason = join("switched off by ", variable, "=off");
    } else if (!is_absolute(value)) {
        result->reason = join(variable, " is not an absolute path: ", value);
    } else {
        add_override(search, value);
        try_candidates(search);
        if (search->is_cut)
            return;
        int is_file = result->candidates_len == 1 && result->candidates[0].file;
        const char *why = is_file ? result->candidates[0].reason : NULL;
        if (!result->handle && is_file) {
            char *text = join(variable, ": ", value);
            result->reason = join(text ? text : value, ": ", why ? why : "no such file");
            free(text);
        } else if (!result->handle && !first_problem(result)) {
            result->reason = join(variable, " names a directory without the library: ", value);
        }
    }
}

/* Returns the most informative single line why a library is unavailable: a file that exists but was
 * rejected explains more than all the directories without a file. */
static char *summarize(const struct search *search)
{
    const struct candidate *problem = first_problem(search->result);
    struct text text = {NULL, 0, 0};
    if (problem) {
        append_candidate(&text, problem);
        append(&text, ": ");
        append(&text, problem->reason);
        return text.data;
    }
    const struct load_name *names = search->library->load_names;
    for (const struct load_name *name = names; name->name; name++) {
        /* Two majors may share a file name. */
        const struct load_name *first = names;
        while (strcmp(first->name, name->name) != 0)
            first++;
        if (first != name)
            continue;
        append(&text, text.length ? ", " : "");
        append(&text, name->name);
    }
    append(&text, " not found");
    if (search->library->role == ROLE_LOADER)
        append(&text, missing_loader_hint());
    return text.data;
}

static struct result *search_once(const struct library *library, const struct toolkit *toolkit)
{
    struct result *result = calloc(1, sizeof *result);
    struct search search = {.library = library, .result = result, .toolkit = toolkit};
    const char *value = read_path(library->override_env);
    if (!result)
        return NULL;
    if (LOAD_ACQUIRE(&library->state->handle)) {
        result->forced = 1;
        add_candidate(&search, (struct candidate){.kind = CANDIDATE_HANDLE,
                                                  .found_by = "handle set by the program"});
        try_candidates(&search);
    } else if (value) {
        search_override(&search, value);
    } else {
        add_loaded(&search);
        try_candidates(&search);
        if (!result->handle && library->driver) {
            const struct result *driver = settle_library(library->driver); /* recursion: the driver */
            search.driver = driver && driver->handle ? driver->version : 0;
            search.is_short |= !driver || driver->is_provisional;
        }
        search_names(&search);
    }
    if (!result->handle && !result->reason && !search.is_cut)
        result->reason = summarize(&search);
    if (!result->handle && !result->reason) { /* no memory: the next call searches again */
        discard_result(result);
        return NULL;
    }
    result->is_provisional = !result->handle && search.is_short;
    drop_untried(result);
    return result;
}

/* Makes the result's toolkit that of the family unless it has one. Returns the family's toolkit. */
static const struct toolkit *claim_toolkit(struct family *family, const struct result *result,
                                           const char *claimed_by)
{
    struct toolkit *theirs = LOAD_ACQUIRE(&family->toolkit);
    if (theirs)
        return theirs;
    struct toolkit *mine = malloc(sizeof *mine);
    if (!mine)
        return NULL;
    mine->major = result->toolkit;
    mine->root = result->root ? copy_string(result->root) : NULL;
    mine->claimed_by = claimed_by;
    if (__atomic_compare_exchange_n(&family->toolkit, &theirs, mine, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return mine;
    free((char *)mine->root);
    free(mine);
    return theirs;
}

static int same_toolkit(const struct toolkit *toolkit, const struct result *result)
{
    const char *a = toolkit->root, *b = result->root;
    return toolkit->major == result->toolkit && (!a || !b ? a == b : !strcmp(a, b));
}

/* Returns the result of a search, not yet published; NULL if memory is short. */
struct result *find_library(const struct library *library)
{
    int shares = library->role == ROLE_TOOLKIT && library->family;
    for (;;) {
        const struct toolkit *toolkit = shares ? LOAD_ACQUIRE(&library->family->toolkit) : NULL;
        struct result *result = search_once(library, toolkit);
        if (!result || !result->handle || !result->toolkit || !shares)
            return result;
        const struct toolkit *agreed = claim_toolkit(library->family, result, library->id);
        if (!agreed || agreed == toolkit || same_toolkit(agreed, result))
            return result;
        discard_result(result); /* another library of the family settled first: search again */
    }
}
