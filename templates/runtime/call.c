/* call.c: what a call does that has no bound function: bind it, or answer in the library's place. */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Whether the function's meaning differs, or may differ, between the headers that the program was
 * compiled against and this library. */
int gpustub1_is_refused(const struct gpustub1_library *library, const struct gpustub1_spec *spec,
                        const struct gpustub1_outcome *outcome)
{
    int32_t from = outcome->version, below = outcome->exact ? from + 10 : outcome->major * 1000 + 1000;
    if (!spec->changes_len)
        return 0;
    if (!library->header_below || !outcome->version ||
        (library->newest && outcome->major > library->newest))
        return 1;
    for (int i = 0; i < spec->changes_len; i++) {
        int32_t change = library->changes[spec->changes + i];
        int header_after = library->header_from >= change, library_after = from >= change;
        int header_unsure = !header_after && library->header_below > change;
        int library_unsure = !library_after && below > change;
        if (header_after != library_after || header_unsure || library_unsure)
            return 1;
    }
    return 0;
}

/* musl has no symbol versions: there a name is the default version. */
void *gpustub1_lookup(void *handle, const struct gpustub1_slot *slot, const char *node)
{
    const char *name = gpustub1_slot_name(slot);
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

enum gpustub1_reason { GPUSTUB1_MISSING, GPUSTUB1_ABSENT, GPUSTUB1_REFUSED, GPUSTUB1_UNLOADING };

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
                            const struct gpustub1_spec *spec, enum gpustub1_reason reason,
                            struct gpustub1_frame *frame)
{
    int32_t code = gpustub1_code(library, spec, reason);
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

void *gpustub1_enter(struct gpustub1_slot *slot, struct gpustub1_frame *frame)
{
    const struct gpustub1_info *info = gpustub1_slot_info(slot);
    const struct gpustub1_library *library = gpustub1_library(info->library);
    const struct gpustub1_spec *spec = gpustub1_slot_spec(slot, library);
    enum gpustub1_reason reason = GPUSTUB1_UNLOADING;
    int error = errno; /* a first call leaves errno as a later one does */
    if (!gpustub1_is_exiting()) {
        const struct gpustub1_outcome *outcome = gpustub1_settle(info->library);
        void *target = GPUSTUB1_LOAD(&slot->target);
        errno = error;
        if (target != gpustub1_slot_thunk(slot))
            return target;
        /* Told to reorder sections, a linker may put slots where binding does not find them. */
        if (outcome && outcome->handle && !gpustub1_is_refused(library, spec, outcome) &&
            (slot < library->first || slot >= library->last) &&
            (target = gpustub1_lookup(outcome->handle, slot, spec->node)))
            return target;
        reason = !outcome || !outcome->handle                     ? GPUSTUB1_MISSING
                 : gpustub1_is_refused(library, spec, outcome) ? GPUSTUB1_REFUSED
                                                                  : GPUSTUB1_ABSENT;
    }
    gpustub1_answer(library, spec, reason, frame);
    errno = error;
    return NULL;
}
