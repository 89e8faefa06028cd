/* trace.c: GPUSTUB_TRACE and GPUSTUB_FAIL. If either is set, no slot is bound, so that every call
 * passes through gpustub1_enter; otherwise calls have no extra cost. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int decided_trace_mode;    /* atomic */
static const char *failure_rules; /* value of GPUSTUB_FAIL at the first call, or NULL */

/* ---- GPUSTUB_FAIL: name[:n]=code, separated by commas ------------------------------------------ */

struct failure_rule {
    const char *name;
    size_t name_length;
    unsigned long nth; /* 0: every call */
    int32_t code;
};

/* Reads a number of 32 bits, signed or not. Returns 0 if there is none. */
static int parse_code(char **text, int32_t *code)
{
    const char *digits = *text + (**text == '-');
    errno = 0;
    long long value = strtoll(*text, text, 10);
    *code = (int32_t)value;
    return *digits >= '0' && *digits <= '9' && !errno && value >= INT32_MIN && value <= UINT32_MAX;
}

/* Reads the next rule; returns 0 at the end or at a malformed rule. */
static int parse_failure_rule(const char **text, struct failure_rule *rule)
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
    if (rule->nth > UINT32_MAX || *end++ != '=' || !parse_code(&end, &rule->code) ||
        (*end != ',' && *end != ' ' && *end))
        return 0;
    *text = end;
    return 1;
}

/* Returns whether this image has a stub of the rule's function: one that the program calls. */
static int names_stub(const struct failure_rule *rule)
{
    FOR_EACH_PART (part, NULL)
        for (const struct slot *slot = part->first; slot < part->last; slot++)
            if (strlen(slot_name(slot)) == rule->name_length &&
                !memcmp(slot_name(slot), rule->name, rule->name_length))
                return 1;
    return 0;
}

static void check_failure_rules(void)
{
    const char *text = failure_rules;
    struct failure_rule rule;
    while (parse_failure_rule(&text, &rule)) {
        struct text name = {NULL, 0, 0};
        if (names_stub(&rule))
            continue;
        append_bytes(&name, rule.name, rule.name_length);
        if (name.data)
            report_setting("GPUSTUB_FAIL: this program or library calls no function of that name by a stub: ",
                           name.data);
        free(name.data);
    }
    if (*text)
        report_setting("GPUSTUB_FAIL is name[:n]=code, separated by commas, with codes of 32 bits; "
                       "ignored from here on: ",
                       text);
}

/* ---- mode ---------------------------------------------------------------------------------------- */

