/* call.c: what a call does that has no bound function: bind it, or answer in the library's place. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* ---- which function of the library ----------------------------------------------------------- */

/* Looks for the name that means in this library what the program's headers mean by the function's own,
 * which the binding has; NULL if none does, or if that cannot be known. */
static void gpustub1_pass_gates(struct gpustub1_binding *binding,
                                const struct gpustub1_library *library,
                                const struct gpustub1_spec *spec,
                                const struct gpustub1_outcome *outcome)
{
    /* Where only the major is known, what holds for all of its versions. */
    int32_t from = outcome->version;
    int32_t below = outcome->exact ? from + 10 : outcome->major * 1000 + 1000;
    if (spec->gates_len && !from)
        binding->name = NULL;
    for (int i = 0; i < spec->gates_len && from; i++) {
        const struct gpustub1_gate *gate = &library->gates[spec->gates + i];
        if (gate->from < below && gate->below > from) {
            int holds = gate->from <= from && below <= gate->below;
            binding->name = holds ? gate->name : NULL;
            binding->null = i < spec->translated ? spec->null : -1;
            return;
        }
    }
}

/* musl has no symbol versions: there a name is the default version. */
static void *gpustub1_lookup(void *handle, const struct gpustub1_slot *slot, const char *name,
                             const char *node)
{
    void *target;
#if defined(__GLIBC__) || defined(__FreeBSD__)
    if (node)
        target = dlvsym(handle, name, node);
    else
#else
    (void)node;
#endif
        target = dlsym(handle, name);
    /* An exported stub may find itself: its trampoline lies right before its thunk. */
    return (uintptr_t)gpustub1_slot_thunk(slot) - (uintptr_t)target < 32 ? NULL : target;
}

/* The function of a loaded library that a slot stands for, and how it is bound; NULL if there is
 * none. */
void *gpustub1_resolve(const struct gpustub1_slot *slot, const struct gpustub1_library *library,
                       const struct gpustub1_outcome *outcome, struct gpustub1_binding *binding)
{
    const struct gpustub1_spec *spec = gpustub1_slot_spec(slot, library);
    const char *own = gpustub1_slot_name(slot);
    void *target;
    *binding = (struct gpustub1_binding){own, -1, GPUSTUB1_ABSENT};
    gpustub1_pass_gates(binding, library, spec, outcome);
    if (!binding->name) {
        binding->reason = GPUSTUB1_REFUSED;
        return NULL;
    }
    target = gpustub1_lookup(outcome->handle, slot, binding->name,
                             binding->name == own ? spec->node : NULL);
    if (!target && spec->instead) {
        *binding = (struct gpustub1_binding){spec->instead, -1, GPUSTUB1_ABSENT};
        target = gpustub1_lookup(outcome->handle, slot, spec->instead, NULL);
    }
    return target;
}

/* ---- answering in its place -------------------------------------------------------------------- */

static int32_t gpustub1_code(const struct gpustub1_library *library,
                             const struct gpustub1_spec *spec, enum gpustub1_reason reason)
{
    switch (reason) {
    case GPUSTUB1_ABSENT:
        return library->absent;
    case GPUSTUB1_REFUSED:
        return library->refused;
    case GPUSTUB1_UNLOADING:
        return library->unloading;
    default:
        return spec->has_missing ? spec->missing : library->missing;
    }
}

static void *gpustub1_pointer(uintptr_t address)
{
    void *pointer;
    memcpy(&pointer, &address, sizeof pointer);
    return pointer;
}

static void gpustub1_write_out(const struct gpustub1_library *library,
                               const struct gpustub1_out *out, int32_t code,
                               const struct gpustub1_frame *frame)
{
    uintptr_t argument = out->arg < GPUSTUB1_REGS ? frame->reg[out->arg]
                                                  : frame->stack[out->arg - GPUSTUB1_REGS];
    void *target = gpustub1_pointer(argument);
    if (!target)
        return;
    switch (out->kind) {
    case GPUSTUB1_OUT_ZERO:
        memset(target, 0, out->bytes);
        break;
    case GPUSTUB1_OUT_STATUS:
        memcpy(target, &code, sizeof code);
        break;
    case GPUSTUB1_OUT_TEXT:
        memcpy(target, &library->text, sizeof library->text);
        break;
    }
}

