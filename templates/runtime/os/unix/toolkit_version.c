/* toolkit_version.c: determines the toolkit of a file before it is loaded, if two toolkits use its name
 * (libcusparse.so.12 is in CUDA 12 and in CUDA 13). The file is untrusted: all reads have fixed sizes, and
 * pread checks their offsets. */
#include "internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ElfW
#define ElfW(type) Elf_##type /* FreeBSD's spelling */
#endif

enum {
    MAX_SEGMENTS = 32,
    MAX_ENTRIES = 256,
    MAX_SECTIONS = 64,
    MAX_RODATA_SIZE = 8 << 20, /* twice the largest section read, that of cuDNN's engines */
    WINDOW_SIZE = 4096,
    MAX_NUMBER_LENGTH = 8 /* with the character after it */
};

static int32_t leading_number(const char *text)
{
    unsigned long number = *text >= '0' && *text <= '9' ? strtoul(text, NULL, 10) : 0;
    return number < 10000 ? (int32_t)number : 0;
}

/* Returns the number after the prefix if the text starts with the prefix; else 0. */
static int32_t number_after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) ? 0 : leading_number(text + length);
}

static int read_elf_header(int file, ElfW(Ehdr) * header)
{
    return pread(file, header, sizeof *header, 0) == sizeof *header &&
           !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
           header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

/* Returns the major in the first DT_NEEDED name with the prefix and a number; 0: none. */
static int32_t needed_major(int file, const char *prefix)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[MAX_SEGMENTS];
    ElfW(Dyn) entries[MAX_ENTRIES];
    uint64_t strings = 0;
    int32_t major = 0;
    if (!read_elf_header(file, &header) || header.e_phentsize != sizeof *segments)
        return 0;
    ssize_t length = pread(file, segments, sizeof segments, (off_t)header.e_phoff);
    int count = length < 0 ? 0 : (int)((size_t)length / sizeof *segments);
    if (count > header.e_phnum)
        count = header.e_phnum;
    int dynamic = 0;
    while (dynamic < count && segments[dynamic].p_type != PT_DYNAMIC)
        dynamic++;
    if (dynamic == count)
        return 0;
    length = pread(file, entries, sizeof entries, (off_t)segments[dynamic].p_offset);
    int last = length < 0 ? 0 : (int)((size_t)length / sizeof *entries);
    for (int i = 0; i < last; i++)
        if (entries[i].d_tag == DT_NULL)
            last = i;
    for (int i = 0; i < last; i++) /* an address: its segment maps it to an offset in the file */
        for (int k = 0; k < count && entries[i].d_tag == DT_STRTAB; k++)
            if (segments[k].p_type == PT_LOAD &&
                entries[i].d_un.d_ptr - segments[k].p_vaddr < segments[k].p_filesz)
                strings =
                    (uint64_t)entries[i].d_un.d_ptr - segments[k].p_vaddr + segments[k].p_offset;
    for (int i = 0; i < last && strings && !major; i++) {
        char name[MAX_PREFIX_LENGTH + MAX_NUMBER_LENGTH + 1];
        if (entries[i].d_tag != DT_NEEDED)
            continue;
        length = pread(file, name, sizeof name - 1, (off_t)(strings + entries[i].d_un.d_val));
        name[length < 0 ? 0 : length] = 0;
        major = number_after(name, prefix);
    }
    return major;
}

