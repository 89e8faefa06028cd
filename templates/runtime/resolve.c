/* resolve.c: the function of a loaded library for a slot, by the ABI table. */
#include "internal.h"

/* Replaces the binding's name, the function's own, by what the ABI table has for this library. Returns
 * whether it has any function. In an unknown version there is none, unless the function has one ABI in all. */
static int apply_abi_table(struct binding *binding, const struct library *library,
                            const struct spec *spec, const struct result *result)
{
    /* If only the major is known, an entry must hold for all of its versions. */
    int32_t from = result->version;
    int32_t below = result->exact ? from + 10 : result->major * 1000 + 1000;
    const struct abi_entry *entry = &library->abi_entries[spec->abi_entries];
    if (below > MAX_ABI_VERSION) {
        below = MAX_ABI_VERSION;
        from = from < below ? from : below - 1;
    }
    int holds = from != 0;
    if (spec->abi_bounded)
        holds = holds && from >= library->abi_from && below <= library->abi_below;
    for (int i = 0; i < spec->abi_entries_len && holds; i++, entry++) {
        if (entry->from >= below || entry->below <= from)
            continue;
        holds = entry->from <= from && below <= entry->below;
        const char *text = holds && entry->text ? library->abi_texts + entry->text : NULL;
        if (entry->kind == ABI_REFUSED || entry->kind == ABI_MISSING) {
            binding->explanation = text;
            return entry->kind == ABI_MISSING;
        }
        binding->name = text;
        if (entry->kind != ABI_BOUND)
            binding->entry = entry;
        return holds;
    }
    return holds || (!from && !spec->abi_bounded);
}

/* Resolves a name in a library; NULL also for the stub itself. */
static void *lookup_symbol(void *handle, const struct slot *slot, const char *name,
                           const char *symbol_version)
{
    void *target = symbol_version ? find_versioned_symbol(handle, name, symbol_version)
                                  : find_symbol(handle, name);
    return target && !is_own_trampoline(slot, target) ? target : NULL;
}

/* Sets the number of bytes of data to copy. Returns 0 if there is nothing to copy, or no place. */
static int measure_data(struct binding *binding, const struct slot *slot, const struct spec *spec,
                        const void *target)
{
    size_t listed = (size_t)spec->value;
    size_t size = object_size(binding->name, target);
    if (size == SIZE_MAX)
        size = listed;
    binding->size = size < listed ? size : listed;
    binding->larger_size = size == listed ? 0 : size < listed ? listed : size;
    if (!size)
        binding->explanation = "no such data in the library";
    else if (LOAD_ACQUIRE(slot_is_denied(slot, spec)))
        binding->explanation = "the program's object is read-only";
    return !binding->explanation;
}

/* Returns the function of a loaded library for a slot, and describes its binding; NULL if there is none. */
void *resolve_slot(const struct slot *slot, const struct library *library,
                   const struct result *result, struct binding *binding)
{
    const struct spec *spec = slot_spec(slot, library);
    const char *own = slot_name(slot);
    void *target;
    *binding = (struct binding){.name = own, .reason = FUNCTION_MISSING};
    if (!apply_abi_table(binding, library, spec, result)) {
        binding->reason = FUNCTION_REFUSED;
        return NULL;
    }
    target = lookup_symbol(result->handle, slot, binding->name,
                           binding->name == own && spec->symbol_version
                               ? library->abi_texts + spec->symbol_version
                               : NULL);
    if (!target && spec->fallback_symbol) {
        *binding = (struct binding){.name = library->abi_texts + spec->fallback_symbol,
                                    .reason = FUNCTION_MISSING};
        target = lookup_symbol(result->handle, slot, binding->name, NULL);
    }
    if (target && spec->hook == HOOK_DATA && !measure_data(binding, slot, spec, target))
        return NULL;
    binding->targets[0] = target;
    if (target && binding->entry && binding->entry->kind == ABI_ADAPTED) {
        const struct adapter *adapter = slot_adapter(slot, binding->entry);
        for (int i = 0; i < MAX_TARGETS - 1 && adapter->targets[i]; i++) {
            binding->targets[i + 1] =
                lookup_symbol(result->handle, slot, adapter->targets[i], NULL);
            if (!binding->targets[i + 1]) {
                binding->lacking = adapter->targets[i];
                binding->reason = FUNCTION_REFUSED;
                return NULL;
            }
        }
    }
    return target;
}
