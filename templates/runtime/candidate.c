/* candidate.c: loads one candidate of a search and accepts or rejects it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Returns the toolkit major of the candidate's load name; 0: unversioned, or a major of the library's. */
int32_t named_toolkit(const struct search *search, const struct candidate *candidate)
{
    return search->library->independent_major ? 0 : candidate->major;
}

/* ---- paths ------------------------------------------------------------------------------------- */

/* Returns the file of a candidate as an allocated string; NULL if it has none or memory is short. */
static char *candidate_path(const struct candidate *candidate)
{
    if (candidate->file)
        return copy_string(candidate->file);
    return candidate->directory ? join(candidate->directory, "/", candidate->name) : NULL;
}

static int has_path(const struct candidate *candidate, const char *path)
{
    size_t length;
    if (candidate->file)
        return !strcmp(candidate->file, path);
    if (!candidate->directory)
        return 0;
    length = strlen(candidate->directory);
    return !strncmp(path, candidate->directory, length) && path[length] == '/' &&
           !strcmp(path + length + 1, candidate->name);
}

static int same_path(const struct candidate *a, const struct candidate *b)
{
    if (a->file || b->file)
        return a->file ? has_path(b, a->file) : has_path(a, b->file);
    return !a->directory == !b->directory && a->kind != CANDIDATE_HANDLE &&
           !strcmp(a->name, b->name) && (!a->directory || !strcmp(a->directory, b->directory));
}

/* ---- status ------------------------------------------------------------------------------------ */

/* Returns whether reports name the candidate. */
int is_reported(const struct candidate *candidate)
{
    return candidate->status == CANDIDATE_NOT_FOUND || candidate->status == CANDIDATE_REJECTED;
}

/* Appends the name of the candidate in reports. */
void append_candidate(struct text *text, const struct candidate *candidate)
{
    if (candidate->file) {
        append(text, candidate->file);
    } else if (candidate->directory) {
        append(text, candidate->directory);
        append(text, "/");
        append(text, candidate->name);
    } else if (candidate->kind == CANDIDATE_LOADER) {
        append(text, candidate->name);
        append(text, " (dynamic loader)");
    } else {
        append(text, candidate->found_by);
    }
}

/* Records a rejected candidate, once per file and reason. Takes ownership of `reason`; NULL: the file
 * does not exist. */
void reject_candidate(struct search *search, struct candidate *candidate, char *reason)
{
    for (const struct candidate *other = search->result->candidates; other < candidate; other++)
        if (is_reported(other) && !other->reason == !reason &&
            (!reason || !strcmp(other->reason, reason)) && same_path(other, candidate)) {
            free(reason);
            candidate->status = CANDIDATE_UNTRIED;
            return;
        }
    candidate->status = reason ? CANDIDATE_REJECTED : CANDIDATE_NOT_FOUND;
    candidate->reason = reason;
}

