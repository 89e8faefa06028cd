/* loader.c: functions that newer versions of glibc export under newer versions, so that an object linked there
 * does not start on older systems: dlopen and its siblings are GLIBC_2.34, stat is GLIBC_2.33.
 *
 * The functions of the loader are found at run time, in the images of the process, by their order as the
 * loader does. A reference to the old version (.symver) would need libdl.so.2 among the needed libraries for
 * glibc before 2.34, and since then no linker adds it; and it does not link with a static glibc. */
#include "internal.h"

#ifdef __GLIBC__
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __loongarch__
/* The kernel's struct is glibc's on 64-bit machines; on others its second one, for 64-bit offsets. */
#ifndef SYS_newfstatat
#define SYS_newfstatat SYS_fstatat64
#endif
#ifdef SYS_fstat64
#define SYS_FSTAT SYS_fstat64
#else
#define SYS_FSTAT SYS_fstat
#endif

int file_status(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int open_file_status(int file, struct stat *status)
{
    return (int)syscall(SYS_FSTAT, file, status);
}
#endif

#ifndef GPUSTUB_LINK_LOADER

enum { DLOPEN, DLSYM, DLVSYM, DLINFO, DLERROR, LIBC_DLOPEN, LOADER_FUNCTIONS };
static const char *const function_names[LOADER_FUNCTIONS] = {
    "dlopen", "dlsym", "dlvsym", "dlinfo", "dlerror", "__libc_dlopen_mode",
};
static void *functions[LOADER_FUNCTIONS]; /* atomic; NULL: not found */

struct dynamic_symbols {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;
    const ElfW(Half) * versions;
};

/* Returns the function's default version. An image without a DT_GNU_HASH table is skipped. */
static const ElfW(Sym) *find_function(const struct dynamic_symbols *image, const char *name)
{
    const uint32_t *hash = image->hash; /* buckets, first symbol, words of the Bloom filter, its shift */
    uint32_t value = 5381;
    for (const char *c = name; *c; c++)
        value = value * 33 + (unsigned char)*c;
    if (!hash || !image->symbols || !image->strings || !hash[0])
        return NULL;
    const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof *hash);
    const uint32_t *chain = buckets + hash[0];
    uint32_t i = buckets[value % hash[0]];
    for (int is_last = i < hash[1]; !is_last; i++) {
        const ElfW(Sym) *symbol = &image->symbols[i];
        uint32_t entry = chain[i - hash[1]];
        is_last = entry & 1;
        if ((entry | 1) == (value | 1) && symbol->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            !(image->versions && image->versions[i] & 0x8000) && /* VERSYM_HIDDEN */
            !strcmp(image->strings + symbol->st_name, name))
            return symbol;
    }
    return NULL;
}

static int visit_functions(struct dl_phdr_info *info, size_t size, void *context)
{
    struct dynamic_symbols image = {NULL, NULL, NULL, NULL};
    const ElfW(Dyn) *entry = NULL;
    void **found = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = mapped_address(info->dlpi_addr, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *address = mapped_address(info->dlpi_addr, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB: image.symbols = address; break;
        case DT_STRTAB: image.strings = address; break;
        case DT_GNU_HASH: image.hash = address; break;
        case DT_VERSYM: image.versions = address; break;
        }
    }
    for (int i = 0; i < LOADER_FUNCTIONS; i++) {
        const ElfW(Sym) *symbol = found[i] ? NULL : find_function(&image, function_names[i]);
        if (symbol)
            found[i] = to_pointer((uintptr_t)(info->dlpi_addr + symbol->st_value));
    }
    return 0;
}

/* Looks the functions up; all threads find the same. */
static void find_functions(void)
{
    void *found[LOADER_FUNCTIONS] = {NULL};
    dl_iterate_phdr(visit_functions, found);
    if (!found[DLOPEN] && found[LIBC_DLOPEN]) {
        /* Before glibc 2.34, and nothing in the process needs libdl: libc's own dlopen, of that time. */
        void *(*libc_dlopen)(const char *, int);
        memcpy(&libc_dlopen, &found[LIBC_DLOPEN], sizeof libc_dlopen);
        libc_dlopen("libdl.so.2", (int)(RTLD_LAZY | 0x80000000)); /* __RTLD_DLOPEN */
        dl_iterate_phdr(visit_functions, found);
    }
    for (int i = 0; i < LOADER_FUNCTIONS; i++)
        if (found[i])
            STORE_RELEASE(&functions[i], found[i]);
}

/* Writes the address of a function to a pointer. Returns 0 if there is none, in a static program. */
static int get_function(int index, void *pointer)
{
    void *function = LOAD_ACQUIRE(&functions[index]);
    if (!function) {
        find_functions();
        function = LOAD_ACQUIRE(&functions[index]);
    }
    memcpy(pointer, &function, sizeof function);
    return function != NULL;
}

void *loader_dlopen(const char *file, int mode)
{
    void *(*function)(const char *, int);
    return get_function(DLOPEN, &function) ? function(file, mode) : NULL;
}

void *loader_dlsym(void *handle, const char *name)
{
    void *(*function)(void *, const char *);
    return get_function(DLSYM, &function) ? function(handle, name) : NULL;
}

void *loader_dlvsym(void *handle, const char *name, const char *version)
{
    void *(*function)(void *, const char *, const char *);
    return get_function(DLVSYM, &function) ? function(handle, name, version) : NULL;
}

int loader_dlinfo(void *handle, int request, void *result)
{
    int (*function)(void *, int, void *);
    return get_function(DLINFO, &function) ? function(handle, request, result) : -1;
}

char *loader_dlerror(void)
{
    static char none[] = "a static program: build the stubs with -DGPUSTUB_LINK_LOADER=1";
    char *(*function)(void);
    return get_function(DLERROR, &function) ? function() : none;
}

#endif
#endif
