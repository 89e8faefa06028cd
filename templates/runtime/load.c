/* load.c: publishes the result of a search, and binds the slots, which are read-only otherwise. */
#include "internal.h"

#include <stdlib.h>

/* Where no lock excludes writers from each other (IMAGE_IS_LOCKED), the pages of the slots are sealed once. */
enum { PAGES_WRITABLE, PAGES_CHANGING, PAGES_SEALED, PAGES_NEVER_SEALED };
static int page_state;          /* atomic */
static unsigned active_binders; /* atomic */

static int32_t parent; /* atomic: process that registered the exit hook */

int is_exiting(void)
{
    return LOAD_ACQUIRE(&gpustub1_exiting);
}

/* ---- read-only slots ------------------------------------------------------------------------ */

/* Stores to slots and to targets of adapters, which are made together, because opening pages takes as long as looking
 * up a hundred functions. A value that is an enum reason goes into a slot's code. */
struct stores {
    int length;
    struct {
        void *address, *value;
    } list[MAX_STORES];
};

/* Makes pages writable. Returns 0 if the system denies that: calls stay on the slow path. */
static int open_for_stores(struct pages pages)
{
    return !pages.start || protect_pages(pages.start, pages.length, 1);
}

/* Stores in order: targets before the slots that need them. */
static int store_in(struct pages pages, void *context)
{
    const struct stores *stores = context;
    if (!open_for_stores(pages))
        return 0;
    for (int i = 0; i < stores->length; i++) {
        void *address = stores->list[i].address;
        uintptr_t value = (uintptr_t)stores->list[i].value;
        if (value <= SLOT_REASON) {
            struct slot *slot = address;
            STORE_RELEASE(&slot->code, (LOAD_RELAXED(&slot->code) & ~SLOT_REASON) | (int32_t)value);
        } else if (!__atomic_load_n(&gpustub1_exiting, __ATOMIC_SEQ_CST)) {
            STORE_RELEASE((void **)address, stores->list[i].value);
        }
    }
    close_pages(pages);
    return 1;
}

/* Makes the stores, which are to one image. */
static void flush_stores(struct stores *stores)
{
    uintptr_t first = UINTPTR_MAX, last = 0;
    for (int i = 0; i < stores->length; i++) {
        uintptr_t address = (uintptr_t)stores->list[i].address;
        first = address < first ? address : first;
        last = address > last ? address : last;
    }
    if (stores->length)
        with_read_only_pages(to_pointer(first), last - first + sizeof(struct slot), store_in, stores);
    stores->length = 0;
}

static void add_store(struct stores *stores, void *address, void *value)
{
    if (stores->length == MAX_STORES)
        flush_stores(stores);
    stores->list[stores->length].address = address;
    stores->list[stores->length++].value = value;
}

/* Writes the reason why a slot has no function. */
static void store_reason(struct stores *stores, struct slot *slot, enum reason reason)
{
    add_store(stores, slot, to_pointer((uintptr_t)reason));
}

/* Changes the protection of an object's pages that contain only slots. */
static int protect_object(const struct part *part, int is_writable)
{
    uintptr_t page = page_size();
    uintptr_t first = ((uintptr_t)part->pages_first + page - 1) / page * page;
    uintptr_t last = (uintptr_t)part->pages_last / page * page;
    if (first >= last) /* smaller than a page of this machine: stays writable */
        return 1;
    return protect_pages(to_pointer(first), last - first, is_writable);
}

/* Changes the protection of the slots of all objects. */
static int protect_slots(int is_writable)
{
    const char *previous = NULL;
    int done = 1;
    FOR_EACH_PART (part, NULL) {
        if (part->pages_last != previous) /* the parts of one object are neighbours */
            done &= protect_object(part, is_writable);
        previous = part->pages_last;
    }
    return done;
}

/* Seals the slots once every library that has any is bound. A thread that starts to bind after
 * active_binders was read as 0 finds is_bound set, and does not write. */
