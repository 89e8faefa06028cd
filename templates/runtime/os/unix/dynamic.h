/* dynamic.h: dynamic sections of mapped images. */
#ifndef GPUSTUB_DYNAMIC_H
#define GPUSTUB_DYNAMIC_H

#include <elf.h>
#include <link.h>
#ifndef ElfW
#define ElfW(type) Elf_##type /* FreeBSD's spelling */
#endif

struct dynamic {
    const char *strings, *soname;
    const ElfW(Verdef) * versions;
    size_t version_count;
    const ElfW(Sym) * symbols;
    const ElfW(Half) * symbol_versions; /* NULL: none */
    const uint32_t *hash;               /* DT_GNU_HASH; NULL: none */
    int is_filter;                      /* DT_FILTER, DT_AUXILIARY: another library comes first */
};

INTERNAL struct dynamic read_dynamic(ElfW(Addr) base, const ElfW(Dyn) * entry);
INTERNAL struct dynamic dynamic_of(const struct dl_phdr_info *info);
INTERNAL const ElfW(Sym) * find_entry(const struct dynamic *image, const char *name, ElfW(Addr) value);
INTERNAL const ElfW(Phdr) *
    segment_with(const struct dl_phdr_info *info, ElfW(Word) type, uintptr_t address);

INTERNAL int is_c_library(const struct dl_phdr_info *info);

/* loader.c */
#ifdef HAS_SYMBOL_TABLE
INTERNAL uintptr_t address_of_dlsym(void);
#endif

#endif
