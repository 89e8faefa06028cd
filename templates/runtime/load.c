/* load.c: publishes the outcome of a search, binds the slots, and keeps them from being changed. */
#include "internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpustub_libraries.inc"

static struct gpustub1_state gpustub1_states[GPUSTUB1_LIBRARIES + 1];
static struct gpustub1_toolkit *gpustub1_toolkits[GPUSTUB1_FAMILIES + 1]; /* atomic */
static unsigned gpustub1_binders;                                         /* atomic */
static char gpustub1_exiting;                                             /* atomic */

/* Whether the pages of the slots may be written. */
enum { GPUSTUB1_OPEN, GPUSTUB1_CHANGING, GPUSTUB1_SEALED, GPUSTUB1_NEVER };
static int gpustub1_pages; /* atomic */

int gpustub1_library_count(void)
{
    return GPUSTUB1_LIBRARIES;
}

const struct gpustub1_library *gpustub1_library(int library)
{
    return &gpustub1_libraries[library];
}

struct gpustub1_state *gpustub1_state(int library)
{
    return &gpustub1_states[library];
}

int gpustub1_is_exiting(void)
{
    return GPUSTUB1_LOAD(&gpustub1_exiting);
}

const struct gpustub1_toolkit *gpustub1_toolkit(int family)
{
    return GPUSTUB1_LOAD(&gpustub1_toolkits[family]);
}

/* Makes the outcome's toolkit that of the family, unless there is one; returns the family's. */
const struct gpustub1_toolkit *gpustub1_claim(int family, const struct gpustub1_outcome *outcome,
                                              const char *by)
{
    struct gpustub1_toolkit *theirs = GPUSTUB1_LOAD(&gpustub1_toolkits[family]);
    if (theirs)
        return theirs;
    struct gpustub1_toolkit *mine = malloc(sizeof *mine);
    if (!mine)
        return NULL;
    mine->major = outcome->toolkit;
    mine->root = outcome->root ? gpustub1_copy(outcome->root) : NULL;
    mine->by = by;
    if (__atomic_compare_exchange_n(&gpustub1_toolkits[family], &theirs, mine, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return mine;
    free((char *)mine->root);
    free(mine);
    return theirs;
}

/* ---- read-only slots ------------------------------------------------------------------------ */

/* Changes the protection of the pages that hold nothing but slots. */
static int gpustub1_set_pages(int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)gpustub1_slots_first + page - 1) / page * page;
    uintptr_t last = (uintptr_t)gpustub1_slots_last / page * page;
    void *start;
    if (first >= last) /* smaller than a page of this machine: stays writable */
        return 1;
    /* cast by copy: an integer is no pointer into an object */
    __builtin_memcpy(&start, &first, sizeof start);
    return !mprotect(start, last - first, protection);
}

/* Seals the slots once every library that has any is bound. A thread that starts to bind after
 * gpustub1_binders was read as 0 finds is_bound set, and does not write. */
