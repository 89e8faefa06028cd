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

/* A module. Its address is the handle that the program holds. Never freed: the program may ask
 * with it at any time. */
struct module {
    void *nothing; /* what the handle of a program that looks into it leads to */
    void *real;    /* atomic: the library's handle; NULL: not replayed */
    struct module *next;
    char is_closed; /* atomic */
};

struct hook_record {
    struct hook_record *next;
    const struct slot *slot;
    struct module *module;
    uintptr_t args[MAX_HOOK_ARGS];
};

typedef uintptr_t hook_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static struct module *all_modules; /* atomic; grows only */

/* The end of a queue that takes no more: its library has been looked for. */
static struct hook_record closed_queue;

static int is_queue_closed(const struct library_state *state)
{
    return LOAD_ACQUIRE(&state->queue) == &closed_queue;
}

static struct module *find_module(uintptr_t handle)
{
    struct module *module = LOAD_ACQUIRE(&all_modules);
    while (module && (uintptr_t)module != handle)
        module = module->next;
    return module;
}

static struct module *new_module(void)
{
    struct module *module = calloc(1, sizeof *module);
    if (module) {
        module->next = LOAD_ACQUIRE(&all_modules);
        while (!__atomic_compare_exchange_n(&all_modules, &module->next, module, 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        }
    }
    return module;
}

/* Queues a call; 0 if the queue is closed or memory is short. */
static int enqueue_hook(struct library_state *state, const struct slot *slot,
                        const struct spec *spec, struct module *module, const struct frame *frame)
{
    struct hook_record *record = calloc(1, sizeof *record);
    if (!record)
        return 0;
    record->slot = slot;
    record->module = module;
    for (int i = 0; i < spec->hook_args && i < MAX_HOOK_ARGS; i++)
        record->args[i] = i < REGISTER_ARGS ? frame->reg[i] : frame->stack[i - REGISTER_ARGS];
    record->next = LOAD_ACQUIRE(&state->queue);
    do {
        if (record->next == &closed_queue) {
            free(record);
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&state->queue, &record->next, record, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return 1;
}

/* The first step of a hook: whether it is answered without the library. If not, a handle of ours
 * among its arguments has become the library's. */
int answer_hook(int index, const struct slot *slot, const struct spec *spec, struct frame *frame)
{
    struct library_state *state = get_state(index);
    struct module *module;
    frame->result = 0;
    if (spec->hook == HOOK_CALL || spec->hook == HOOK_COPY_THROUGH)
        return 0;
    if (spec->hook == HOOK_OPEN) {
        if (is_queue_closed(state) || !(module = new_module()))
            return 0;
        frame->result = (uintptr_t)module;
        return enqueue_hook(state, slot, spec, module, frame);
    }
    module = find_module(frame->reg[0]);
    if (!module) /* the library's own; or nothing, from an opening that failed */
        return !frame->reg[0] || !is_queue_closed(state);
    if (spec->hook == HOOK_RECORD && enqueue_hook(state, slot, spec, module, frame))
        return 1;
    if (spec->hook == HOOK_CLOSE)
        __atomic_store_n(&module->is_closed, 1, __ATOMIC_RELEASE);
    frame->reg[0] = (uintptr_t)LOAD_ACQUIRE(&module->real);
    return !frame->reg[0];
}

/* The second step, after the library was looked for: whether the hook is answered now. */
int answer_hook_after_load(const struct spec *spec, int is_there, struct frame *frame)
{
    if (spec->hook == HOOK_CALL) {
        const struct module *module = find_module(frame->reg[0]);
        if (module)
            frame->reg[0] = (uintptr_t)LOAD_ACQUIRE(&module->real);
        return !frame->reg[0];
    }
    if (spec->hook != HOOK_COPY_THROUGH || is_there)
        return 0;
    void *out;
    memcpy(&out, &frame->reg[0], sizeof out);
    if (out)
        memcpy(out, &frame->reg[1], sizeof frame->reg[1]);
    return 1;
}

/* ---- replaying ---------------------------------------------------------------------------------- */

static void replay_hook(const struct hook_record *record, const struct library *library,
                        const struct result *result)
{
    const struct spec *spec = slot_spec(record->slot, library);
    struct module *module = record->module;
    const uintptr_t *a = record->args;
    uintptr_t handle = (uintptr_t)LOAD_ACQUIRE(&module->real), returned;
    struct binding binding;
    hook_function *function;
    void *target = resolve_slot(record->slot, library, result, &binding);
    int opens = spec->hook == HOOK_OPEN;
    if (!target || LOAD_ACQUIRE(&module->is_closed) || (!opens && !handle))
        return;
    memcpy(&function, &target, sizeof function);
    /* More arguments than a function has are not looked at, in both calling conventions. */
    returned = function(opens ? a[0] : handle, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                        a[10], a[11]);
    if (opens) {
        memcpy(&target, &returned, sizeof target);
        STORE_RELEASE(&module->real, target);
    }
}

/* Takes what is queued; in its order if `result` has a library to replay it to. */
static void drain_queue(struct library_state *state, const struct library *library,
                        const struct result *result)
{
    struct hook_record *none, *ordered;
    do {
        struct hook_record *latest = __atomic_exchange_n(&state->queue, NULL, __ATOMIC_ACQ_REL);
        for (ordered = NULL; latest;) {
            struct hook_record *next = latest->next;
            latest->next = ordered;
            ordered = latest;
            latest = next;
        }
        while (ordered) {
            struct hook_record *next = ordered->next;
            if (result->handle)
                replay_hook(ordered, library, result);
            free(ordered);
            ordered = next;
        }
        none = NULL;
    } while (!__atomic_compare_exchange_n(&state->queue, &none, &closed_queue, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

/* Replays what the library's hooks were given, once, before a slot is bound: a bound slot leads past
 * this. A thread that comes while another is at it waits: a kernel that it launches must be known
 * by then. Not in a child of a fork, where that thread is not. 0 if this thread is the one that
 * replays, called back. */
int replay_hooks(int index, const struct result *result)
{
    struct library_state *state = get_state(index);
    int32_t me = (int32_t)getpid(), process = 0;
    if (is_queue_closed(state))
        return 1;
    /* One word decides who replays: with two, a fork between them would leave the child waiting. */
    if (__atomic_compare_exchange_n(&state->replayer_process, &process, me, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        STORE_RELEASE(&state->replayer, (uintptr_t)pthread_self());
        drain_queue(state, get_library(index), result);
        return 1;
    }
    if (process != me) /* what is left to replay lies on the stack of a thread that is not here */
        STORE_RELEASE(&state->queue, &closed_queue);
    while (!is_queue_closed(state)) {
        if (LOAD_ACQUIRE(&state->replayer) == (uintptr_t)pthread_self())
            return 0;
        sched_yield();
    }
    return 1;
}
