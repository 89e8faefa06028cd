/* load.c: publishes the result of a search, binds the slots, and makes them read-only. */
#include "internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpustub_libraries.inc"

static struct library_state library_states[LIBRARY_COUNT + 1];
static struct toolkit *family_toolkits[FAMILY_COUNT + 1]; /* atomic */
static unsigned active_binders;                           /* atomic */
static char exiting;                                      /* atomic */

/* Protection of the pages of the slots. */
enum { PAGES_WRITABLE, PAGES_CHANGING, PAGES_SEALED, PAGES_NEVER_SEALED };
static int page_state; /* atomic */

int library_count(void)
{
    return LIBRARY_COUNT;
}

const struct library *get_library(int library)
{
    return &libraries[library];
}

struct library_state *get_state(int library)
{
    return &library_states[library];
}

int is_exiting(void)
{
    return LOAD_ACQUIRE(&exiting);
}

const struct toolkit *get_toolkit(int family)
{
    return LOAD_ACQUIRE(&family_toolkits[family]);
}

/* Makes the result's toolkit that of the family unless it has one. Returns the family's toolkit. */
const struct toolkit *claim_toolkit(int family, const struct result *result, const char *claimed_by)
{
    struct toolkit *theirs = LOAD_ACQUIRE(&family_toolkits[family]);
    if (theirs)
        return theirs;
    struct toolkit *mine = malloc(sizeof *mine);
    if (!mine)
        return NULL;
    mine->major = result->toolkit;
    mine->root = result->root ? copy_string(result->root) : NULL;
    mine->claimed_by = claimed_by;
    if (__atomic_compare_exchange_n(&family_toolkits[family], &theirs, mine, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return mine;
    free((char *)mine->root);
    free(mine);
    return theirs;
}

/* ---- read-only slots ------------------------------------------------------------------------ */

/* Changes the protection of the pages that contain only slots. */
static int protect_pages(int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)gpustub1_slots_first + page - 1) / page * page;
    uintptr_t last = (uintptr_t)gpustub1_slots_last / page * page;
    void *start;
    if (first >= last) /* smaller than a page of this machine: stays writable */
        return 1;
    /* copied, not cast: an integer is no pointer into an object */
    __builtin_memcpy(&start, &first, sizeof start);
    return !mprotect(start, last - first, protection);
}

/* Seals the slots once every library that has any is bound. A thread that starts to bind after
 * active_binders was read as 0 finds is_bound set, and does not write. */
static void seal_slots(void)
{
    int open = PAGES_WRITABLE;
    for (int i = 0; i < LIBRARY_COUNT; i++) {
        const struct library *library = &libraries[i];
        const struct result *result = LOAD_ACQUIRE(&library_states[i].result);
        if (library->first != library->last &&
            (!result || !__atomic_load_n(&result->is_bound, __ATOMIC_SEQ_CST)))
            return;
    }
    if (__atomic_load_n(&active_binders, __ATOMIC_SEQ_CST) ||
        !__atomic_compare_exchange_n(&page_state, &open, PAGES_CHANGING, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    STORE_RELEASE(&page_state, protect_pages(PROT_READ) ? PAGES_SEALED : PAGES_NEVER_SEALED);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Points every slot of the library at its function. Threads may do this at the same time: all
 * write the same values. */
static void bind_slots(const struct library *library, struct result *result)
{
    int bound = 0, renamed = 0, adapted = 0, refused = 0;
    int watched = trace_mode() != TRACE_OFF;
    __atomic_add_fetch(&active_binders, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&result->is_bound, __ATOMIC_SEQ_CST)) {
        for (struct slot *slot = library->first; slot < library->last; slot++) {
            struct binding binding = {NULL, -1, FUNCTION_MISSING};
            void *target = result->handle ? resolve_slot(slot, library, result, &binding) : NULL;
            refused += binding.reason == FUNCTION_REFUSED;
            if (!target)
                continue;
            bound++;
            if (binding.null_argument >= 0) {
                adapted++;
                target = adapt(slot, target);
            } else {
                renamed += binding.name != slot_name(slot);
            }
            /* Hooks always pass through gpustub1_enter, as do all calls while tracing. */
            if (!watched && !slot_spec(slot, library)->hook &&
                !__atomic_load_n(&exiting, __ATOMIC_SEQ_CST))
                STORE_RELEASE(&slot->target, target);
        }
        __atomic_store_n(&result->bound, bound, __ATOMIC_RELAXED);
        __atomic_store_n(&result->renamed, renamed, __ATOMIC_RELAXED);
        __atomic_store_n(&result->adapted, adapted, __ATOMIC_RELAXED);
        __atomic_store_n(&result->refused, refused, __ATOMIC_RELAXED);
        __atomic_store_n(&result->missing, (int)(library->last - library->first) - bound - refused,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&result->is_bound, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_sub_fetch(&active_binders, 1, __ATOMIC_SEQ_CST);
    seal_slots();
}

/* Returns the library's result after search, publication and binding; NULL only if memory is short.
 * Recursive to one level: the search for a toolkit's library first settles its driver. */
struct result *settle_library(int index)
{
    struct library_state *state = &library_states[index];
    struct result *result = LOAD_ACQUIRE(&state->result);
    int mine = 0;
    if (!result) {
        struct result *found = find_library(index);
        if (!found)
            return NULL;
        mine = __atomic_compare_exchange_n(&state->result, &result, found, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_ACQUIRE);
        if (mine)
            result = found;
        else
            discard_result(found);
    }
    if (replay_hooks(index, result) && !LOAD_ACQUIRE(&result->is_bound))
        bind_slots(&libraries[index], result);
    if (mine)
        log_report(index, result);
    return result;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Points every slot of a library at its thunk again. A library without a published result stays
 * unbound: a thread publishes first, then reads `exiting`. */
static void unbind_slots(int index)
{
    const struct library *library = &libraries[index];
    const struct result *result = __atomic_load_n(&library_states[index].result, __ATOMIC_SEQ_CST);
    if (!result || !result->handle)
        return;
    for (struct slot *slot = library->first; slot < library->last; slot++) {
        void *thunk = slot_thunk(slot);
        if (LOAD_ACQUIRE(&slot->target) != thunk)
            STORE_RELEASE(&slot->target, thunk);
    }
}

/* Stops stubs from loading libraries, and from calling libraries that are being torn down. Runs after the
 * image's other destructors (101 is the last priority open to programs), which may still call. */
__attribute__((destructor(101))) static void finish(void)
{
    int state = PAGES_WRITABLE;
    __atomic_store_n(&exiting, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&page_state, &state, PAGES_NEVER_SEALED, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) &&
        (state == PAGES_CHANGING ||
         (state == PAGES_SEALED && !protect_pages(PROT_READ | PROT_WRITE))))
        return;
    for (int i = 0; i < LIBRARY_COUNT; i++)
        unbind_slots(i);
    report_call_counts();
}