/* Returns the trace mode, which the first call determines before any slot is bound. */
enum trace_mode trace_mode(void)
{
    int mode = LOAD_ACQUIRE(&decided_trace_mode);
    if (mode != TRACE_UNDECIDED)
        return (enum trace_mode)mode;
    const char *trace = read_env("GPUSTUB_TRACE"), *fail = read_env("GPUSTUB_FAIL");
    int is_traced = trace && !strcmp(trace, "1");
    int decided = is_traced ? TRACE_CALLS : fail ? TRACE_FAILING : TRACE_OFF;
    char *copy = fail ? copy_string(fail) : NULL;
    const char *none = NULL;
    /* Stores the rules before the mode: a thread that sees the mode sees the rules. */
    if (copy && !__atomic_compare_exchange_n(&failure_rules, &none, copy, 0, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE)) {
        free(copy);
        copy = NULL;
    }
    if (__atomic_compare_exchange_n(&decided_trace_mode, &mode, decided, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        if (failure_rules)
            check_failure_rules();
        if (trace && !is_traced && strcmp(trace, "0"))
            report_setting("GPUSTUB_TRACE is 1 or 0; ignored: ", trace);
        mode = decided;
    }
    return (enum trace_mode)mode;
}

static int is_tracing(void)
{
    return LOAD_ACQUIRE(&decided_trace_mode) == TRACE_CALLS;
}

/* ---- lines ----------------------------------------------------------------------------------------- */

static void append_hex(struct text *text, uintptr_t value)
{
    char digits[2 + 2 * sizeof value + 1], *start = digits + sizeof digits - 1;
    *start = 0;
    do
        *--start = "0123456789abcdef"[value % 16];
    while (value /= 16);
    *--start = 'x';
    *--start = '0';
    append(text, start);
}

static void start_line(struct text *line, const struct slot *slot)
{
    append(line, "gpustub: ");
    append_number(line, thread_number());
    append(line, " ");
    append(line, slot_name(slot));
}

static void end_line(struct text *line)
{
    append(line, "\n");
    if (line->data)
        write_stderr(line->data, line->length);
    free(line->data);
}

static void trace_result(const struct slot *slot, const struct spec *spec, uintptr_t result)
{
    struct text line = {NULL, 0, 0};
    start_line(&line, slot);
    append(&line, " = ");
    if (spec->returns == RETURNS_STATUS || spec->returns == RETURNS_VALUE ||
        spec->returns == RETURNS_UNKNOWN_ERROR)
        append_number(&line, (int32_t)(uint32_t)result);
    else
        append_hex(&line, result);
    end_line(&line);
}

/* ---- one call -------------------------------------------------------------------------------------- */

/* Increments and returns the number of calls of a function. */
static uint32_t count_call(const struct library_state *state, const struct slot *slot)
{
    struct part *part = next_part(state, NULL);
    while (part && (slot < part->first || slot >= part->last))
        part = next_part(state, part);
    if (!part)
        return 0;
    uint32_t *counts = LOAD_ACQUIRE(&part->counts);
    if (!counts) {
        uint32_t *mine = calloc((size_t)(part->last - part->first), sizeof *mine);
        if (mine && !__atomic_compare_exchange_n(&part->counts, &counts, mine, 0, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE))
            free(mine);
        else
            counts = mine;
    }
    return counts ? __atomic_add_fetch(&counts[slot - part->first], 1, __ATOMIC_RELAXED) : 0;
}

/* Number of words to print as arguments: the registers, and where these are few, words of the stack, whether they
 * are arguments or not. Words on the page of the first one can be read. */
static int traced_arguments(const struct frame *frame)
{
    enum { MIN_TRACED = 6, SMALLEST_PAGE = 4096 };
    size_t readable = (SMALLEST_PAGE - (uintptr_t)frame->stack % SMALLEST_PAGE) / sizeof(uintptr_t);
    int count = REGISTER_ARGS;
    while (count < MIN_TRACED && readable-- > 0)
        count++;
    return count;
}

/* Counts and traces a call. Returns whether a rule makes it fail, and the code. */
int observe_call(const struct slot *slot, struct frame *frame, int32_t *code)
{
    const char *name = slot_name(slot), *text = failure_rules;
    uint32_t count = count_call(frame->part->library->state, slot);
    struct failure_rule rule;
    if (is_tracing()) {
        struct text line = {NULL, 0, 0};
        start_line(&line, slot);
        int arguments = traced_arguments(frame);
        append(&line, "(");
        for (int i = 0; i < arguments; i++) {
            append(&line, i ? ", " : "");
            append_hex(&line, *argument(frame, i));
        }
        append(&line, ")");
        end_line(&line);
    }
    while (text && parse_failure_rule(&text, &rule))
        if (strlen(name) == rule.name_length && !memcmp(name, rule.name, rule.name_length) &&
            (!rule.nth || rule.nth == count)) {
            *code = rule.code;
            return 1;
        }
    return 0;
}

/* Traces the result of a call that did not reach the library. */
void trace_answer(const struct slot *slot, const struct spec *spec, uintptr_t result)
{
    if (spec->returns != RETURNS_VOID && spec->returns != RETURNS_ZEROED_STRUCT)
        trace_result(slot, spec, result);
}

/* Returns the record of a call whose result is reported, or that may change data; NULL if the call is neither, or
 * memory is short. */
struct observed_call *observe_result(const struct slot *slot, const struct spec *spec)
{
    struct observed_call *call = NULL;
    int is_reported =
        is_tracing() && spec->returns != RETURNS_VOID && spec->returns != RETURNS_ZEROED_STRUCT;
    if (is_reported || spec->hook == HOOK_UPDATE)
        call = calloc(1, sizeof *call);
    if (call) {
        call->slot = slot;
        call->spec = spec;
        call->is_reported = (char)is_reported;
    }
    return call;
}

void gpustub1_returned(struct observed_call *call, uintptr_t result)
{
    const struct saved_errors errors = save_errors();
    if (call->is_reported)
        trace_result(call->slot, call->spec, result);
    if (call->spec->hook == HOOK_UPDATE)
        update_data();
    free(call);
    restore_errors(errors);
}

/* Prints the number of calls of each function, at exit. */
void report_call_counts(void)
{
    struct text text = {NULL, 0, 0};
    if (!is_tracing())
        return;
    FOR_EACH_PART (part, NULL) {
        const uint32_t *counts = LOAD_ACQUIRE(&part->counts);
        for (const struct slot *slot = part->first; counts && slot < part->last; slot++)
            if (counts[slot - part->first]) {
                append(&text, "gpustub: called ");
                append_number(&text, counts[slot - part->first]);
                append(&text, counts[slot - part->first] == 1 ? " time " : " times ");
                append(&text, slot_name(slot));
                append(&text, "\n");
            }
    }
    if (text.data)
        write_stderr(text.data, text.length);
    free(text.data);
}

void free_failure_rules(void)
{
    free((char *)__atomic_exchange_n(&failure_rules, NULL, __ATOMIC_ACQ_REL));
}
