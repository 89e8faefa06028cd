/* call.c: slow path of a call without a bound function: binds the library, or returns in its place. */
#include "internal.h"

#include <string.h>

/* ---- results in the library's place ------------------------------------------------------------ */

GENERAL_REGISTERS
ALWAYS_INLINE int32_t status_code(const struct library *library, const struct spec *spec,
                                  enum reason reason)
{
    return reason == LIBRARY_MISSING && spec->has_status_if_missing ? spec->status_if_missing
                                                                    : library->status[reason - 1];
}

/* Copies a value to an address of the program, which need not be aligned. No call of memcpy: it might be
 * bound lazily, by code that uses vector registers. */
GENERAL_REGISTERS
static void write_bytes(uintptr_t target, const void *value, size_t size)
{
    const unsigned char *from = value;
    volatile unsigned char *to;
    __builtin_memcpy(&to, &target, sizeof to);
    while (size--)
        *to++ = value ? *from++ : 0;
}

/* Returns the name of a status code, or its text: number and name. For the code of a missing library the
 * text says so while it is missing. NULL: the headers have no such code. */
GENERAL_REGISTERS
static const char *describe_error(const struct library *library, int32_t code, int as_text,
                                  enum reason reason)
{
    const char *names = library->errors;
    if (!names) {
        __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the assembly has read the slot */
        names = LOAD_RELAXED(&library->state->errors);
    }
    const volatile char *errors = names; /* volatile: no compiler makes calls of the loops */
    if (as_text && reason == LIBRARY_MISSING && code == library->status[LIBRARY_MISSING - 1])
        return library->string;
    for (size_t start = 0, i = 0; names && errors[start]; start = ++i) {
        int negative = errors[start] == '-';
        int32_t number = 0;
        for (i = start + (size_t)negative; errors[i] != ':'; i++)
            number = 10 * number + (errors[i] - '0');
        if ((negative ? -number : number) == code)
            return names + (as_text ? start : i + 2);
        while (errors[i])
            i++;
    }
    return NULL;
}

GENERAL_REGISTERS
static void write_out_param(const struct library *library, const struct out_param *out,
                            int32_t code, enum reason reason, struct frame *frame)
{
    const char *description;
    uintptr_t pointer = *argument(frame, out->arg);
    if (!pointer)
        return;
    switch (out->kind) {
    case OUT_ZERO: write_bytes(pointer, NULL, out->size); break;
    case OUT_STATUS: write_bytes(pointer, &code, sizeof code); break;
    case OUT_STRING: write_bytes(pointer, &library->string, sizeof library->string); break;
    case OUT_ERROR_NAME:
    case OUT_ERROR_STRING:
        description = describe_error(library, (int32_t)*argument(frame, 0), out->kind == OUT_ERROR_STRING,
                                     reason);
        write_bytes(pointer, &description, sizeof description);
        break;
    }
}

/* Writes the out-parameters in the library's place. */
GENERAL_REGISTERS
static void write_out_params(const struct library *library, const struct spec *spec, int32_t code,
                             enum reason reason, struct frame *frame)
{
    for (int i = 0; i < spec->out_params_len; i++)
        write_out_param(library, &library->out_params[spec->out_params + i], code, reason, frame);
}

/* Returns the result of a function that returns a struct or describes a status code. */
GENERAL_REGISTERS
static uintptr_t composed_result(const struct library *library, const struct spec *spec,
                                 enum reason reason, struct frame *frame)
{
    const char *description;
    if (spec->returns == RETURNS_ZEROED_STRUCT) {
#ifdef RESULT_REGISTER
        uintptr_t pointer = frame->indirect;
#else
        uintptr_t pointer = *argument(frame, 0);
        frame->indirect = 1;
#endif
        if (pointer)
            write_bytes(pointer, NULL, (size_t)spec->value);
        return pointer;
    }
    description = describe_error(library, (int32_t)*argument(frame, 0),
                                 spec->returns == RETURNS_ERROR_STRING, reason);
    if (spec->returns == RETURNS_UNKNOWN_ERROR)
        return description ? 0 : (uintptr_t)(intptr_t)spec->value;
    return (uintptr_t)(description ? description : "unknown error code");
}

