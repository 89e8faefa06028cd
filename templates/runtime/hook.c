/* hook.c: what compilers' start-up code registers before main, kept until the library is there.
 *
 * nvcc and hipcc give every object with device code a constructor, which opens a module and
 * registers its kernels and variables (crt/host_runtime.h: __cudaRegisterFatBinary, ...Function,
 * ...Var, ...End; atexit(__cudaUnregisterFatBinary)). Loading the library there would load it in
 * every program that has a kernel in it. So the calls are queued, with handles of our own, and
 * replayed in their order at the first call that needs the library. */
#include "internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUSTUB1_HOOK_ARGS = 12 };

/* A module. Its address is the handle that the program holds. Never freed: the program may ask
 * with it at any time. */
struct gpustub1_module {
    void *nothing; /* what the handle of a program that looks into it leads to */
    void *real;    /* atomic: the library's handle; NULL: not replayed */
    struct gpustub1_module *next;
    char is_closed; /* atomic */
};

struct gpustub1_record {
    struct gpustub1_record *next;
    const struct gpustub1_slot *slot;
    struct gpustub1_module *module;
    uintptr_t args[GPUSTUB1_HOOK_ARGS];
};

typedef uintptr_t gpustub1_hook_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                   uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                   uintptr_t);

static struct gpustub1_module *gpustub1_modules; /* atomic; grows only */

/* The end of a queue that takes no more: its library has been looked for. */
static struct gpustub1_record gpustub1_closed;

static int gpustub1_is_closed(const struct gpustub1_state *state)
{
    return GPUSTUB1_LOAD(&state->queue) == &gpustub1_closed;
}

static struct gpustub1_module *gpustub1_module_of(uintptr_t handle)
{
    struct gpustub1_module *module = GPUSTUB1_LOAD(&gpustub1_modules);
    while (module && (uintptr_t)module != handle)
        module = module->next;
    return module;
}