/* Returns the first number after the prefix between two offsets of the file; 0: none. */
static int32_t find_number(int file, uint64_t at, uint64_t end, const char *prefix)
{
    char window[WINDOW_SIZE + 1];
    size_t most = strlen(prefix) + MAX_NUMBER_LENGTH, kept = 0;
    while (at < end) {
        size_t wanted = WINDOW_SIZE - kept;
        if (wanted > end - at)
            wanted = (size_t)(end - at);
        ssize_t got = pread(file, window + kept, wanted, (off_t)at);
        if (got <= 0)
            break;
        at += (uint64_t)got;
        size_t length = kept + (size_t)got;
        window[length] = 0;
        /* A match that may be cut off at the end is kept for the next window. */
        size_t until = at < end ? (length > most ? length - most : 0) : length;
        for (char *found = window;
             (found = memchr(found, *prefix, until - (size_t)(found - window))); found++) {
            int32_t number = number_after(found, prefix);
            if (number)
                return number;
        }
        kept = length - until;
        memmove(window, window + until, kept);
    }
    return 0;
}

/* Returns the major after the prefix in .rodata; 0: none, or no section table (linkers write one, and
 * `strip` keeps it). */
static int32_t rodata_major(int file, const char *prefix)
{
    static const char wanted[] = ".rodata";
    ElfW(Ehdr) header;
    ElfW(Shdr) sections[MAX_SECTIONS];
    if (!read_elf_header(file, &header) || header.e_shentsize != sizeof *sections)
        return 0;
    ssize_t length = pread(file, sections, sizeof sections, (off_t)header.e_shoff);
    int count = length < 0 ? 0 : (int)((size_t)length / sizeof *sections);
    if (count > header.e_shnum)
        count = header.e_shnum;
    for (int i = 0; i < count && header.e_shstrndx < count; i++) {
        char name[sizeof wanted];
        uint64_t at = (uint64_t)sections[header.e_shstrndx].sh_offset + sections[i].sh_name;
        if (sections[i].sh_type != SHT_PROGBITS ||
            pread(file, name, sizeof name, (off_t)at) != sizeof name ||
            memcmp(name, wanted, sizeof name))
            continue;
        uint64_t size = sections[i].sh_size, start = sections[i].sh_offset;
        if (size > MAX_RODATA_SIZE)
            size = MAX_RODATA_SIZE;
        return start + size < start ? 0 : find_number(file, start, start + size, prefix);
    }
    return 0;
}

/* Returns the path of the file of that name beside `path`, with the same text from `.so` on (libcudnn.so.9,
 * libcudnn_adv.so.9), as an allocated string; NULL if `path` has no directory or no `.so`. */
static char *sibling_path(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *tail = slash ? strstr(slash, ".so") : NULL;
    struct text text = {NULL, 0, 0};
    if (tail) {
        append_bytes(&text, path, (size_t)(slash + 1 - path));
        append(&text, name);
        append(&text, tail);
    }
    return text.data;
}

static int32_t probe_version(const struct version_probe *probe, const char *path)
{
    char *beside = probe->sibling ? sibling_path(path, probe->sibling) : NULL;
    int32_t major = 0;
    int file = -1;
    if (beside || !probe->sibling) /* O_NONBLOCK: does not wait for a pipe's writer */
        file = open(beside ? beside : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(beside);
    if (file < 0)
        return 0;
    switch (probe->kind) {
    case PROBE_NEEDED: major = needed_major(file, probe->prefix); break;
    case PROBE_RODATA: major = rodata_major(file, probe->prefix); break;
    }
    close(file);
    return major;
}

/* Returns the toolkit major of a file whose name two toolkits use: from its contents, else from its path
 * (site-packages/nvidia/cu13, /usr/local/cuda-13.0). 0: unknown. */
int32_t toolkit_major(const struct library *library, const char *path)
{
    static const char *const markers[] = {"/nvidia/cu", "/cuda-"};
    int32_t major = 0;
    for (const struct version_probe *probe = library->version_probes; probe->prefix && !major;
         probe++)
        major = probe_version(probe, path);
    char *real = major ? NULL : realpath(path, NULL);
    for (size_t i = 0; i < sizeof markers / sizeof *markers && real && !major; i++) {
        const char *found = strstr(real, markers[i]);
        major = found ? leading_number(found + strlen(markers[i])) : 0;
    }
    free(real);
    return major;
}