static void seal_slots(void)
{
    int open = PAGES_WRITABLE;
    if (IMAGE_IS_LOCKED) /* store_in did */
        return;
    FOR_EACH_PART (part, NULL) {
        const struct result *result = LOAD_ACQUIRE(&part->library->state->result);
        if (part->first != part->last &&
            (!result || !__atomic_load_n(&result->is_bound, __ATOMIC_SEQ_CST)))
            return;
    }
    if (__atomic_load_n(&active_binders, __ATOMIC_SEQ_CST) ||
        !__atomic_compare_exchange_n(&page_state, &open, PAGES_CHANGING, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    int sealed = protect_slots(0);
    if (!sealed)
        protect_slots(1);
    STORE_RELEASE(&page_state, sealed ? PAGES_SEALED : PAGES_NEVER_SEALED);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Numbers of functions by the result of their binding, and of copies of data. */
struct counts {
    int bound, renamed, adapted, refused, copied;
};

/* Stores the targets of an adapter, unless they are stored already. Returns its code. */
static void *store_targets(struct stores *stores, const struct slot *slot,
                           const struct binding *binding)
{
    void **targets = slot_targets(slot);
    for (int i = 0; i < MAX_TARGETS && binding->targets[i]; i++)
        if (LOAD_RELAXED(&targets[i]) != binding->targets[i])
            add_store(stores, &targets[i], binding->targets[i]);
    void *code = slot_adapter(slot, binding->entry);
    if (binding->entry->kind == ABI_ADAPTED)
        __builtin_memcpy(&code, &((const struct adapter *)code)->entry, sizeof code);
    return code;
}

/* The same for a call that is not bound. */
void *adapt(const struct slot *slot, const struct binding *binding)
{
    struct stores stores;
    stores.length = 0;
    void *code = store_targets(&stores, slot, binding);
    flush_stores(&stores);
    return code;
}

/* Resolves a slot in its library. Returns the new target of the slot; NULL: the slot keeps its thunk. */
static void *resolve_target(struct slot *slot, const struct library *library,
                            const struct result *result, int watched, struct stores *stores,
                            struct counts *counts)
{
    const struct spec *spec = slot_spec(slot, library);
    struct binding binding = {.reason = LIBRARY_MISSING};
    void *target = result->handle ? resolve_slot(slot, library, result, &binding) : NULL;
    counts->refused += binding.reason == FUNCTION_REFUSED;
    int is_data = spec->hook == HOOK_DATA;
    if (!target || (is_data && !copy_data(slot, target, binding.size, 1))) {
        note_errors(slot, library, spec);
        if (is_data && target)
            STORE_RELEASE(slot_is_denied(slot, spec), 1);
        else if (!watched && !is_data)
            store_reason(stores, slot, binding.reason);
        return NULL;
    }
    if (is_data) {
        counts->copied++;
        counts->adapted += binding.larger_size != 0;
        return NULL;
    }
    counts->bound++;
    if (binding.entry) {
        counts->adapted++;
        target = store_targets(stores, slot, &binding);
    } else {
        counts->renamed += binding.name != slot_name(slot);
    }
    /* Hooks with handles, and calls that change data, always pass through gpustub1_enter. */
    return spec->hook == HOOK_NONE || spec->hook == HOOK_COPY_THROUGH ? target : NULL;
}

/* Points every slot of a part at its function, or writes the reason why there is none. Most functions are
 * bound under their own name, whatever the version: for them this loop is little more than the lookup, since
 * it is the time of a first call. */
static void bind_part(const struct part *part, const struct result *result,
                      const struct symbol_table *table, struct counts *counts)
{
    const struct library *library = part->library;
    int watched = trace_mode() != TRACE_OFF;
    int bound = 0;
    struct stores stores;
    stores.length = 0;
    for (struct slot *slot = part->first; slot < part->last; slot++) {
        const struct spec *spec = slot_spec(slot, library);
        void *target;
        if (table->handle && !spec->abi_entries_len && !spec->abi_bounded && !spec->hook &&
            !spec->symbol_version && !spec->fallback_symbol) {
            target = find_function(table, slot_name(slot));
            if (target && is_own_trampoline(slot, target))
                target = NULL;
            if (target) {
                bound++;
            } else {
                note_errors(slot, library, spec);
                if (!watched)
                    store_reason(&stores, slot, FUNCTION_MISSING);
            }
        } else {
            target = resolve_target(slot, library, result, watched, &stores, counts);
        }
        /* While tracing, all calls pass through gpustub1_enter. */
        if (target && !watched)
            add_store(&stores, &slot->target, target);
    }
    flush_stores(&stores);
    counts->bound += bound;
}

/* Points every slot of the library at its function. Threads may do this at the same time: all
 * write the same values. */
static void bind_slots(const struct library_state *state, struct result *result)
{
    if (!IMAGE_IS_LOCKED)
        __atomic_add_fetch(&active_binders, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&result->is_bound, __ATOMIC_SEQ_CST)) {
        struct counts counts = {0, 0, 0, 0, 0};
        const struct symbol_table table = open_symbol_table(result->handle);
        FOR_EACH_PART (part, state)
            bind_part(part, result, &table, &counts);
        __atomic_store_n(&result->bound, counts.bound, __ATOMIC_RELAXED);
        __atomic_store_n(&result->renamed, counts.renamed, __ATOMIC_RELAXED);
        __atomic_store_n(&result->adapted, counts.adapted, __ATOMIC_RELAXED);
        __atomic_store_n(&result->refused, counts.refused, __ATOMIC_RELAXED);
        __atomic_store_n(&result->copied, counts.copied, __ATOMIC_RELAXED);
        int present = counts.bound + counts.refused + counts.copied;
        __atomic_store_n(&result->missing, slot_count(state) - present, __ATOMIC_RELAXED);
        __atomic_store_n(&result->is_bound, 1, __ATOMIC_SEQ_CST);
    }
    if (!IMAGE_IS_LOCKED)
        __atomic_sub_fetch(&active_binders, 1, __ATOMIC_SEQ_CST);
    seal_slots();
}

enum { MAX_PATIENCE = 1 << 16 }; /* limit for provisional results, see struct result */

/* Returns whether a published result is to be replaced by that of another search. */
static int is_due(struct result *result)
{
    return result->is_provisional &&
           __atomic_fetch_add(&result->calls, 1, __ATOMIC_RELAXED) % (result->patience + 1) ==
               result->patience;
}

/* Returns the library's result after search, publication and binding; NULL only if memory is short.
 * Recursive to one level: the search for a toolkit's library first settles its driver. */
struct result *settle_library(struct library_state *state)
{
    struct result *result = LOAD_ACQUIRE(&state->result);
    int mine = 0;
    register_finish();
    if (result && LOAD_ACQUIRE(&result->is_bound))
        return result;
    if (!result || is_due(result)) {
        struct result *found = find_library(first_library(state));
        if (!found) {
            clear_errors();
            return result;
        }
        found->previous = result;
        if (result && result->patience < MAX_PATIENCE)
            found->patience = 2 * result->patience + 1;
        mine = __atomic_compare_exchange_n(&state->result, &result, found, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_ACQUIRE);
        if (mine)
            result = found;
        else
            discard_result(found);
    }
    if (result->is_provisional)
        mine = mine && !result->previous; /* reported once */
    else if (replay_hooks(state, result) && !LOAD_ACQUIRE(&result->is_bound))
        bind_slots(state, result);
    if (mine)
        log_report(state, result);
    clear_errors(); /* no message of a search or a binding stays pending */
    return result;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Points every slot of a part at its thunk again. */
static int reset_slots(struct pages pages, void *context)
{
    const struct part *part = context;
    if (!open_for_stores(pages))
        return 0;
    for (struct slot *slot = part->first; slot < part->last; slot++) {
        void *thunk = slot_thunk(slot);
        if (LOAD_ACQUIRE(&slot->target) != thunk &&
            slot_spec(slot, part->library)->hook != HOOK_DATA)
            STORE_RELEASE(&slot->target, thunk);
    }
    close_pages(pages);
    return 1;
}

/* Unbinds a part. A library without a published result stays unbound: a thread publishes first, then reads
 * `gpustub1_exiting`. */
static void unbind_part(struct part *part)
{
    const struct result *result = __atomic_load_n(&part->library->state->result, __ATOMIC_SEQ_CST);
    size_t size = (size_t)((char *)part->last - (char *)part->first);
    if (!result || !result->handle || !size)
        return;
    if (process_id() == LOAD_RELAXED(&parent)) {
        with_read_only_pages(part->first, size, reset_slots, part);
    } else {
        /* The child of a fork: another thread of its parent may have held the lock. */
        open_pages(part->first, size);
        reset_slots((struct pages){NULL, 0}, part);
    }
}

/* Stops stubs from calling libraries that are being torn down, after the image's other destructors, which
 * may still call; on musl before them (unload.c). */
static void unbind_all(void)
{
    int state = PAGES_WRITABLE;
    __atomic_store_n(&gpustub1_exiting, 1, __ATOMIC_SEQ_CST);
    if (!IMAGE_IS_LOCKED &&
        !__atomic_compare_exchange_n(&page_state, &state, PAGES_NEVER_SEALED, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) &&
        (state == PAGES_CHANGING ||
         (state == PAGES_SEALED && !protect_slots(1))))
        return;
    FOR_EACH_PART (part, NULL)
        unbind_part(part);
}

static void finish(void)
{
    unbind_all();
    report_call_counts();
    free_if_closing();
}

void register_finish(void)
{
    void (*none)(void) = NULL;
    if (!LOAD_RELAXED(&gpustub1_on_exit) &&
        __atomic_compare_exchange_n(&gpustub1_on_exit, &none, finish, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&parent, process_id(), __ATOMIC_RELAXED);
        watch_exit(unbind_all);
    }
}
