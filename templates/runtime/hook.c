/* hook.c: queues the registrations of compilers' start-up code until the library is loaded.
 *
 * nvcc and hipcc add a constructor to every object with device code, which opens a module and
 * registers its kernels and variables (crt/host_runtime.h: __cudaRegisterFatBinary, ...Function,
 * ...Var, ...End; atexit(__cudaUnregisterFatBinary)). Loading the library in the constructor would load
 * it in every program that contains a kernel. So the calls are queued, with handles of the run time, and
 * replayed in order at the first call that needs the library. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A module. Its address is the program's handle. Freed only when the image is closed: the program may pass the
 * handle at any time. */
struct module {
    void *nothing; /* NULL, for a program that dereferences the handle */
    void *real;    /* atomic: the library's handle; NULL: not replayed */
    struct module *next;
    char is_closed; /* atomic */
};

struct hook_record {
    struct hook_record *next;
    const struct library *library; /* as the slot's package declares it */
    const struct slot *slot;
    struct module *module;
    uintptr_t args[MAX_HOOK_ARGS];
};

typedef uintptr_t hook_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static struct module *all_modules; /* atomic; grows only */

/* Head of a closed queue: the search for its library is over. */
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
                        const struct spec *spec, struct module *module, struct frame *frame)
{
    struct hook_record *record = is_queue_closed(state) ? NULL : calloc(1, sizeof *record);
    if (!record)
        return 0;
    record->library = frame->part->library;
    record->slot = slot;
    record->module = module;
    for (int i = 0; i < spec->hook_args && i < MAX_HOOK_ARGS; i++)
        record->args[i] = *argument(frame, i);
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

/* First step of a hook. Returns whether it needs no library; otherwise it has replaced the run time's
 * handle among the arguments by the library's. */
int answer_hook(const struct slot *slot, const struct spec *spec, struct frame *frame)
{
    struct library_state *state = frame->part->library->state;
    struct module *module;
    frame->result = 0;
    if (spec->hook >= HOOK_CALL) /* a real call */
        return 0;
    if (spec->hook == HOOK_OPEN) {
        if (is_queue_closed(state) || !(module = new_module()))
            return 0;
        frame->result = (uintptr_t)module;
        return enqueue_hook(state, slot, spec, module, frame);
    }
    uintptr_t *handle = argument(frame, 0);
    module = find_module(*handle);
    if (!module) /* a handle of the library, or NULL from a HOOK_OPEN that failed */
        return !*handle || !is_queue_closed(state);
    if (spec->hook == HOOK_RECORD && enqueue_hook(state, slot, spec, module, frame))
        return 1;
    if (spec->hook == HOOK_CLOSE)
        __atomic_store_n(&module->is_closed, 1, __ATOMIC_RELEASE);
    *handle = (uintptr_t)LOAD_ACQUIRE(&module->real);
    return !*handle;
}

/* Second step, after the search for the library. Returns whether the hook is done. */
int answer_hook_after_load(const struct spec *spec, int is_there, struct frame *frame)
{
    if (spec->hook == HOOK_CALL) {
        uintptr_t *handle = argument(frame, 0);
        const struct module *module = find_module(*handle);
        if (module)
            *handle = (uintptr_t)LOAD_ACQUIRE(&module->real);
        return !*handle;
    }
    if (spec->hook != HOOK_COPY_THROUGH || is_there)
        return 0;
    void *out;
    memcpy(&out, argument(frame, 0), sizeof out);
    if (out)
        memcpy(out, argument(frame, 1), sizeof(uintptr_t));
    return 1;
}

/* ---- replaying ---------------------------------------------------------------------------------- */

static void replay_hook(const struct hook_record *record, const struct result *result)
{
    const struct spec *spec = slot_spec(record->slot, record->library);
    struct module *module = record->module;
    const uintptr_t *a = record->args;
    uintptr_t handle = (uintptr_t)LOAD_ACQUIRE(&module->real), returned;
    struct binding binding;
    hook_function *function;
    void *target = resolve_slot(record->slot, record->library, result, &binding);
    int opens = spec->hook == HOOK_OPEN;
    if (!target || LOAD_ACQUIRE(&module->is_closed) || (!opens && !handle))
        return;
    memcpy(&function, &target, sizeof function);
    /* All calling conventions ignore surplus arguments. */
    returned = function(opens ? a[0] : handle, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                        a[10], a[11]);
    if (opens) {
        memcpy(&target, &returned, sizeof target);
        STORE_RELEASE(&module->real, target);
    }
}

/* Replays the queued calls in order if `result` has a library, frees them and closes the queue. */
static void drain_queue(struct library_state *state, const struct result *result)
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
                replay_hook(ordered, result);
            free(ordered);
            ordered = next;
        }
        none = NULL;
    } while (!__atomic_compare_exchange_n(&state->queue, &none, &closed_queue, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

/* Replays the queued calls of hooks once, before any slot is bound, since calls through bound slots do
 * not come here. Other threads wait, because a kernel must be registered before its launch; in a child of
 * a fork, which lacks the replaying thread, they do not. Returns 0 in the replaying thread itself, called
 * back. */
int replay_hooks(struct library_state *state, const struct result *result)
{
    int32_t me = process_id(), process = 0;
    if (is_queue_closed(state))
        return 1;
    /* One compare-and-swap elects the replaying thread: with two words, a fork between them would leave the
     * child waiting. */
    if (__atomic_compare_exchange_n(&state->replayer_process, &process, me, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        STORE_RELEASE(&state->replayer, thread_id());
        drain_queue(state, result);
        return 1;
    }
    if (process != me) /* the rest of the queue is on the stack of a thread that the fork lacks */
        STORE_RELEASE(&state->queue, &closed_queue);
    while (!is_queue_closed(state)) {
        if (LOAD_ACQUIRE(&state->replayer) == thread_id())
            return 0;
        yield_thread();
    }
    return 1;
}

/* ---- the end ------------------------------------------------------------------------------------ */

/* Frees calls that were never replayed. */
void free_hook_queue(struct library_state *state)
{
    struct hook_record *record =
        __atomic_exchange_n(&state->queue, &closed_queue, __ATOMIC_ACQ_REL);
    while (record && record != &closed_queue) {
        struct hook_record *next = record->next;
        free(record);
        record = next;
    }
}

void free_modules(void)
{
    struct module *module = __atomic_exchange_n(&all_modules, NULL, __ATOMIC_ACQ_REL);
    while (module) {
        struct module *next = module->next;
        free(module);
        module = next;
    }
}
