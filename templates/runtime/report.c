/* report.c: reports of a search: the library, the rejected candidates, and the reasons. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 8 };

/* Outcome of binding a function. */
enum binding_kind { BOUND_UNCHANGED, BOUND_RENAMED, BOUND_ADAPTED, MISSING, ABI_MISMATCH };

static enum binding_kind binding_kind(const struct slot *slot, const struct library *library,
                                      const struct result *result, struct binding *binding)
{
    if (!resolve_slot(slot, library, result, binding))
        return binding->reason == FUNCTION_REFUSED ? ABI_MISMATCH : MISSING;
    if (binding->entry || binding->larger_size)
        return BOUND_ADAPTED;
    return binding->name == slot_name(slot) ? BOUND_UNCHANGED : BOUND_RENAMED;
}

static void append_function(struct text *text, const struct slot *slot,
                            const struct binding *binding, enum binding_kind kind)
{
    const char *own = slot_name(slot);
    append(text, own);
    if (kind == BOUND_RENAMED || (kind == BOUND_ADAPTED && strcmp(binding->name, own))) {
        append(text, " as ");
        append(text, binding->name);
    }
    if (kind == BOUND_ADAPTED && !binding->entry) {
        append(text, " (");
        append_number(text, (long)binding->size);
        append(text, " of ");
        append_number(text, (long)binding->larger_size);
        append(text, " bytes)");
    } else if (kind == BOUND_ADAPTED && binding->entry->kind == ABI_NULL_ARGUMENT) {
        append(text, " with NULL as argument ");
        append_number(text, binding->entry->null_argument);
    } else if (kind == BOUND_ADAPTED) {
        const struct adapter *adapter = slot_adapter(slot, binding->entry);
        append(text, adapter->limit ? " (only " : "");
        append(text, adapter->limit ? adapter->limit : "");
        append(text, adapter->limit ? ")" : "");
    }
    int is_bound = kind != MISSING && kind != ABI_MISMATCH;
    if (!is_bound && (binding->lacking || binding->explanation)) {
        append(text, binding->lacking ? " (the library lacks " : " (");
        append(text, binding->lacking ? binding->lacking : binding->explanation);
        append(text, ")");
    }
}

/* Appends the functions with the `wanted` kind of binding, in one line. */
static void append_functions(struct text *text, const char *title,
                             const struct library_state *state, const struct result *result,
                             enum binding_kind wanted)
{
    int count = 0;
    FOR_EACH_PART (part, state)
        for (const struct slot *slot = part->first; slot < part->last; slot++) {
            struct binding binding;
            if (binding_kind(slot, part->library, result, &binding) != wanted)
                continue;
            if (count == MAX_NAMES) {
                append(text, ", …");
                return;
            }
            append(text, count++ ? ", " : title);
            append_function(text, slot, &binding, wanted);
        }
}

static int is_newer(const struct library *library, const struct result *result)
{
    return library->newest_major && result->major > library->newest_major;
}

static void append_refusal(struct text *text, const struct library *library,
                           const struct result *result)
{
    if (is_newer(library, result)) {
        append(text, " (ABI unknown for newer majors)");
    } else if (!library->header_version) {
        append(text,
               " (GpuStub.toml does not set the version of the program's headers: header-version = …)");
    } else {
        append(text, " (the program's headers are ");
        append_version(text, library->header_version);
        append(text, ")");
    }
}

/* Appends text that may contain control characters, and frees it. */
static void append_owned(struct text *text, struct text *from)
{
    append_printable(text, from->data ? from->data : "");
    free(from->data);
}

/* Returns the length of a candidate's directory, and its text; 0: the dynamic loader. */
static size_t candidate_directory(const struct candidate *candidate, const char **directory)
{
    const char *slash = candidate->file ? strrchr(candidate->file, '/') : NULL;
    *directory = candidate->file ? candidate->file : candidate->directory;
    return slash ? (size_t)(slash - candidate->file) : *directory ? strlen(*directory) : 0;
}

