/* file_check.c: rejects a file by its headers, before the loader maps it. The file is untrusted: all reads
 * have fixed sizes, and pread checks their offsets. */
#include "internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef ElfW
#define ElfW(type) Elf_##type /* FreeBSD's spelling */
#endif

/* e_machine, and flags of an entry of the loader's cache (glibc, sysdeps/generic/ldconfig.h). The numbers of
 * machines are those of the gABI: <elf.h> of older systems lacks some. */
#if defined(__x86_64__)
enum { MACHINE = 62, CACHE_KIND = 0x0303 };
#elif defined(__aarch64__)
enum { MACHINE = 183, CACHE_KIND = 0x0a03 };
#elif defined(__riscv)
enum { MACHINE = 243, CACHE_KIND = 0x1003 };
#elif defined(__powerpc64__)
enum { MACHINE = 21, CACHE_KIND = 0x0503 };
#elif defined(__s390x__)
enum { MACHINE = 22, CACHE_KIND = 0x0403 };
#elif defined(__i386__)
enum { MACHINE = 3, CACHE_KIND = 0x0003 };
#elif defined(__arm__)
enum { MACHINE = 40, CACHE_KIND = 0x0903 }; /* hard-float */
#elif defined(__loongarch__)
enum { MACHINE = 258, CACHE_KIND = 0x1203 };
#endif

#if __SIZEOF_POINTER__ == 8
enum { CLASS = ELFCLASS64 };
#else
enum { CLASS = ELFCLASS32 };
#endif
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { DATA = ELFDATA2MSB };
#else
enum { DATA = ELFDATA2LSB };
#endif

enum { MAX_HEADERS = 64, MAX_NOTES = 64 };

/* Returns whether a note segment has the note of a stub library (elf_table.h). */
static int has_stub_note(int file, const ElfW(Phdr) * segment)
{
    static const char name[8] = "gpustub";
    struct {
        ElfW(Nhdr) header;
        char name[sizeof name];
    } note;
    uint64_t at = 0;
    /* Notes of opened libraries may precede it. */
    for (int i = 0; i < MAX_NOTES && at <= segment->p_filesz; i++) {
        if (segment->p_filesz - at < sizeof note ||
            pread(file, &note, sizeof note, (off_t)(segment->p_offset + at)) != sizeof note)
            return 0;
        if (note.header.n_namesz == sizeof name && !memcmp(note.name, name, sizeof name))
            return 1;
        at += sizeof note.header + ((uint64_t)note.header.n_namesz + 3) / 4 * 4 +
              ((uint64_t)note.header.n_descsz + 3) / 4 * 4;
    }
    return 0;
}

static const char *check_segments(int file, const ElfW(Ehdr) * header)
{
    ElfW(Phdr) segments[MAX_HEADERS];
    struct stat status;
    if (header->e_phentsize != sizeof *segments || fstat(file, &status))
        return NULL;
    ssize_t length = pread(file, segments, sizeof segments, (off_t)header->e_phoff);
    size_t count = length < 0 ? 0 : (size_t)length / sizeof *segments;
    uint64_t size = (uint64_t)status.st_size;
    if (count < header->e_phnum && count < MAX_HEADERS)
        return "truncated: the file ends before its program headers do";
    for (size_t i = 0; i < count && i < header->e_phnum; i++) {
        uint64_t start = segments[i].p_offset, stored = segments[i].p_filesz;
        if (segments[i].p_type == PT_LOAD && (start > size || stored > size - start))
            return "truncated: the file ends before its segments do";
        if (segments[i].p_type == PT_NOTE && has_stub_note(file, &segments[i]))
            return STUB_LIBRARY;
    }
    return NULL;
}

/* Returns the reason why a file cannot be the library, or NULL: the loader would map a truncated file, and the
 * process would end by SIGBUS; it reports a foreign e_machine as a missing file. */