/* Answers in the library's place. Async-signal-safe. */
static void gpustub1_answer(const struct gpustub1_library *library,
                            const struct gpustub1_spec *spec, int32_t code,
                            struct gpustub1_frame *frame)
{
    for (int i = 0; i < spec->outs_len; i++)
        gpustub1_write_out(library, &library->outs[spec->outs + i], code, frame);
    switch (spec->returns) {
    case GPUSTUB1_STATUS:
        frame->result = (uintptr_t)(intptr_t)code;
        break;
    case GPUSTUB1_VALUE:
        frame->result = (uintptr_t)(intptr_t)spec->value;
        break;
    case GPUSTUB1_TEXT:
        frame->result = (uintptr_t)library->text;
        break;
    case GPUSTUB1_STRUCT:
        if (frame->indirect)
            memset(gpustub1_pointer(frame->indirect), 0, (size_t)spec->value);
        frame->result = frame->indirect;
        break;
    default:
        frame->result = 0;
    }
}

/* ---- the slow path ------------------------------------------------------------------------------ */

/* As a translator does, for a call that is made from here. The argument registers hold all that the
 * function takes; see MOST_ARGUMENTS of the generator. */
static void gpustub1_insert_null(struct gpustub1_frame *frame, int argument)
{
    for (int i = GPUSTUB1_REGS - 1; i > argument; i--)
        frame->reg[i] = frame->reg[i - 1];
    frame->reg[argument] = 0;
}

/* Where to jump with the frame; NULL if nowhere, with the reason. */
static void *gpustub1_target(int index, const struct gpustub1_slot *slot,
                             struct gpustub1_frame *frame, enum gpustub1_reason *reason)
{
    const struct gpustub1_outcome *outcome = gpustub1_settle(index);
    void *target = GPUSTUB1_LOAD(&slot->target);
    struct gpustub1_binding binding;
    *reason = GPUSTUB1_MISSING;
    if (target != gpustub1_slot_thunk(slot))
        return target;
    /* Left unbound: hooks, every slot while watching, and slots that a linker told to reorder
     * sections put where binding does not find them. */
    if (!outcome || !outcome->handle)
        return NULL;
    target = gpustub1_resolve(slot, gpustub1_library(index), outcome, &binding);
    *reason = binding.reason;
    if (target && binding.null >= 0)
        gpustub1_insert_null(frame, binding.null);
    return target;
}

void *gpustub1_enter(struct gpustub1_slot *slot, struct gpustub1_frame *frame)
{
    const struct gpustub1_info *info = gpustub1_slot_info(slot);
    const struct gpustub1_library *library = gpustub1_library(info->library);
    const struct gpustub1_spec *spec = gpustub1_slot_spec(slot, library);
    enum gpustub1_reason reason = GPUSTUB1_UNLOADING;
    int error = errno; /* a first call leaves errno as a later one does */
    enum gpustub1_watching watching = gpustub1_watching();
    int forced = 0, answered = 0;
    int32_t code = 0;
    void *target = NULL;
    frame->observe = 0;
    if (watching != GPUSTUB1_OFF)
        forced = gpustub1_watch(info->library, slot, frame, &code);
    if (!forced && !gpustub1_is_exiting()) {
        answered = spec->hook && gpustub1_hook(info->library, slot, spec, frame);
        if (!answered) {
            target = gpustub1_target(info->library, slot, frame, &reason);
            answered = spec->hook &&
                       gpustub1_hook_loaded(spec, target || reason != GPUSTUB1_ABSENT, frame);
        }
    }
    if (answered)
        target = NULL;
    else if (!target)
        gpustub1_answer(library, spec, forced ? code : gpustub1_code(library, spec, reason), frame);
    if (forced && spec->returns == GPUSTUB1_VALUE) /* a fixed value, or codes of another API */
        frame->result = (uintptr_t)(intptr_t)code;
    if (!target) {
        if (watching == GPUSTUB1_TRACING)
            gpustub1_answered(slot, spec, frame->result);
    } else if (watching == GPUSTUB1_TRACING && spec->returns != GPUSTUB1_VOID && spec->returns != GPUSTUB1_STRUCT) {
        frame->observe = (uintptr_t)slot;
    }
    errno = error;
    return target;
}
