/* dynamic.c: dynamic sections of mapped images, and the data that is in the images. */
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
        case DT_FILTER:
        case DT_AUXILIARY: result.is_filter = 1; break;
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

/* ---- data ----------------------------------------------------------------------------------- */

struct object {
    const char *name;
    uintptr_t address;
    size_t size;
    struct pages pages;
};

static int visit_symbol(struct dl_phdr_info *info, size_t size, void *context)
{
    struct object *object = context;
    (void)size;
    if (!segment_with(info, PT_LOAD, object->address))
        return 0;
    const struct dynamic image = dynamic_of(info);
    const ElfW(Sym) *symbol = find_entry(&image, object->name, object->address - info->dlpi_addr);
    int is_data = symbol && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
    object->size = !image.hash ? SIZE_MAX : is_data ? (size_t)symbol->st_size : 0;
    return 1;
}

/* Returns the size of a library's object. SIZE_MAX: unknown; 0: a function, or thread-local data, which is in no
 * segment. (dladdr1 is in glibc only, and returns any of the symbols at an address.) */
size_t object_size(const char *name, const void *address)
{
    struct object object = {.name = name, .address = (uintptr_t)address};
    dl_iterate_phdr(visit_symbol, &object);
    return object.size;
}

#if IMAGE_IS_LOCKED
/* Returns whether an image is the C library, of which libdl was a part. */
int is_c_library(const struct dl_phdr_info *info)
{
    return strstr(info->dlpi_name, "/libc.so.") || strstr(info->dlpi_name, "/libdl.so.");
}

/* Stores whether the C library calls the callbacks. A static program contains it, and has no interpreter. */
static int visit_caller(struct dl_phdr_info *info, size_t size, void *context)
{
    uintptr_t caller = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    (void)size;
    if (!segment_with(info, PT_LOAD, caller))
        return 0;
    *(int *)context = is_c_library(info) || !getauxval(AT_BASE);
    return 1;
}

/* Makes opened pages read-only, if a callback of dl_iterate_phdr holds the C library's lock: else other threads may be
 * writing to them. Programs that throw many exceptions replace the function by one that reads a list of their own,
 * without a lock (ClickHouse, Seastar). */
void close_pages(struct pages pages)
{
    int is_locked = 0;
    if (pages.start && dl_iterate_phdr(visit_caller, &is_locked) && is_locked)
        protect_pages(pages.start, pages.length, 0);
}
#else
void close_pages(struct pages pages)
{
    (void)pages;
}
#endif

struct use {
    struct object object;
    int (*function)(struct pages pages, void *context);
    void *context;
    int result;
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct use *use = context;
    struct object *object = &use->object;
    const ElfW(Phdr) *segment = segment_with(info, PT_LOAD, object->address);
    const ElfW(Phdr) *relro = segment_with(info, PT_GNU_RELRO, object->address);
    uintptr_t page = page_size();
    (void)size;
    if (!segment)
        return 0;
    if (!(segment->p_flags & PF_W)) {
        object->pages.length = page;
    } else if (relro) {
        /* The loader protects whole pages up to the end, rounded down. */
        uintptr_t end = (uintptr_t)(info->dlpi_addr + relro->p_vaddr + relro->p_memsz) / page * page;
        uintptr_t first = object->address / page * page;
        uintptr_t last = (object->address + object->size + page - 1) / page * page;
        last = last < end ? last : end;
        if (first < last)
            object->pages = (struct pages){to_pointer(first), last - first};
    }
    use->result = use->function(object->pages, use->context);
    return 1;
}

/* Makes the pages of an object writable, without the lock. */
void open_pages(const void *address, size_t size)
{
    uintptr_t page = page_size();
    uintptr_t first = (uintptr_t)address / page * page;
    protect_pages(to_pointer(first), (uintptr_t)address + size - first, 1);
}

/* Calls `function` with the pages of an object that are read-only, while its image is locked (`close_pages`). The
 * loader made pages so when it had relocated the image (PT_GNU_RELRO): those of slots, and of a program's copies of constant
 * data. */
int with_read_only_pages(const void *address, size_t size,
                         int (*function)(struct pages pages, void *context), void *context)
{
    struct use use = {.object = {.address = (uintptr_t)address, .size = size},
                      .function = function,
                      .context = context};
    if (dl_iterate_phdr(visit_object, &use))
        return use.result;
    /* an image that only its own loader knows */
    open_pages(address, size);
    return function(use.object.pages, context);
}
