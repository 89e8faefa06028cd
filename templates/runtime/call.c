/* call.c: slow path of a call without a bound function: binds the library, or returns in its place. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* ---- which function of the library ----------------------------------------------------------- */

/* Replaces the binding's name, the function's own, by what the ABI table has for this library. Returns
 * whether it has any function. In an unknown version there is none, unless the function has one ABI in all. */
static int apply_abi_table(struct binding *binding, const struct library *library,
                            const struct spec *spec, const struct result *result)
{
    /* If only the major is known, an entry must hold for all of its versions. */
    int32_t from = result->version;
    int32_t below = result->exact ? from + 10 : result->major * 1000 + 1000;
    const struct abi_entry *entry = &library->abi_entries[spec->abi_entries];
    if (below > MAX_ABI_VERSION) {
        below = MAX_ABI_VERSION;
        from = from < below ? from : below - 1;
    }
    int holds = from != 0;
    if (spec->abi_bounded)
        holds = holds && from >= library->abi_from && below <= library->abi_below;
    for (int i = 0; i < spec->abi_entries_len && holds; i++, entry++) {
        if (entry->from >= below || entry->below <= from)
            continue;
        holds = entry->from <= from && below <= entry->below;
        const char *text = holds && entry->text ? library->abi_texts + entry->text : NULL;
        if (entry->kind == ABI_REFUSED || entry->kind == ABI_MISSING) {
            binding->explanation = text;
            return entry->kind == ABI_MISSING;
        }
        binding->name = text;
        if (entry->kind != ABI_BOUND)
            binding->entry = entry;
        return holds;
    }
    return holds || (!from && !spec->abi_bounded);
}

/* Resolves a name in a library. musl has no dlvsym, and always returns the default version. */
static void *lookup_symbol(void *handle, const struct slot *slot, const char *name,
                           const char *symbol_version)
{
    void *target;
#if defined(__GLIBC__) || defined(__FreeBSD__)
    if (symbol_version)
        target = dlvsym(handle, name, symbol_version);
    else
#else
    (void)symbol_version;
#endif
        target = dlsym(handle, name);
    return target && !is_own_trampoline(slot, target) ? target : NULL;
}

/* Returns the function of a loaded library for a slot, and describes its binding; NULL if there is none. */
void *resolve_slot(const struct slot *slot, const struct library *library,
                   const struct result *result, struct binding *binding)
{
    const struct spec *spec = slot_spec(slot, library);
    const char *own = slot_name(slot);
    void *target;
    *binding = (struct binding){.name = own, .reason = FUNCTION_MISSING};
    if (!apply_abi_table(binding, library, spec, result)) {
        binding->reason = FUNCTION_REFUSED;
        return NULL;
    }
    target = lookup_symbol(result->handle, slot, binding->name,
                           binding->name == own ? spec->symbol_version : NULL);
    if (!target && spec->fallback_symbol) {
        *binding = (struct binding){.name = spec->fallback_symbol, .reason = FUNCTION_MISSING};
        target = lookup_symbol(result->handle, slot, spec->fallback_symbol, NULL);
    }
    binding->targets[0] = target;
    if (target && binding->entry && binding->entry->kind == ABI_ADAPTED) {
        const struct adapter *adapter = slot_adapter(slot, binding->entry);
        for (int i = 0; i < MAX_TARGETS - 1 && adapter->targets[i]; i++) {
            binding->targets[i + 1] =
                lookup_symbol(result->handle, slot, adapter->targets[i], NULL);
            if (!binding->targets[i + 1]) {
                binding->lacking = adapter->targets[i];
                binding->reason = FUNCTION_REFUSED;
                return NULL;
            }
        }
    }
    return target;
}

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
    const volatile char *errors = library->errors; /* volatile: no compiler makes calls of the loops */
    if (as_text && reason == LIBRARY_MISSING && code == library->status[LIBRARY_MISSING - 1])
        return library->string;
    for (size_t start = 0, i = 0; errors[start]; start = ++i) {
        int negative = errors[start] == '-';
        int32_t number = 0;
        for (i = start + (size_t)negative; errors[i] != ':'; i++)
            number = 10 * number + (errors[i] - '0');
        if ((negative ? -number : number) == code)
            return library->errors + (as_text ? start : i + 2);
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
#ifdef __aarch64__
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
        (void)dlerror();
    return target && binding.entry ? adapt(slot, &binding) : target;
}

void *gpustub1_enter(struct slot *slot, struct frame *frame)
{
    const struct library *library = frame->part->library;
    const struct spec *spec = slot_spec(slot, library);
    enum reason reason = UNLOADING;
    int error = errno; /* a first call preserves errno as later calls do */
    enum trace_mode mode = trace_mode();
    int forced = 0, answered = 0;
    int32_t code = 0;
    void *target = NULL;
    frame->observe = NULL;
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
        frame->observe = observe_result(slot, spec);
    }
    errno = error;
    return target;
}
