/* system.h: headers of Unix systems with ELF, and the names that os.h leaves to them. */
#ifndef GPUSTUB_SYSTEM_H
#define GPUSTUB_SYSTEM_H

#ifndef _GNU_SOURCE
#ifdef _FEATURES_H /* glibc's headers decide at the first of them */
#error "a header comes first, by -include or in a unity build: compile with -D_GNU_SOURCE"
#endif
#define _GNU_SOURCE /* dl_iterate_phdr, dlvsym, dladdr */
#endif
#if __SIZEOF_POINTER__ == 4 && !defined(_FILE_OFFSET_BITS)
#ifdef _FEATURES_H
#error "a header comes first: compile with -D_FILE_OFFSET_BITS=64"
#endif
#define _FILE_OFFSET_BITS 64 /* libraries of more than 2 GiB; struct stat is the kernel's stat64 */
#endif

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shared.h"

/* Names of glibc whose newest versions would be needed; see loader.c. GPUSTUB_LINK_LOADER: references for the
 * linker, which a static glibc needs. */
#ifdef __GLIBC__
#ifndef GPUSTUB_LINK_LOADER
INTERNAL void *loader_dlopen(const char *file, int mode);
INTERNAL void *loader_dlsym(void *handle, const char *name);
INTERNAL void *loader_dlvsym(void *handle, const char *name, const char *version);
INTERNAL int loader_dlinfo(void *handle, int request, void *result);
INTERNAL char *loader_dlerror(void);
#define dlopen loader_dlopen
#define dlsym loader_dlsym
#define dlvsym loader_dlvsym
#define dlinfo loader_dlinfo
#define dlerror loader_dlerror
#endif
#ifndef __loongarch__ /* no system call of older kernels; its oldest glibc is newer than 2.33 */
INTERNAL int file_status(const char *path, struct stat *status);
#define stat(path, status) file_status(path, status)
INTERNAL int open_file_status(int file, struct stat *status);
#define fstat(file, status) open_file_status(file, status)
#endif
/* glibc 2.38's headers redirect these to versions for C23, which parse 0b as well. */
unsigned long c17_strtoul(const char *text, char **end, int base) __asm__("strtoul");
#define strtoul c17_strtoul
long long c17_strtoll(const char *text, char **end, int base) __asm__("strtoll");
#define strtoll c17_strtoll
#endif

/* Whether callbacks of dl_iterate_phdr run one at a time in the process, which then is the lock for read-only pages that
 * several threads, or several libraries of stubs, write to: each library has its own state. glibc holds
 * _dl_load_write_lock, which the thread may lock again; musl holds no lock, so that one library would close the pages that
 * another one writes to. */
#ifdef __GLIBC__
#define IMAGE_IS_LOCKED 1
#else
#define IMAGE_IS_LOCKED 0
#endif

enum { MAX_STORES = 768 }; /* made together by a binding: 12 KB of the stack, where dlopen was before */

/* Address of a name in a library, or NULL. */
#define find_symbol(handle, name) dlsym(handle, name)

/* A library whose functions are bound (symbols.c). */
#if defined(__GLIBC__) && !defined(GPUSTUB_LINK_LOADER)
#define HAS_SYMBOL_TABLE 1
struct symbol_table {
    void *handle;
    uintptr_t base;
    const void *symbols;
    const char *strings;
    const uint16_t *versions; /* NULL: none */
    const uint32_t *buckets, *chain;
    uint32_t bucket_count; /* 0: only dlsym is used */
    uint32_t first;        /* symbol of the first entry of `chain` */
};
INTERNAL struct symbol_table open_symbol_table(void *handle);
INTERNAL void *find_function(const struct symbol_table *table, const char *name);
#else
struct symbol_table {
    void *handle;
};
#define open_symbol_table(handle) ((struct symbol_table){handle})
#define find_function(table, name) find_symbol((table)->handle, name)
#endif

/* Errors of the last call, which a stub leaves as they are. */
struct saved_errors {
    int number;
};

/* Errors that may be gone at the next attempt. */
#define SHORTAGES EMFILE, ENFILE, ENOMEM, EAGAIN, EINTR

#endif