/* Appends each directory with a missing file once: names times directories would fill a screen. */
static void append_missing_dirs(struct text *text, const struct result *result)
{
    int count = 0;
    for (int i = 0; i < result->candidates_len; i++) {
        const char *directory, *other;
        size_t length = candidate_directory(&result->candidates[i], &directory);
        int seen = result->candidates[i].status != CANDIDATE_NOT_FOUND;
        for (int k = 0; k < i && !seen; k++)
            seen = result->candidates[k].status == CANDIDATE_NOT_FOUND &&
                   candidate_directory(&result->candidates[k], &other) == length &&
                   (!length || !strncmp(other, directory, length));
        if (seen)
            continue;
        append(text, count++ ? ", " : "\n  searched: ");
        if (length) {
            struct text name = {NULL, 0, 0};
            append_bytes(&name, directory, length);
            append_owned(text, &name);
        } else {
            append(text, "dynamic loader");
        }
    }
}

/* Appends the variable that would add wheels to the search, if none were searched. */
static void append_wheels_hint(struct text *text, const struct library *library,
                               const struct result *result)
{
    if (!*library->wheel_dirs || is_secure())
        return;
    for (int i = 0; i < result->candidates_len; i++) {
        const char *directory;
        if (candidate_directory(&result->candidates[i], &directory) && strstr(directory, "-packages/"))
            return;
    }
    append(text, "; no Python environment (VIRTUAL_ENV)");
}

static void append_text_report(struct text *text, const struct library_state *state,
                               const struct result *result)
{
    const struct library *library = first_library(state);
    append(text, library->id);
    if (!library->stubbed)
        append(text, " (its version limits the toolkit)");
    if (result->handle) {
        append(text, ": ");
        append_printable(text, result->path ? result->path : "(no path)");
        if (result->version) {
            append(text, result->exact ? ", version " : ", major ");
            if (result->exact)
                append_version(text, result->version);
            else
                append_number(text, result->major);
        }
        if (is_newer(library, result)) {
            append(text, ", newer than the newest known major (");
            append_number(text, library->newest_major);
            append(text, ")");
        }
        append(text, ", by ");
        append(text, result->found_by ? result->found_by : "search");
        append(text, ": ");
        append_number(text, LOAD_RELAXED(&result->bound));
        append(text, " functions bound, ");
        append_number(text, LOAD_RELAXED(&result->refused));
        append(text, " refused, ");
        append_number(text, LOAD_RELAXED(&result->missing));
        append(text, " missing");
        if (LOAD_RELAXED(&result->copied)) {
            append(text, ", copies of data: ");
            append_number(text, LOAD_RELAXED(&result->copied));
        }
        if (LOAD_RELAXED(&result->renamed))
            append_functions(text, "\n  bound: ", state, result, BOUND_RENAMED);
        if (LOAD_RELAXED(&result->adapted))
            append_functions(text, "\n  adapted: ", state, result, BOUND_ADAPTED);
        if (LOAD_RELAXED(&result->refused)) {
            append_functions(text, "\n  refused: ", state, result, ABI_MISMATCH);
            append_refusal(text, library, result);
        }
        if (LOAD_RELAXED(&result->missing))
            append_functions(text, "\n  missing: ", state, result, MISSING);
    } else {
        append(text, result->is_provisional ? ": unavailable for now: " : ": unavailable: ");
        append_printable(text, result->reason);
        append_missing_dirs(text, result);
        append_wheels_hint(text, library, result);
    }
    for (int i = 0; i < result->candidates_len; i++) {
        const struct candidate *candidate = &result->candidates[i];
        if (candidate->status != CANDIDATE_REJECTED || !candidate->reason)
            continue;
        append(text, result->handle ? "\n  rejected " : "\n  tried ");
        struct text name = {NULL, 0, 0};
        append_candidate(&name, candidate);
        append_owned(text, &name);
        append(text, ": ");
        append_printable(text, candidate->reason);
    }
    append(text, "\n");
}