/* Writes out-parameters and the result in the library's place. */
GENERAL_REGISTERS
ALWAYS_INLINE void answer(const struct library *library, const struct spec *spec, int32_t code,
                          enum reason reason, struct frame *frame)
{
    int returns = spec->returns;
    if (spec->out_params_len)
        write_out_params(library, spec, code, reason, frame);
    if (returns == RETURNS_STATUS)
        frame->result = (uintptr_t)(intptr_t)code;
    else if (returns == RETURNS_VALUE)
        frame->result = (uintptr_t)(intptr_t)spec->value;
    else if (returns == RETURNS_STRING)
        frame->result = (uintptr_t)library->string;
    else if (returns == RETURNS_NULL || returns == RETURNS_VOID)
        frame->result = 0;
    else
        frame->result = composed_result(library, spec, reason, frame);
}

/* Most builds do not optimise this file. Hence the few variables, and no calls: the budget of a call that is
 * answered is 100 instructions. */
GENERAL_REGISTERS void gpustub1_answer(const struct library *library, const struct spec *spec,
                                       enum reason reason, struct frame *frame)
{
    if (LOAD_ACQUIRE(&gpustub1_exiting))
        reason = UNLOADING;
    else if (spec->hook && (answer_hook(NULL, spec, frame) || /* queues nothing any more */
                            answer_hook_after_load(spec, reason != FUNCTION_MISSING, frame)))
        return;
    answer(library, spec, status_code(library, spec, reason), reason, frame);
}

/* ---- the slow path ------------------------------------------------------------------------------ */

/* Returns the jump target for the frame, or NULL and the reason. */
static void *call_target(const struct slot *slot, struct frame *frame, enum reason *reason)
{
    const struct library *library = frame->part->library;
    const struct result *result = settle_library(library->state);
    void *target = LOAD_ACQUIRE(&slot->target);
    struct binding binding;
    *reason = LIBRARY_MISSING;
    if (target != slot_thunk(slot))
        return target;
    if (slot_reason(slot)) {
        *reason = slot_reason(slot);
        return NULL;
    }
    /* Unbound slots: those of hooks, all slots while tracing, and slots that a linker option moved out of
     * the range that binding scans. */
    if (!result || !result->handle)
        return NULL;
    target = resolve_slot(slot, library, result, &binding);
    *reason = binding.reason;
    if (!target)
        clear_errors();
    return target && binding.entry ? adapt(slot, &binding) : target;
}

void *gpustub1_enter(struct slot *slot, struct frame *frame)
{
    const struct library *library = frame->part->library;
    const struct spec *spec = slot_spec(slot, library);
    enum reason reason = UNLOADING;
    const struct saved_errors errors = save_errors(); /* a first call preserves them as later calls do */
    enum trace_mode mode = trace_mode();
    int forced = 0, answered = 0;
    int32_t code = 0;
    void *target = NULL;
    frame->observe = NULL;
    note_errors(slot, library, spec);
    register_finish();
    if (mode != TRACE_OFF)
        forced = observe_call(slot, frame, &code);
    if (!forced && !is_exiting()) {
        answered = spec->hook && answer_hook(slot, spec, frame);
        if (!answered) {
            target = call_target(slot, frame, &reason);
            answered = spec->hook &&
                       answer_hook_after_load(spec, target || reason != FUNCTION_MISSING, frame);
        }
    }
    if (answered)
        target = NULL;
    else if (!target)
        answer(library, spec, forced ? code : status_code(library, spec, reason), reason, frame);
    /* the rule's code replaces the fixed value */
    if (forced && (spec->returns == RETURNS_VALUE || spec->returns == RETURNS_UNKNOWN_ERROR))
        frame->result = (uintptr_t)(intptr_t)code;
    if (!target) {
        if (mode == TRACE_CALLS)
            trace_answer(slot, spec, frame->result);
    } else {
        if (spec->hook == HOOK_UPDATE && spec->hook_args)
            wrap_callback(argument(frame, spec->hook_args - 1));
        frame->observe = observe_result(slot, spec);
    }
    restore_errors(errors);
    return target;
}
