/* data.c: copies of a library's data. A stub of data is an object of the image, because its address is fixed before
 * any library is loaded. It is zero until the library is bound. */
#include "internal.h"

#include <string.h>

struct copy {
    void *copied;
    void *target;
    const void *source;
    size_t size;
    int may_open;
};

/* Writes a copy, whose read-only pages are `pages`. */
static int write_copy(struct pages pages, void *context)
{
    const struct copy *copy = context;
    if (!memcmp(copy->source, copy->copied, copy->size) ||
        memcmp(copy->target, copy->copied, copy->size))
        return 1;
    if (pages.length &&
        (!copy->may_open || !pages.start || !protect_pages(pages.start, pages.length, 1)))
        return 0;
    memcpy(copy->copied, copy->source, copy->size);
    memcpy(copy->target, copy->source, copy->size);
    close_pages(pages);
    return 1;
}

/* Copies data that changed in the library. If the object changed instead, the library writes to it: its own references
 * are bound to the object of a program, or of a library of stubs, without the library's version node. Returns 0 if the
 * object is read-only, unless `may_open`, for a binding, made it writable for this. */
int copy_data(const struct slot *slot, const void *source, size_t size, int may_open)
{
    struct copy copy = {slot_copied(slot), slot->target, source, size, may_open};
    return with_read_only_pages(slot->target, size, write_copy, &copy);
}

/* Copies the data of all libraries again. */
void update_data(void)
{
    FOR_EACH_PART (part, NULL) {
        const struct library *library = part->library;
        const struct result *result = LOAD_ACQUIRE(&library->state->result);
        for (const struct slot *slot = part->first; slot < part->last; slot++) {
            struct binding binding;
            if (slot_spec(slot, library)->hook != HOOK_DATA || !result || !result->handle)
                continue;
            const void *source = resolve_slot(slot, library, result, &binding);
            if (source)
                copy_data(slot, source, binding.size, 0);
        }
    }
    clear_errors();
}

/* ---- callbacks: functions of the program that the library calls, maybe later, after it has changed the data -------- */

typedef uintptr_t callback_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

enum { MAX_CALLBACKS = 4 };
static uintptr_t callbacks[MAX_CALLBACKS]; /* atomic */

/* Passes a call on. All calling conventions ignore surplus arguments. */
static uintptr_t pass_on(int index, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    uintptr_t address = LOAD_ACQUIRE(&callbacks[index]);
    callback_function *function;
    __builtin_memcpy(&function, &address, sizeof function);
    update_data();
    return function(a, b, c, d);
}

#define CALLBACK(index)                                                                            \
    static uintptr_t callback_##index(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)          \
    {                                                                                              \
        return pass_on(index, a, b, c, d);                                                         \
    }
CALLBACK(0)
CALLBACK(1)
CALLBACK(2)
CALLBACK(3)

/* Replaces a callback by one that copies the data first. Distinct callbacks stay distinct, since a library may register
 * each once; further ones stay as they are. */
void wrap_callback(uintptr_t *callback)
{
    static callback_function *const wrappers[MAX_CALLBACKS] = {callback_0, callback_1, callback_2,
                                                               callback_3};
    for (int i = 0; *callback && i < MAX_CALLBACKS; i++) {
        uintptr_t known = 0;
        if (__atomic_compare_exchange_n(&callbacks[i], &known, *callback, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            known == *callback) {
            *callback = (uintptr_t)wrappers[i];
            return;
        }
    }
}