static struct gpustub1_module *gpustub1_open_module(void)
{
    struct gpustub1_module *module = calloc(1, sizeof *module);
    if (module) {
        module->next = GPUSTUB1_LOAD(&gpustub1_modules);
        while (!__atomic_compare_exchange_n(&gpustub1_modules, &module->next, module, 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        }
    }
    return module;
}

/* Queues a call; 0 if the queue is closed or memory is short. */
static int gpustub1_enqueue(struct gpustub1_state *state, const struct gpustub1_slot *slot,
                            const struct gpustub1_spec *spec, struct gpustub1_module *module,
                            const struct gpustub1_frame *frame)
{
    struct gpustub1_record *record = calloc(1, sizeof *record);
    if (!record)
        return 0;
    record->slot = slot;
    record->module = module;
    for (int i = 0; i < spec->hook_args && i < GPUSTUB1_HOOK_ARGS; i++)
        record->args[i] = i < GPUSTUB1_REGS ? frame->reg[i] : frame->stack[i - GPUSTUB1_REGS];
    record->next = GPUSTUB1_LOAD(&state->queue);
    do {
        if (record->next == &gpustub1_closed) {
            free(record);
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&state->queue, &record->next, record, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return 1;
}

/* The first step of a hook: whether it is answered without the library. If not, a handle of ours
 * among its arguments has become the library's. */
int gpustub1_hook(int index, const struct gpustub1_slot *slot, const struct gpustub1_spec *spec,
                  struct gpustub1_frame *frame)
{
    struct gpustub1_state *state = gpustub1_state(index);
    struct gpustub1_module *module;
    frame->result = 0;
    if (spec->hook == GPUSTUB1_HOOK_HANDLE || spec->hook == GPUSTUB1_HOOK_IDENTITY)
        return 0;
    if (spec->hook == GPUSTUB1_HOOK_OPEN) {
        if (gpustub1_is_closed(state) || !(module = gpustub1_open_module()))
            return 0;
        frame->result = (uintptr_t)module;
        return gpustub1_enqueue(state, slot, spec, module, frame);
    }
    module = gpustub1_module_of(frame->reg[0]);
    if (!module) /* the library's own; or nothing, from an opening that failed */
        return !frame->reg[0] || !gpustub1_is_closed(state);
    if (spec->hook == GPUSTUB1_HOOK_RECORD && gpustub1_enqueue(state, slot, spec, module, frame))
        return 1;
    if (spec->hook == GPUSTUB1_HOOK_CLOSE)
        __atomic_store_n(&module->is_closed, 1, __ATOMIC_RELEASE);
    frame->reg[0] = (uintptr_t)GPUSTUB1_LOAD(&module->real);
    return !frame->reg[0];
}

/* The second step, after the library was looked for: whether the hook is answered now. */
int gpustub1_hook_loaded(const struct gpustub1_spec *spec, int is_there,
                         struct gpustub1_frame *frame)
{
    if (spec->hook == GPUSTUB1_HOOK_HANDLE) {
        const struct gpustub1_module *module = gpustub1_module_of(frame->reg[0]);
        if (module)
            frame->reg[0] = (uintptr_t)GPUSTUB1_LOAD(&module->real);
        return !frame->reg[0];
    }
    if (spec->hook != GPUSTUB1_HOOK_IDENTITY || is_there)
        return 0;
    void *out;
    memcpy(&out, &frame->reg[0], sizeof out);
    if (out)
        memcpy(out, &frame->reg[1], sizeof frame->reg[1]);
    return 1;
}

/* ---- replaying ---------------------------------------------------------------------------------- */

static void gpustub1_replay_one(const struct gpustub1_record *record,
                                const struct gpustub1_library *library,
                                const struct gpustub1_outcome *outcome)
{
    const struct gpustub1_spec *spec = gpustub1_slot_spec(record->slot, library);
    struct gpustub1_module *module = record->module;
    const uintptr_t *a = record->args;
    uintptr_t handle = (uintptr_t)GPUSTUB1_LOAD(&module->real), result;
    struct gpustub1_binding binding;
    gpustub1_hook_fn *function;
    void *target = gpustub1_resolve(record->slot, library, outcome, &binding);
    int opens = spec->hook == GPUSTUB1_HOOK_OPEN;
    if (!target || GPUSTUB1_LOAD(&module->is_closed) || (!opens && !handle))
        return;
    memcpy(&function, &target, sizeof function);
    /* More arguments than a function has are not looked at, in both calling conventions. */
    result = function(opens ? a[0] : handle, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                      a[10], a[11]);
    if (opens) {
        memcpy(&target, &result, sizeof target);
        GPUSTUB1_STORE(&module->real, target);
    }
}

/* Takes what is queued; in its order if `outcome` has a library to replay it to. */
static void gpustub1_drain(struct gpustub1_state *state, const struct gpustub1_library *library,
                           const struct gpustub1_outcome *outcome)
{
    struct gpustub1_record *none, *ordered;
    do {
        struct gpustub1_record *latest = __atomic_exchange_n(&state->queue, NULL, __ATOMIC_ACQ_REL);
        for (ordered = NULL; latest;) {
            struct gpustub1_record *next = latest->next;
            latest->next = ordered;
            ordered = latest;
            latest = next;
        }
        while (ordered) {
            struct gpustub1_record *next = ordered->next;
            if (outcome->handle)
                gpustub1_replay_one(ordered, library, outcome);
            free(ordered);
            ordered = next;
        }
        none = NULL;
    } while (!__atomic_compare_exchange_n(&state->queue, &none, &gpustub1_closed, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* Replays what the library's hooks were given, once, before a slot is bound: a bound slot leads past
 * this. A thread that comes while another is at it waits: a kernel that it launches must be known
 * by then. Not in a child of a fork, where that thread is not. 0 if this thread is the one that
 * replays, called back. */
int gpustub1_replay(int index, const struct gpustub1_outcome *outcome)
{
    struct gpustub1_state *state = gpustub1_state(index);
    int32_t me = (int32_t)getpid(), process = 0;
    if (gpustub1_is_closed(state))
        return 1;
    /* One word decides who replays: with two, a fork between them would leave the child waiting. */
    if (__atomic_compare_exchange_n(&state->replayer_process, &process, me, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        GPUSTUB1_STORE(&state->replayer, (uintptr_t)pthread_self());
        gpustub1_drain(state, gpustub1_library(index), outcome);
        return 1;
    }
    if (process != me) /* what is left to replay lies on the stack of a thread that is not here */
        GPUSTUB1_STORE(&state->queue, &gpustub1_closed);
    while (!gpustub1_is_closed(state)) {
        if (GPUSTUB1_LOAD(&state->replayer) == (uintptr_t)pthread_self())
            return 0;
        sched_yield();
    }
    return 1;
}
