/* trace.c: GPUSTUB_TRACE and GPUSTUB_FAIL. With either set no slot is bound, so that every call
 * passes through gpustub1_enter; with neither, calls are what they always are. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int gpustub1_mode;            /* atomic */
static const char *gpustub1_failing; /* GPUSTUB_FAIL as it was at the first call, or NULL */

/* ---- GPUSTUB_FAIL: name[:n]=code, separated by commas ------------------------------------------ */

struct gpustub1_failure {
    const char *name;
    size_t name_length;
    unsigned long nth; /* 0: every call */
    long code;
};

/* Reads the next rule; 0 at the end or at what is no rule. */
static int gpustub1_next_failure(const char **text, struct gpustub1_failure *rule)
{
    char *end;
    while (**text == ',' || **text == ' ')
        ++*text;
    rule->name = *text;
    rule->name_length = strcspn(*text, ":=, ");
    rule->nth = 0;
    end = (char *)*text + rule->name_length;
    if (!rule->name_length)
        return 0;
    if (*end == ':') {
        if (end[1] < '1' || end[1] > '9')
            return 0;
        rule->nth = strtoul(end + 1, &end, 10);
    }
    if (*end != '=' || ((end[1] < '0' || end[1] > '9') && end[1] != '-'))
        return 0;
    rule->code = strtol(end + 1, &end, 10);
    *text = end;
    return *end == ',' || *end == ' ' || !*end;
}

static void gpustub1_check_failures(void)
{
    const char *text = gpustub1_failing;
    struct gpustub1_failure rule;
    struct gpustub1_text line = {NULL, 0, 0};
    while (gpustub1_next_failure(&text, &rule)) {
    }
    if (!*text)
        return;
    gpustub1_append(&line, "gpustub: GPUSTUB_FAIL is name[:n]=code, separated by commas; ignored from here on: ");
    gpustub1_append(&line, text);
    gpustub1_append(&line, "\n");
    gpustub1_write(line.data, line.length);
    free(line.data);
}

/* ---- deciding ------------------------------------------------------------------------------------ */