static void append_json_field(struct text *text, const char *name, const char *value)
{
    append(text, ",\"");
    append(text, name);
    append(text, "\":");
    if (value)
        append_json(text, value);
    else
        append(text, "null");
}

static void append_json_number(struct text *text, const char *name, long value)
{
    append(text, ",\"");
    append(text, name);
    append(text, "\":");
    append_number(text, value);
}

static void append_json_report(struct text *text, const struct library *library,
                               const struct result *result)
{
    append(text, "{\"format_version\":1");
    append_json_field(text, "library", library->id);
    append(text, result->handle ? ",\"available\":true" : ",\"available\":false");
    append_json_field(text, "path", result->path);
    append_json_field(text, "found_by", result->found_by);
    append_json_field(text, "reason", result->reason);
    append_json_number(text, "major", result->major);
    append_json_number(text, "version", result->exact ? result->version : 0);
    append_json_number(text, "newest_known", library->newest_major);
    append_json_number(text, "bound", LOAD_RELAXED(&result->bound));
    append_json_number(text, "renamed", LOAD_RELAXED(&result->renamed));
    append_json_number(text, "adapted", LOAD_RELAXED(&result->adapted));
    append_json_number(text, "refused", LOAD_RELAXED(&result->refused));
    append_json_number(text, "missing", LOAD_RELAXED(&result->missing));
    append_json_number(text, "copied", LOAD_RELAXED(&result->copied));
    append(text, ",\"candidates\":[");
    for (int i = 0, count = 0; i < result->candidates_len; i++) {
        const struct candidate *candidate = &result->candidates[i];
        struct text name = {NULL, 0, 0};
        if (!is_reported(candidate))
            continue;
        append_candidate(&name, candidate);
        append(text, count++ ? ",{\"name\":" : "{\"name\":");
        append_json(text, name.data ? name.data : "");
        append(text, ",\"reason\":");
        append_json(text, candidate->reason ? candidate->reason : "no such file");
        append(text, "}");
        free(name.data);
    }
    append(text, "]}\n");
}

/* Returns the report as text, built by the first call; NULL if memory is short. */
const char *get_report(const struct library_state *state, struct result *result)
{
    char *theirs = LOAD_ACQUIRE(&result->report);
    struct text text = {NULL, 0, 0};
    if (theirs)
        return theirs;
    append_text_report(&text, state, result);
    if (!text.data || __atomic_compare_exchange_n(&result->report, &theirs, text.data, 0,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return text.data;
    free(text.data);
    return theirs;
}

/* Prints what is wrong with the value of a variable. */
void report_setting(const char *message, const char *value)
{
    struct text line = {NULL, 0, 0};
    append(&line, "gpustub: ");
    append(&line, message);
    append_printable(&line, value);
    append(&line, "\n");
    if (line.data)
        write_stderr(line.data, line.length);
    free(line.data);
}

/* Prints one report per library, in one write, if GPUSTUB_LOG requests it. */
void log_report(const struct library_state *state, struct result *result)
{
    const char *wanted = read_env("GPUSTUB_LOG");
    struct text text = {NULL, 0, 0};
    if (!wanted)
        return;
    if (!strcmp(wanted, "json")) {
        append_json_report(&text, first_library(state), result);
    } else if (!strcmp(wanted, "1") || !strcmp(wanted, "text")) {
        append(&text, "gpustub: ");
        append_text_report(&text, state, result);
    } else if (strcmp(wanted, "0")) {
        static int is_reported; /* atomic; before GCC 13, exchanging a byte needs libatomic on RISC-V */
        if (!__atomic_exchange_n(&is_reported, 1, __ATOMIC_RELAXED))
            report_setting("GPUSTUB_LOG is 1, text, json or 0; ignored: ", wanted);
    }
    if (text.data)
        write_stderr(text.data, text.length);
    free(text.data);
}