static void gpustub1_seal(void)
{
    int open = GPUSTUB1_OPEN;
    for (int i = 0; i < GPUSTUB1_LIBRARIES; i++) {
        const struct gpustub1_library *library = &gpustub1_libraries[i];
        const struct gpustub1_outcome *outcome = GPUSTUB1_LOAD(&gpustub1_states[i].outcome);
        if (library->first != library->last &&
            (!outcome || !__atomic_load_n(&outcome->is_bound, __ATOMIC_SEQ_CST)))
            return;
    }
    if (__atomic_load_n(&gpustub1_binders, __ATOMIC_SEQ_CST) ||
        !__atomic_compare_exchange_n(&gpustub1_pages, &open, GPUSTUB1_CHANGING, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    GPUSTUB1_STORE(&gpustub1_pages, gpustub1_set_pages(PROT_READ) ? GPUSTUB1_SEALED : GPUSTUB1_NEVER);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Points every slot of the library at its function. Threads may do this at the same time: all
 * write the same values. */
static void gpustub1_bind(const struct gpustub1_library *library, struct gpustub1_outcome *outcome)
{
    int bound = 0, renamed = 0, translated = 0, refused = 0;
    int watched = gpustub1_watching() != GPUSTUB1_OFF;
    __atomic_add_fetch(&gpustub1_binders, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&outcome->is_bound, __ATOMIC_SEQ_CST)) {
        for (struct gpustub1_slot *slot = library->first; slot < library->last; slot++) {
            struct gpustub1_binding binding = {NULL, -1, GPUSTUB1_ABSENT};
            void *target = outcome->handle
                               ? gpustub1_resolve(slot, library, outcome, &binding)
                               : NULL;
            refused += binding.reason == GPUSTUB1_REFUSED;
            if (!target)
                continue;
            bound++;
            if (binding.null >= 0) {
                translated++;
                target = gpustub1_translate(slot, target);
            } else {
                renamed += binding.name != gpustub1_slot_name(slot);
            }
            /* Hooks pass through gpustub1_enter always, and so does all that is watched. */
            if (!watched && !gpustub1_slot_spec(slot, library)->hook &&
                !__atomic_load_n(&gpustub1_exiting, __ATOMIC_SEQ_CST))
                GPUSTUB1_STORE(&slot->target, target);
        }
        __atomic_store_n(&outcome->bound, bound, __ATOMIC_RELAXED);
        __atomic_store_n(&outcome->renamed, renamed, __ATOMIC_RELAXED);
        __atomic_store_n(&outcome->translated, translated, __ATOMIC_RELAXED);
        __atomic_store_n(&outcome->refused, refused, __ATOMIC_RELAXED);
        __atomic_store_n(&outcome->absent, (int)(library->last - library->first) - bound - refused,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&outcome->is_bound, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_sub_fetch(&gpustub1_binders, 1, __ATOMIC_SEQ_CST);
    gpustub1_seal();
}

/* The library's outcome: searched for, published and bound. NULL only if memory is short. */
struct gpustub1_outcome *gpustub1_settle(int index)
{
    struct gpustub1_state *state = &gpustub1_states[index];
    struct gpustub1_outcome *outcome = GPUSTUB1_LOAD(&state->outcome);
    int mine = 0;
    if (!outcome) {
        struct gpustub1_outcome *found = gpustub1_find(index);
        if (!found)
            return NULL;
        mine = __atomic_compare_exchange_n(&state->outcome, &outcome, found, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_ACQUIRE);
        if (mine)
            outcome = found;
        else
            gpustub1_discard(found);
    }
    if (gpustub1_replay(index, outcome) && !GPUSTUB1_LOAD(&outcome->is_bound))
        gpustub1_bind(&gpustub1_libraries[index], outcome);
    if (mine)
        gpustub1_log(index, outcome);
    return outcome;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Leads every slot of a library back to its thunk. One whose outcome is not published yet will
 * not be bound any more: a thread publishes first, and looks at gpustub1_exiting then. */
static void gpustub1_unbind(int index)
{
    const struct gpustub1_library *library = &gpustub1_libraries[index];
    const struct gpustub1_outcome *outcome =
        __atomic_load_n(&gpustub1_states[index].outcome, __ATOMIC_SEQ_CST);
    if (!outcome || !outcome->handle)
        return;
    for (struct gpustub1_slot *slot = library->first; slot < library->last; slot++) {
        void *thunk = gpustub1_slot_thunk(slot);
        if (GPUSTUB1_LOAD(&slot->target) != thunk)
            GPUSTUB1_STORE(&slot->target, thunk);
    }
}

/* From here on stubs neither load nor reach libraries that are being torn down. Runs after the
 * image's other destructors (101 is the last priority open to programs), which may still call. */
__attribute__((destructor(101))) static void gpustub1_finish(void)
{
    int state = GPUSTUB1_OPEN;
    __atomic_store_n(&gpustub1_exiting, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&gpustub1_pages, &state, GPUSTUB1_NEVER, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) &&
        (state == GPUSTUB1_CHANGING ||
         (state == GPUSTUB1_SEALED && !gpustub1_set_pages(PROT_READ | PROT_WRITE))))
        return;
    for (int i = 0; i < GPUSTUB1_LIBRARIES; i++)
        gpustub1_unbind(i);
    gpustub1_count_calls();
}