/* How calls are watched: decided at the first one, before anything is bound. */
enum gpustub1_watching gpustub1_watching(void)
{
    int mode = GPUSTUB1_LOAD(&gpustub1_mode);
    if (mode != GPUSTUB1_UNDECIDED)
        return (enum gpustub1_watching)mode;
    const char *trace = gpustub1_env("GPUSTUB_TRACE"), *fail = gpustub1_env("GPUSTUB_FAIL");
    int decided = trace && strcmp(trace, "0") ? GPUSTUB1_TRACING
                  : fail                       ? GPUSTUB1_FAILING
                                               : GPUSTUB1_OFF;
    char *copy = fail ? gpustub1_copy(fail) : NULL;
    const char *none = NULL;
    /* The text before the mode: who sees the mode sees the text. */
    if (copy && !__atomic_compare_exchange_n(&gpustub1_failing, &none, copy, 0, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE)) {
        free(copy);
        copy = NULL;
    }
    if (__atomic_compare_exchange_n(&gpustub1_mode, &mode, decided, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        if (gpustub1_failing)
            gpustub1_check_failures();
        mode = decided;
    }
    return (enum gpustub1_watching)mode;
}

static int gpustub1_is_tracing(void)
{
    return GPUSTUB1_LOAD(&gpustub1_mode) == GPUSTUB1_TRACING;
}

/* ---- lines ----------------------------------------------------------------------------------------- */

static void gpustub1_append_hex(struct gpustub1_text *text, uintptr_t value)
{
    char digits[2 + 2 * sizeof value + 1], *start = digits + sizeof digits - 1;
    *start = 0;
    do
        *--start = "0123456789abcdef"[value % 16];
    while (value /= 16);
    *--start = 'x';
    *--start = '0';
    gpustub1_append(text, start);
}

static void gpustub1_start_line(struct gpustub1_text *line, const struct gpustub1_slot *slot)
{
    gpustub1_append(line, "gpustub: ");
#ifdef SYS_gettid
    gpustub1_append_number(line, (long)syscall(SYS_gettid));
#else
    gpustub1_append_number(line, (long)getpid());
#endif
    gpustub1_append(line, " ");
    gpustub1_append(line, gpustub1_slot_name(slot));
}

static void gpustub1_end_line(struct gpustub1_text *line)
{
    gpustub1_append(line, "\n");
    if (line->data)
        gpustub1_write(line->data, line->length);
    free(line->data);
}

static void gpustub1_trace_result(const struct gpustub1_slot *slot, const struct gpustub1_spec *spec,
                                  uintptr_t result)
{
    struct gpustub1_text line = {NULL, 0, 0};
    gpustub1_start_line(&line, slot);
    gpustub1_append(&line, " = ");
    if (spec->returns == GPUSTUB1_STATUS || spec->returns == GPUSTUB1_VALUE)
        gpustub1_append_number(&line, (int32_t)(uint32_t)result);
    else
        gpustub1_append_hex(&line, result);
    gpustub1_end_line(&line);
}

/* ---- one call -------------------------------------------------------------------------------------- */

/* Adds a call to its function's count, which it returns. */
static uint32_t gpustub1_count(int index, const struct gpustub1_slot *slot)
{
    const struct gpustub1_library *library = gpustub1_library(index);
    uint32_t **place = &gpustub1_state(index)->counts, *counts = GPUSTUB1_LOAD(place);
    if (slot < library->first || slot >= library->last)
        return 0;
    if (!counts) {
        uint32_t *mine = calloc((size_t)(library->last - library->first), sizeof *mine);
        if (mine && !__atomic_compare_exchange_n(place, &counts, mine, 0, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE))
            free(mine);
        else
            counts = mine;
    }
    return counts ? __atomic_add_fetch(&counts[slot - library->first], 1, __ATOMIC_RELAXED) : 0;
}

/* Notes a call; whether it is to fail, and with which code. */
int gpustub1_watch(int index, const struct gpustub1_slot *slot, const struct gpustub1_frame *frame,
                   int32_t *code)
{
    const char *name = gpustub1_slot_name(slot), *text = gpustub1_failing;
    uint32_t count = gpustub1_count(index, slot);
    struct gpustub1_failure rule;
    if (gpustub1_is_tracing()) {
        struct gpustub1_text line = {NULL, 0, 0};
        gpustub1_start_line(&line, slot);
        for (int i = 0; i < GPUSTUB1_REGS; i++) {
            gpustub1_append(&line, i ? ", " : "(");
            gpustub1_append_hex(&line, frame->reg[i]);
        }
        gpustub1_append(&line, ")");
        gpustub1_end_line(&line);
    }
    while (text && gpustub1_next_failure(&text, &rule))
        if (strlen(name) == rule.name_length && !memcmp(name, rule.name, rule.name_length) &&
            (!rule.nth || rule.nth == count)) {
            *code = (int32_t)rule.code;
            return 1;
        }
    return 0;
}

/* A call that was answered in the library's place. */
void gpustub1_answered(const struct gpustub1_slot *slot, const struct gpustub1_spec *spec,
                       uintptr_t result)
{
    if (spec->returns != GPUSTUB1_VOID && spec->returns != GPUSTUB1_STRUCT)
        gpustub1_trace_result(slot, spec, result);
}

void gpustub1_returned(const struct gpustub1_frame *frame, uintptr_t result)
{
    const struct gpustub1_slot *slot;
    int error = errno;
    memcpy(&slot, &frame->observe, sizeof slot);
    const struct gpustub1_library *library = gpustub1_library(gpustub1_slot_info(slot)->library);
    gpustub1_trace_result(slot, gpustub1_slot_spec(slot, library), result);
    errno = error;
}

/* At exit: how often each function was called. */
void gpustub1_count_calls(void)
{
    struct gpustub1_text text = {NULL, 0, 0};
    if (!gpustub1_is_tracing())
        return;
    for (int i = 0; i < gpustub1_library_count(); i++) {
        const struct gpustub1_library *library = gpustub1_library(i);
        const uint32_t *counts = GPUSTUB1_LOAD(&gpustub1_state(i)->counts);
        for (const struct gpustub1_slot *slot = library->first; counts && slot < library->last; slot++)
            if (counts[slot - library->first]) {
                gpustub1_append(&text, "gpustub: called ");
                gpustub1_append_number(&text, counts[slot - library->first]);
                gpustub1_append(&text, counts[slot - library->first] == 1 ? " time " : " times ");
                gpustub1_append(&text, gpustub1_slot_name(slot));
                gpustub1_append(&text, "\n");
            }
    }
    if (text.data)
        gpustub1_write(text.data, text.length);
    free(text.data);
}