const char *file_objection(const char *path)
{
    ElfW(Ehdr) header;
    const char *why = NULL;
    /* O_NONBLOCK: does not wait for a pipe's writer */
    int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file < 0)
        return NULL;
    if (pread(file, &header, sizeof header, 0) == sizeof header &&
        !memcmp(header.e_ident, ELFMAG, SELFMAG)) {
        if (header.e_ident[EI_CLASS] != CLASS || header.e_ident[EI_DATA] != DATA ||
            header.e_machine != MACHINE)
            why = FOREIGN_FILE;
        else
            why = check_segments(file, &header);
    }
    close(file);
    return why;
}

#ifdef __GLIBC__
/* ---- the loader's cache ------------------------------------------------------------------------ */

/* The loader does not list the directories of its cache. The format is that of glibc 2.2 and later
 * (sysdeps/generic/dl-cache.h); up to 2.31 an older one precedes it. Offsets count from the header. */
static const char cache_path[] = "/etc/ld.so.cache";
static const char cache_magic[] = "glibc-ld.so.cache1.1", old_cache_magic[] = "ld.so-1.7.0";

struct cache_header {
    char magic[20];
    uint32_t count, strings_size;
    uint8_t flags, unused[3];
    uint32_t extensions, reserved[3];
};
struct cache_entry {
    int32_t kind;
    uint32_t name, path, system;
    uint64_t processor;
};

enum {
    MAX_CACHE_SIZE = 1 << 24,
    OLD_HEADER_SIZE = 16,
    OLD_ENTRY_SIZE = 12
};

/* Returns the cache with a NUL behind it, and its size; NULL if it cannot be read. */
static char *read_cache(size_t *size)
{
    struct stat status;
    char *data = NULL;
    int file = open(cache_path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    if (!fstat(file, &status) && status.st_size > 0 && status.st_size < MAX_CACHE_SIZE) {
        *size = (size_t)status.st_size;
        data = calloc(1, *size + 1);
        if (data && pread(file, data, *size, 0) != (ssize_t)*size) {
            free(data);
            data = NULL;
        }
    }
    close(file);
    return data;
}

/* Returns the path of a file to which the cache leads for this name, which the caller frees; NULL if there is
 * none. `objection` NULL: of a file that could be the library; else of one that could not, for that reason. */
char *cached_file(const char *name, const char **objection)
{
    char *path = NULL;
    size_t size, start = 0;
    char *data = read_cache(&size);
    struct cache_header header;
    struct cache_entry entry;
    uint32_t old_count;
    if (data && size > OLD_HEADER_SIZE && !memcmp(data, old_cache_magic, sizeof old_cache_magic - 1)) {
        memcpy(&old_count, data + OLD_HEADER_SIZE - sizeof old_count, sizeof old_count);
        start = (OLD_HEADER_SIZE + (size_t)old_count * OLD_ENTRY_SIZE + 7) / 8 * 8;
    }
    if (data && start < size && size - start >= sizeof header) {
        size -= start;
        memcpy(&header, data + start, sizeof header);
        if (memcmp(header.magic, cache_magic, sizeof header.magic) ||
            header.count > (size - sizeof header) / sizeof entry)
            header.count = 0;
        const char *cache = data + start;
        for (uint32_t i = 0; i < header.count && !path; i++) {
            memcpy(&entry, cache + sizeof header + i * sizeof entry, sizeof entry);
            if (entry.kind != CACHE_KIND || entry.name >= size || entry.path >= size ||
                strcmp(cache + entry.name, name))
                continue;
            const char *why = file_objection(cache + entry.path);
            if (objection ? why && strcmp(why, FOREIGN_FILE) : !why)
                path = copy_string(cache + entry.path);
            if (objection)
                *objection = why;
        }
    }
    free(data);
    return path;
}
#else
char *cached_file(const char *name, const char **objection)
{
    (void)name;
    (void)objection;
    return NULL;
}
#endif
