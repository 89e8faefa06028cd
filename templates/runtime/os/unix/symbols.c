/* symbols.c: functions of a library, found in its own hash table: binding hundreds of them by dlsym takes twice as long.
 *
 * The result is that of dlsym, which is called for all else: a library or process that is unusual, and a symbol that is
 * absent, not a function, indirect (IFUNC), weak, unique or hidden, or has several default versions. */
#include "internal.h"

#ifdef HAS_SYMBOL_TABLE
#include "dynamic.h"

#include <string.h>

/* Most builds compile the run time without optimisation. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE__)
#define OPTIMISED __attribute__((optimize("O2")))
#else
#define OPTIMISED
#endif

struct census {
    uintptr_t dlsym;
    size_t visited, loaded; /* images of this namespace, and of all */
    int is_usual;           /* whether dlsym is the C library's */
};

static int visit_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
    struct census *census = context;
    census->visited++;
    if (size >= sizeof *info)
        census->loaded = (size_t)(info->dlpi_adds - info->dlpi_subs);
    if (segment_with(info, PT_LOAD, census->dlsym))
        census->is_usual = is_c_library(info);
    return 0;
}

/* Returns whether nothing but the library decides what dlsym returns. Another image may define dlsym, and an
 * auditor (LD_AUDIT) may replace any address: its images are in a namespace of their own. */
static int is_usual_process(void)
{
    struct census census = {.dlsym = address_of_dlsym()};
    dl_iterate_phdr(visit_loaded, &census);
    return census.is_usual && census.visited == census.loaded;
}

/* Reads the table of a library. The program's handle, which has no name, searches all images, and a filter (DT_FILTER)
 * first the library that it names. */
struct symbol_table open_symbol_table(void *handle)
{
    struct symbol_table table = {.handle = handle};
    struct link_map *map = NULL;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || !map->l_name || !*map->l_name)
        return table;
    const struct dynamic image = read_dynamic((ElfW(Addr))map->l_addr, map->l_ld);
    const uint32_t *hash = image.hash; /* as in find_entry() */
    if (!hash || !hash[0] || !image.symbols || !image.strings || image.is_filter || !is_usual_process())
        return table;
    table.base = (uintptr_t)map->l_addr;
    table.symbols = image.symbols;
    table.strings = image.strings;
    table.versions = image.symbol_versions;
    table.bucket_count = hash[0];
    table.first = hash[1];
    table.buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof *hash);
    table.chain = table.buckets + hash[0];
    return table;
}

/* Returns whether a symbol is a function whose address is its value. */
ALWAYS_INLINE int is_plain_function(const ElfW(Sym) * symbol)
{
    unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
    return symbol->st_info == ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) && symbol->st_value &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

/* Returns the address of a function in the table; NULL: dlsym decides. Versions are as glibc treats them without a
 * requested one (do_lookup_x): the numbers 0 and 1 are taken at once, else the only default version. */
OPTIMISED static void *find_in_table(const struct symbol_table *table, const char *name)
{
    const ElfW(Sym) *symbols = table->symbols, *function = NULL;
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t i = table->buckets[hash % table->bucket_count];
    for (int is_last = i < table->first; !is_last; i++) {
        uint32_t entry = table->chain[i - table->first];
        is_last = entry & 1;
        if ((entry | 1) != (hash | 1) || strcmp(table->strings + symbols[i].st_name, name))
            continue;
        ElfW(Half) version = table->versions ? table->versions[i] : 0;
        if (!is_plain_function(&symbols[i]))
            return NULL;
        if ((version & 0x7fff) < 2) {
            function = &symbols[i];
            break;
        }
        if (version & 0x8000) /* VERSYM_HIDDEN */
            continue;
        if (function)
            return NULL;
        function = &symbols[i];
    }
    return function ? to_pointer(table->base + (uintptr_t)function->st_value) : NULL;
}

/* Returns the address of a function, as dlsym does; NULL: there is none. */
void *find_function(const struct symbol_table *table, const char *name)
{
    void *function = table->bucket_count ? find_in_table(table, name) : NULL;
    return function ? function : find_symbol(table->handle, name);
}
#endif