/* Returns the reason why a candidate is not tried, as an allocated string. */
static char *late_reason(const struct search *search, const struct candidate *candidate)
{
    struct text why = {NULL, 0, 0};
    int32_t major = named_toolkit(search, candidate);
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

static int is_path_reported(const struct search *search, const char *path)
{
    for (int i = 0; i < search->result->candidates_len; i++)
        if (is_reported(&search->result->candidates[i]) &&
            has_path(&search->result->candidates[i], path))
            return 1;
    return 0;
}

/* Records a file that exists and is not tried, unless it is the chosen library or already reported.
 * `reason` NULL: a preferred candidate precedes it; else the loader passed it over. */
void skip_candidate(struct search *search, struct candidate *candidate, const char *reason)
{
    const struct result *result = search->result;
    char *file = candidate_path(candidate);
    candidate->status = CANDIDATE_UNTRIED;
    int exists = file && find_file(file, NULL);
    if (exists && !is_path_reported(search, file) &&
        !(result->path && is_same_file(file, result->path))) {
        const char *objection = reason ? file_objection(file) : NULL;
        reject_candidate(search, candidate,
                         objection ? copy_string(objection)
                         : reason  ? copy_string(reason)
                                   : late_reason(search, candidate));
    } else if (file && !exists && reason && !is_path_reported(search, file)) {
        char *dangling = dangling_reason(file);
        if (dangling)
            reject_candidate(search, candidate, dangling);
    }
    free(file);
}

void discard_result(struct result *result)
{
    if (!result)
        return;
    for (int i = 0; i < result->candidates_len; i++) {
        free(result->candidates[i].reason);
        free(result->candidates[i].file);
    }
    free(result->candidates);
    free_search_dirs(&result->dirs);
    free(result->path);
    free(result->reason);
    free(result->root);
    free(result); /* the handle stays open: a loaded library is never closed */
}

/* ---- a loaded library -------------------------------------------------------------------------- */

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

/* Returns whether a library has any function that the program calls, of whatever ABI, or the version query:
 * a file of that name without one is another library. */
static int has_any_function(const struct search *search, void *handle, int32_t major,
                            int32_t version)
{
    const struct library *library = search->library;
    const struct result result = {.handle = handle, .major = major, .version = version};
    int is_stubbed = 0;
    if (library->version_function && find_symbol(handle, library->version_function))
        return 1;
    FOR_EACH_PART (part, library->state)
        for (const struct slot *slot = part->first; slot < part->last; slot++) {
            struct binding binding;
            is_stubbed = 1;
            if (resolve_slot(slot, part->library, &result, &binding) ||
                find_symbol(handle, slot_name(slot)))
                return 1;
        }
    return !is_stubbed && !library->version_function;
}

/* Appends the requirement of a package that a loaded library does not meet; nothing if it meets all. */
static void append_unmet(struct text *why, const struct library *library, void *handle,
                         int32_t version)
{
    if (library->min_version && version && version < library->min_version) {
        append(why, "version ");
        append_version(why, version);
        append(why, " is older than the required ");
        append_version(why, library->min_version);
        return;
    }
    for (const char *const *name = library->required_functions; *name; name++)
        if (!find_symbol(handle, *name)) {
            append(why, "lacks the required ");
            append(why, *name);
            return;
        }
}

/* Returns the reason why a loaded library is unusable, as an allocated string, or NULL: it must suit every
 * package that has stubs of it. `version`: upper bound of its version; 0: unknown. */
static char *find_objection(struct search *search, void *handle, int32_t major, int32_t toolkit,
                            int32_t version)
{
    const struct library_state *state = search->library->state;
    struct text why = {NULL, 0, 0};
    FOR_EACH_PART (part, state)
        if (!why.data && !accepts_major(part->library, major))
            append_unaccepted(&why, major);
    if (!why.data && search->toolkit && toolkit && toolkit != search->toolkit->major &&
        !search->result->forced)
        append_other_toolkit(&why, search, toolkit);
    FOR_EACH_PART (part, state)
        if (!why.data)
            append_unmet(&why, part->library, handle, version);
    if (!why.data && !has_any_function(search, handle, major, version))
        append(&why, "exports none of the functions that the program calls");
    return why.data;
}

/* Accepts a loaded library as the result, or records the objection to it. */
void accept_library(struct search *search, struct candidate *candidate, void *handle)
{
    struct result *result = search->result;
    const struct library *library = search->library;
    int chosen_by_path = candidate->kind != CANDIDATE_LOADER && candidate->kind != CANDIDATE_HANDLE;
    char *path;
    int32_t major;
    int32_t toolkit = 0, version = 0;
    const char *impostor = NULL;
    char *objection;
    if (!inspect_handle(handle, library, &path, &major)) {
        objection = copy_string(OWN_STUBS);
    } else if (!chosen_by_path && !result->forced && /* chosen by the loader */
               (impostor = impostor_reason(library, path))) {
        objection = copy_string(impostor);
    } else {
        version = query_version(library, handle);
        int is_probed = library->version_probes->prefix != NULL, own = library->independent_major;
        toolkit = is_probed && path ? toolkit_major(library, path) : 0;
        if (is_probed && !own) { /* neither soname nor load name determines it */
            major = toolkit;
        } else {
            if (!major)
                major = version / 1000;
            if (!major && !result->forced)
                major = candidate->major;
        }
        if (!own && version && version / 1000 < major)
            version = 0; /* a name of a newer major decides what functions mean */
        else if (!own && version / 1000 > major)
            major = version / 1000;
        if (!own)
            toolkit = major;
        objection = find_objection(search, handle, major, toolkit,
                                   version || !major ? version : major * 1000 + 990);
    }
    if (objection) { /* `path` is another file if dlopen returned an image already loaded */
        if (!chosen_by_path)
            candidate->file = path;
        else
            free(path);
        reject_candidate(search, candidate, objection);
        return;
    }
    if (!path && chosen_by_path)
        path = candidate_path(candidate);
    candidate->status = CANDIDATE_CHOSEN;
    result->handle = handle;
    result->path = path;
    result->found_by = candidate->found_by;
    result->root =
        candidate->root_length ? copy_string(candidate->directory) : toolkit_root_of(library, path);
    if (candidate->root_length && result->root)
        result->root[candidate->root_length] = 0;
    result->exact = version != 0;
    result->major = major;
    result->toolkit = toolkit;
    result->version = version ? version : major * 1000;
    preload_files(search);
}

/* ---- a file ------------------------------------------------------------------------------------ */

/* Rejects an impostor before dlopen: once loaded, a link-time stub with the driver's soname would
 * satisfy every later lookup in the process. */
static int reject_impostor(struct search *search, struct candidate *candidate, const char *file)
{
    const char *why = impostor_reason(search->library, file);
    if (why)
        reject_candidate(search, candidate, copy_string(why));
    return why != NULL;
}

/* Skips a file of another toolkit with the same soname (libcusparse.so.12 is in CUDA 12 and 13). If its
 * major has a load name, that name tries the file; otherwise the reason is recorded. */
static int skip_other_toolkit(struct search *search, struct candidate *candidate, const char *file)
{
    const struct library *library = search->library;
    const struct load_name *name = library->load_names;
    int32_t major = candidate->major, probed;
    struct text why = {NULL, 0, 0};
    if (search->result->forced || !library->version_probes->prefix ||
        (!major && !library->independent_major) || !(probed = toolkit_major(library, file)))
        return 0;
    if (library->independent_major) {
        if (!search->toolkit) { /* newer than the driver supports: tried last */
            int waits = candidate->may_wait && search->driver && probed > search->driver / 1000;
            if (waits)
                candidate->status = CANDIDATE_DEFERRED;
            return waits;
        }
        if (probed == search->toolkit->major)
            return 0;
        append_other_toolkit(&why, search, probed);
    } else {
        if (probed == major)
            return 0;
        while (name->name && name->major != probed)
            name++;
        if (name->name)
            return 1;
        append_unaccepted(&why, probed);
    }
    reject_candidate(search, candidate, why.data);
    return 1;
}

/* Loads a file, or a name that the loader resolves, and accepts or rejects it. */
void open_candidate(struct search *search, struct candidate *candidate)
{
    int by_loader = candidate->kind == CANDIDATE_LOADER;
    char *path = candidate_path(candidate);
    const char *file = by_loader ? candidate->name : path;
    size_t size = 0;
    candidate->status = CANDIDATE_UNTRIED;
    if (!file)
        return;
    if (candidate->directory && !find_file(file, &size)) {
        reject_candidate(search, candidate, dangling_reason(file));
    } else if (by_loader || (!reject_impostor(search, candidate, file) &&
                             !skip_other_toolkit(search, candidate, file))) {
        void *handle = open_library(file, search->library->role);
        if (handle)
            accept_library(search, candidate, handle);
        else
            reject_candidate(search, candidate, open_error(file, size, &search->is_short));
    }
    free(path);
}

/* Accepts or rejects an image that is already loaded. */
void open_loaded(struct search *search, struct candidate *candidate)
{
    void *handle = loaded_library(candidate->file);
    if (!handle)
        return;
    if (search->result->handle)
        reject_candidate(search, candidate, late_reason(search, candidate));
    else if (!reject_impostor(search, candidate, candidate->file))
        accept_library(search, candidate, handle);
}
