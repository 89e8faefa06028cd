/* report.c: what was found, what was passed over, and why. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUSTUB1_MOST_NAMES = 8 };

/* What came of a function. */
enum gpustub1_end {
    GPUSTUB1_AS_ITSELF,
    GPUSTUB1_RENAMED,
    GPUSTUB1_TRANSLATED,
    GPUSTUB1_NOT_THERE,
    GPUSTUB1_NOT_MEANT
};

static enum gpustub1_end gpustub1_end(const struct gpustub1_slot *slot,
                                      const struct gpustub1_library *library,
                                      const struct gpustub1_outcome *outcome,
                                      struct gpustub1_binding *binding)
{
    if (!gpustub1_resolve(slot, library, outcome, binding))
        return binding->reason == GPUSTUB1_REFUSED ? GPUSTUB1_NOT_MEANT : GPUSTUB1_NOT_THERE;
    if (binding->null >= 0)
        return GPUSTUB1_TRANSLATED;
    return binding->name == gpustub1_slot_name(slot) ? GPUSTUB1_AS_ITSELF : GPUSTUB1_RENAMED;
}

/* The functions that came to this end, in one line. */
static void gpustub1_append_functions(struct gpustub1_text *text, const char *title,
                                      const struct gpustub1_library *library,
                                      const struct gpustub1_outcome *outcome,
                                      enum gpustub1_end wanted)
{
    int count = 0;
    for (const struct gpustub1_slot *slot = library->first; slot < library->last; slot++) {
        struct gpustub1_binding binding;
        const char *own = gpustub1_slot_name(slot);
        if (gpustub1_end(slot, library, outcome, &binding) != wanted)
            continue;
        if (count == GPUSTUB1_MOST_NAMES) {
            gpustub1_append(text, ", …");
            break;
        }
        gpustub1_append(text, count++ ? ", " : title);
        gpustub1_append(text, own);
        if (wanted == GPUSTUB1_RENAMED ||
            (wanted == GPUSTUB1_TRANSLATED && strcmp(binding.name, own))) {
            gpustub1_append(text, " as ");
            gpustub1_append(text, binding.name);
        }
        if (wanted == GPUSTUB1_TRANSLATED) {
            gpustub1_append(text, " with NULL as argument ");
            gpustub1_append_number(text, binding.null);
        }
    }
}

static int gpustub1_is_newer(const struct gpustub1_library *library,
                             const struct gpustub1_outcome *outcome)
{
    return library->newest && outcome->major > library->newest;
}

static void gpustub1_append_refusal(struct gpustub1_text *text,
                                    const struct gpustub1_library *library,
                                    const struct gpustub1_outcome *outcome)
{
    if (gpustub1_is_newer(library, outcome)) {
        gpustub1_append(text, " (what they mean in a newer major is not known)");
    } else if (!library->header) {
        gpustub1_append(text, " (GpuStub.toml does not say which headers the program uses: header = …)");
    } else {
        gpustub1_append(text, " (the program's headers are ");
        gpustub1_append_version(text, library->header);
        gpustub1_append(text, ")");
    }
}

/* The length of the place in what was tried: the directory of a file; 0: the loader's search. */
static size_t gpustub1_place_length(const char *what)
{
    return what[0] == '/' ? (size_t)(strrchr(what, '/') - what) : 0;
}

/* The places where no file of any name was, each once: names times places would fill a screen. */
static void gpustub1_append_places(struct gpustub1_text *text,
                                   const struct gpustub1_outcome *outcome)
{
    int count = 0;
    for (int i = 0; i < outcome->tries_len; i++) {
        const char *what = outcome->tries[i].what;
        size_t length = gpustub1_place_length(what);
        int seen = outcome->tries[i].why != NULL;
        for (int k = 0; k < i && !seen; k++)
            seen = !outcome->tries[k].why &&
                   gpustub1_place_length(outcome->tries[k].what) == length &&
                   !strncmp(outcome->tries[k].what, what, length);
        if (seen)
            continue;
        gpustub1_append(text, count++ ? ", " : "\n  looked in: ");
        if (length)
            gpustub1_append_bytes(text, what, length);
        else
            gpustub1_append(text, "the loader's search");
    }
}

