/* call.c: slow path of a call without a bound function: binds the library, or returns in its place. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- which function of the library ----------------------------------------------------------- */

/* Replaces the binding's name, the function's own, by the name that has the ABI of the program's headers
 * in this library; NULL if none has, or if the version is unknown. */
static void apply_abi_table(struct binding *binding, const struct library *library,
                            const struct spec *spec, const struct result *result)
{
    /* If only the major is known, an entry must hold for all of its versions. */
    int32_t from = result->version;
    int32_t below = result->exact ? from + 10 : result->major * 1000 + 1000;
    if (spec->abi_entries_len && !from)
        binding->name = NULL;
    for (int i = 0; i < spec->abi_entries_len && from; i++) {
        const struct abi_entry *entry = &library->abi_entries[spec->abi_entries + i];
        if (entry->from < below && entry->below > from) {
            int holds = entry->from <= from && below <= entry->below;
            binding->name = holds ? entry->name : NULL;
            binding->null_argument = i < spec->adapted ? spec->null_argument : -1;
            return;
        }
    }
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
    /* An exported stub may find itself: its trampoline directly precedes its thunk. */
    return (uintptr_t)slot_thunk(slot) - (uintptr_t)target < 32 ? NULL : target;
}

/* Returns the function of a loaded library for a slot, and describes its binding; NULL if there is none. */
void *resolve_slot(const struct slot *slot, const struct library *library,
                   const struct result *result, struct binding *binding)
{
    const struct spec *spec = slot_spec(slot, library);
    const char *own = slot_name(slot);
    void *target;
    *binding = (struct binding){own, -1, FUNCTION_MISSING};
    apply_abi_table(binding, library, spec, result);
    if (!binding->name) {
        binding->reason = FUNCTION_REFUSED;
        return NULL;
    }
    target = lookup_symbol(result->handle, slot, binding->name,
                           binding->name == own ? spec->symbol_version : NULL);
    if (!target && spec->fallback_symbol) {
        *binding = (struct binding){spec->fallback_symbol, -1, FUNCTION_MISSING};
        target = lookup_symbol(result->handle, slot, spec->fallback_symbol, NULL);
    }
    return target;
}

/* ---- results in the library's place ------------------------------------------------------------ */

static int32_t status_code(const struct library *library, const struct spec *spec,
                           enum reason reason)
{
    switch (reason) {
    case FUNCTION_MISSING: return library->missing;
    case FUNCTION_REFUSED: return library->refused;
    case UNLOADING: return library->unloading;
    default:
        return spec->has_status_if_missing ? spec->status_if_missing : library->library_missing;
    }
}

/* Returns the name of a status code, or its text: number and name. For the code of a missing library the
 * text says so while it is missing. NULL: the headers have no such code. */
static const char *describe_error(const struct library *library, int32_t code, int as_text,
                                  enum reason reason)
{
    if (as_text && reason == LIBRARY_MISSING && code == library->library_missing)
        return library->string;
    for (const char *text = library->errors; *text; text += strlen(text) + 1)
        if (atoi(text) == code)
            return as_text ? text : strchr(text, ' ') + 1;
    return NULL;
}

static uintptr_t returned_error(const char *description)
{
    return (uintptr_t)(description ? description : "unknown error code");
}

static void write_out_param(const struct library *library, const struct out_param *out,
                            int32_t code, enum reason reason, const struct frame *frame)
{
    int as_text = out->kind == OUT_ERROR_TEXT;
    const char *description;
    uintptr_t argument =
        out->arg < REGISTER_ARGS ? frame->reg[out->arg] : frame->stack[out->arg - REGISTER_ARGS];
    void *target = to_pointer(argument);
    if (!target)
        return;
    switch (out->kind) {
    case OUT_ZERO: memset(target, 0, out->size); break;
    case OUT_STATUS: memcpy(target, &code, sizeof code); break;
    case OUT_STRING: memcpy(target, &library->string, sizeof library->string); break;
    case OUT_ERROR_NAME:
    case OUT_ERROR_TEXT:
        description = describe_error(library, (int32_t)frame->reg[0], as_text, reason);
        memcpy(target, &description, sizeof description);
        break;
    }
}

/* Writes out parameters and the result in the library's place. Async-signal-safe. */
static void answer(const struct library *library, const struct spec *spec, int32_t code,
                   enum reason reason, struct frame *frame)
{
    int32_t asked = (int32_t)frame->reg[0];
    for (int i = 0; i < spec->out_params_len; i++)
        write_out_param(library, &library->out_params[spec->out_params + i], code, reason, frame);
    switch (spec->returns) {
    case RETURNS_STATUS: frame->result = (uintptr_t)(intptr_t)code; break;
    case RETURNS_VALUE: frame->result = (uintptr_t)(intptr_t)spec->value; break;
    case RETURNS_STRING: frame->result = (uintptr_t)library->string; break;
    case RETURNS_ZEROED_STRUCT:
        if (frame->indirect)
            memset(to_pointer(frame->indirect), 0, (size_t)spec->value);
        frame->result = frame->indirect;
        break;
    case RETURNS_ERROR_NAME:
        frame->result = returned_error(describe_error(library, asked, 0, reason));
        break;
    case RETURNS_ERROR_TEXT:
        frame->result = returned_error(describe_error(library, asked, 1, reason));
        break;
    case RETURNS_UNKNOWN_ERROR:
        frame->result = describe_error(library, asked, 0, reason) ? 0 : (uintptr_t)(intptr_t)spec->value;
        break;
    default: frame->result = 0;
    }
}

/* ---- the slow path ------------------------------------------------------------------------------ */

/* Inserts the null argument, as an adapter thunk does, for a call that does not pass through it. The
 * argument registers hold all arguments of the function; see MAX_ADAPTER_ARGS. */
static void insert_null_argument(struct frame *frame, int argument)
{
    for (int i = REGISTER_ARGS - 1; i > argument; i--)
        frame->reg[i] = frame->reg[i - 1];
    frame->reg[argument] = 0;
}

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
    /* Unbound slots: those of hooks, all slots while tracing, and slots that a linker option moved out of
     * the range that binding scans. */
    if (!result || !result->handle)
        return NULL;
    target = resolve_slot(slot, library, result, &binding);
    *reason = binding.reason;
    if (target && binding.null_argument >= 0)
        insert_null_argument(frame, binding.null_argument);
    return target;
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
