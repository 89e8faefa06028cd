/* dynamic.c: dynamic sections of mapped images. */
#include "internal.h"

#include "dynamic.h"

#include <string.h>

/* Returns an address of a mapped dynamic section, which glibc relocates and musl leaves as in the file. */
static const void *mapped_address(uintptr_t base, uintptr_t address)
{
    return to_pointer(address < base ? base + address : address);
}

struct dynamic read_dynamic(ElfW(Addr) base, const ElfW(Dyn) * entry)
{
    struct dynamic result = {.soname = NULL};
    size_t soname = 0;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *address = mapped_address(base, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_STRTAB: result.strings = address; break;
        case DT_SYMTAB: result.symbols = address; break;
        case DT_VERSYM: result.symbol_versions = address; break;
        case DT_GNU_HASH: result.hash = address; break;
        case DT_VERDEF: result.versions = address; break;
        case DT_VERDEFNUM: result.version_count = (size_t)entry->d_un.d_val; break;
        case DT_SONAME: soname = (size_t)entry->d_un.d_val; break;
        }
    }
    if (result.strings && soname)
        result.soname = result.strings + soname;
    return result;
}

struct dynamic dynamic_of(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = mapped_address(info->dlpi_addr, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return read_dynamic(info->dlpi_addr, entry);
}

/* Returns the symbol with a name and a value, or with the value 0 the default version of a function. NULL: there is
 * none, or no DT_GNU_HASH table. */
const ElfW(Sym) * find_entry(const struct dynamic *image, const char *name, ElfW(Addr) value)
{
    const uint32_t *table = image->hash; /* buckets, first symbol, words of the Bloom filter, its shift */
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    if (!table || !image->symbols || !image->strings || !table[0])
        return NULL;
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *chain = buckets + table[0];
    uint32_t i = buckets[hash % table[0]];
    for (int is_last = i < table[1]; !is_last; i++) {
        const ElfW(Sym) *symbol = &image->symbols[i];
        uint32_t entry = chain[i - table[1]];
        int is_default = !(image->symbol_versions && image->symbol_versions[i] & 0x8000); /* VERSYM_HIDDEN */
        int is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
        is_last = entry & 1;
        if ((entry | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            (value ? symbol->st_value == value : is_function && is_default) &&
            !strcmp(image->strings + symbol->st_name, name))
            return symbol;
    }
    return NULL;
}

/* Returns the segment of a type with an address, or NULL. */
const ElfW(Phdr) * segment_with(const struct dl_phdr_info *info, ElfW(Word) type, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == type &&
            address - (uintptr_t)(info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return segment;
    }
    return NULL;
}