static void gpustub1_append_text(struct gpustub1_text *text, const struct gpustub1_library *library,
                                 const struct gpustub1_outcome *outcome)
{
    gpustub1_append(text, library->id);
    if (outcome->handle) {
        gpustub1_append(text, ": ");
        gpustub1_append(text, outcome->path ? outcome->path : "(no path)");
        if (outcome->version) {
            gpustub1_append(text, outcome->exact ? ", version " : ", major ");
            if (outcome->exact)
                gpustub1_append_version(text, outcome->version);
            else
                gpustub1_append_number(text, outcome->major);
        }
        if (gpustub1_is_newer(library, outcome)) {
            gpustub1_append(text, ", newer than this gpustub knows (");
            gpustub1_append_number(text, library->newest);
            gpustub1_append(text, ")");
        }
        gpustub1_append(text, ", by ");
        gpustub1_append(text, outcome->found ? outcome->found : "search");
        gpustub1_append(text, ": ");
        gpustub1_append_number(text, GPUSTUB1_READ(&outcome->bound));
        gpustub1_append(text, " functions bound, ");
        gpustub1_append_number(text, GPUSTUB1_READ(&outcome->refused));
        gpustub1_append(text, " refused, ");
        gpustub1_append_number(text, GPUSTUB1_READ(&outcome->absent));
        gpustub1_append(text, " absent");
        if (GPUSTUB1_READ(&outcome->renamed))
            gpustub1_append_functions(text, "\n  bound: ", library, outcome, GPUSTUB1_RENAMED);
        if (GPUSTUB1_READ(&outcome->translated))
            gpustub1_append_functions(text, "\n  translated: ", library, outcome,
                                      GPUSTUB1_TRANSLATED);
        if (GPUSTUB1_READ(&outcome->refused)) {
            gpustub1_append_functions(text, "\n  refused: ", library, outcome, GPUSTUB1_NOT_MEANT);
            gpustub1_append_refusal(text, library, outcome);
        }
        if (GPUSTUB1_READ(&outcome->absent))
            gpustub1_append_functions(text, "\n  absent: ", library, outcome, GPUSTUB1_NOT_THERE);
    } else {
        gpustub1_append(text, ": unavailable: ");
        gpustub1_append(text, outcome->reason);
        gpustub1_append_places(text, outcome);
    }
    for (int i = 0; i < outcome->tries_len; i++) {
        const struct gpustub1_try *candidate = &outcome->tries[i];
        if (!candidate->why)
            continue;
        gpustub1_append(text, outcome->handle ? "\n  passed over " : "\n  tried ");
        gpustub1_append(text, candidate->what);
        gpustub1_append(text, ": ");
        gpustub1_append(text, candidate->why);
    }
    gpustub1_append(text, "\n");
}

static void gpustub1_json_field(struct gpustub1_text *text, const char *name, const char *value)
{
    gpustub1_append(text, ",\"");
    gpustub1_append(text, name);
    gpustub1_append(text, "\":");
    if (value)
        gpustub1_append_json(text, value);
    else
        gpustub1_append(text, "null");
}

static void gpustub1_json_number(struct gpustub1_text *text, const char *name, long value)
{
    gpustub1_append(text, ",\"");
    gpustub1_append(text, name);
    gpustub1_append(text, "\":");
    gpustub1_append_number(text, value);
}

static void gpustub1_append_json_report(struct gpustub1_text *text,
                                        const struct gpustub1_library *library,
                                        const struct gpustub1_outcome *outcome)
{
    gpustub1_append(text, "{\"format_version\":1");
    gpustub1_json_field(text, "library", library->id);
    gpustub1_append(text, outcome->handle ? ",\"available\":true" : ",\"available\":false");
    gpustub1_json_field(text, "path", outcome->path);
    gpustub1_json_field(text, "found", outcome->found);
    gpustub1_json_field(text, "reason", outcome->reason);
    gpustub1_json_number(text, "major", outcome->major);
    gpustub1_json_number(text, "version", outcome->exact ? outcome->version : 0);
    gpustub1_json_number(text, "newest_known", library->newest);
    gpustub1_json_number(text, "bound", GPUSTUB1_READ(&outcome->bound));
    gpustub1_json_number(text, "renamed", GPUSTUB1_READ(&outcome->renamed));
    gpustub1_json_number(text, "translated", GPUSTUB1_READ(&outcome->translated));
    gpustub1_json_number(text, "refused", GPUSTUB1_READ(&outcome->refused));
    gpustub1_json_number(text, "absent", GPUSTUB1_READ(&outcome->absent));
    gpustub1_append(text, ",\"tried\":[");
    for (int i = 0; i < outcome->tries_len; i++) {
        gpustub1_append(text, i ? ",{\"what\":" : "{\"what\":");
        gpustub1_append_json(text, outcome->tries[i].what);
        gpustub1_append(text, ",\"why\":");
        gpustub1_append_json(text, outcome->tries[i].why ? outcome->tries[i].why : "no such file");
        gpustub1_append(text, "}");
    }
    gpustub1_append(text, "]}\n");
}

/* The report as text, made when it is first asked for; NULL if memory is short. */
const char *gpustub1_report(int index, struct gpustub1_outcome *outcome)
{
    char *theirs = GPUSTUB1_LOAD(&outcome->report);
    struct gpustub1_text text = {NULL, 0, 0};
    if (theirs)
        return theirs;
    gpustub1_append_text(&text, gpustub1_library(index), outcome);
    if (!text.data || __atomic_compare_exchange_n(&outcome->report, &theirs, text.data, 0,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return text.data;
    free(text.data);
    return theirs;
}

void gpustub1_write(const char *data, size_t length)
{
    while (length) {
        ssize_t written = write(STDERR_FILENO, data, length);
        if (written <= 0 && errno != EINTR)
            return;
        if (written > 0) {
            data += written;
            length -= (size_t)written;
        }
    }
}

/* One report per library, in one write, if GPUSTUB_LOG asks for it. */
void gpustub1_log(int index, struct gpustub1_outcome *outcome)
{
    const char *wanted = gpustub1_env("GPUSTUB_LOG");
    struct gpustub1_text text = {NULL, 0, 0};
    if (!wanted)
        return;
    if (!strcmp(wanted, "json")) {
        gpustub1_append_json_report(&text, gpustub1_library(index), outcome);
    } else if (!strcmp(wanted, "1") || !strcmp(wanted, "text")) {
        gpustub1_append(&text, "gpustub: ");
        gpustub1_append_text(&text, gpustub1_library(index), outcome);
    }
    if (text.data)
        gpustub1_write(text.data, text.length);
    free(text.data);
}
