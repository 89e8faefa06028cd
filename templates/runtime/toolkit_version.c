/* toolkit_version.c: which toolkit a file belongs to whose name two toolkits use (libcusparse.so.12 is that of
 * CUDA 12 and of CUDA 13), read from the file before it is loaded. Nothing that the file says is
 * trusted: all reads are of fixed sizes, and where they lead is checked by pread. */
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
    GPUSTUB1_MOST_SEGMENTS = 32,
    GPUSTUB1_MOST_ENTRIES = 256,
    GPUSTUB1_MOST_SECTIONS = 64,
    GPUSTUB1_MOST_TEXT = 8 << 20, /* twice the largest that is asked for, that of cuDNN's engines */
    GPUSTUB1_WINDOW = 4096,
    GPUSTUB1_LONGEST_PREFIX = 64,
    GPUSTUB1_LONGEST_NUMBER = 8 /* with what follows it */
};

static int32_t gpustub1_leading_number(const char *text)
{
    long number = *text >= '0' && *text <= '9' ? strtol(text, NULL, 10) : 0;
    return number < 10000 ? (int32_t)number : 0;
}

/* The number after the prefix, if the text starts with that; else 0. */
static int32_t gpustub1_number_after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) ? 0 : gpustub1_leading_number(text + length);
}

static int gpustub1_read_header(int file, ElfW(Ehdr) *header)
{
    return pread(file, header, sizeof *header, 0) == sizeof *header &&
           !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
           header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

/* The major in the first needed name that tells one; 0: none does. */
static int32_t gpustub1_needed_major(int file, const char *prefix)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[GPUSTUB1_MOST_SEGMENTS];
    ElfW(Dyn) entries[GPUSTUB1_MOST_ENTRIES];
    uint64_t strings = 0;
    int32_t major = 0;
    if (!gpustub1_read_header(file, &header) || header.e_phentsize != sizeof *segments)
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
    for (int i = 0; i < last; i++) /* an address: where in the file it lies, its segment tells */
        for (int k = 0; k < count && entries[i].d_tag == DT_STRTAB; k++)
            if (segments[k].p_type == PT_LOAD &&
                entries[i].d_un.d_ptr - segments[k].p_vaddr < segments[k].p_filesz)
                strings = (uint64_t)entries[i].d_un.d_ptr - segments[k].p_vaddr + segments[k].p_offset;
    for (int i = 0; i < last && strings && !major; i++) {
        char name[GPUSTUB1_LONGEST_PREFIX + GPUSTUB1_LONGEST_NUMBER + 1];
        if (entries[i].d_tag != DT_NEEDED)
            continue;
        length = pread(file, name, sizeof name - 1, (off_t)(strings + entries[i].d_un.d_val));
        name[length < 0 ? 0 : length] = 0;
        major = gpustub1_number_after(name, prefix);
    }
    return major;
}

/* The first number after the prefix between two offsets of the file; 0: there is none. */
static int32_t gpustub1_find_number(int file, uint64_t at, uint64_t end, const char *prefix)
{
    char window[GPUSTUB1_WINDOW + 1];
    size_t most = strlen(prefix) + GPUSTUB1_LONGEST_NUMBER, kept = 0;
    while (at < end) {
        size_t wanted = GPUSTUB1_WINDOW - kept;
        if (wanted > end - at)
            wanted = (size_t)(end - at);
        ssize_t got = pread(file, window + kept, wanted, (off_t)at);
        if (got <= 0)
            break;
        at += (uint64_t)got;
        size_t length = kept + (size_t)got;
        window[length] = 0;
        /* What may be cut off at the end is kept for the next window. */
        size_t until = at < end ? (length > most ? length - most : 0) : length;
        for (char *found = window; (found = memchr(found, *prefix, until - (size_t)(found - window)));
             found++) {
            int32_t number = gpustub1_number_after(found, prefix);
            if (number)
                return number;
        }
        kept = length - until;
        memmove(window, window + until, kept);
    }
    return 0;
}

/* The major after the prefix in the section of constants; 0: it tells none. A file that has lost its
 * section table (a linker writes one, and `strip` leaves it) tells nothing. */
static int32_t gpustub1_text_major(int file, const char *prefix)
{
    static const char wanted[] = ".rodata";
    ElfW(Ehdr) header;
    ElfW(Shdr) sections[GPUSTUB1_MOST_SECTIONS];
    if (!gpustub1_read_header(file, &header) || header.e_shentsize != sizeof *sections)
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
        if (size > GPUSTUB1_MOST_TEXT)
            size = GPUSTUB1_MOST_TEXT;
        return start + size < start ? 0 : gpustub1_find_number(file, start, start + size, prefix);
    }
    return 0;
}

/* The file beside `path` of that name; what follows `.so` is the same (libcudnn.so.9,
 * libcudnn_adv.so.9). New text; NULL if there can be none. */
static char *gpustub1_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *tail = slash ? strstr(slash, ".so") : NULL;
    struct gpustub1_text text = {NULL, 0, 0};
    if (tail) {
        gpustub1_append_bytes(&text, path, (size_t)(slash + 1 - path));
        gpustub1_append(&text, name);
        gpustub1_append(&text, tail);
    }
    return text.data;
}

static int32_t gpustub1_told(const struct gpustub1_told_by *by, const char *path)
{
    char *beside = by->beside ? gpustub1_beside(path, by->beside) : NULL;
    int32_t major = 0;
    int file = -1;
    if (beside || !by->beside) /* O_NONBLOCK: not to wait for a pipe's writer */
        file = open(beside ? beside : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(beside);
    if (file < 0)
        return 0;
    switch (by->how) {
    case GPUSTUB1_TOLD_BY_NEEDED: major = gpustub1_needed_major(file, by->prefix); break;
    case GPUSTUB1_TOLD_BY_TEXT: major = gpustub1_text_major(file, by->prefix); break;
    }
    close(file);
    return major;
}

/* The toolkit major of a file of such a name: by what stands in it, or else by where it lies
 * (site-packages/nvidia/cu13, /usr/local/cuda-13.0). 0: neither tells. */
int32_t gpustub1_told_major(const struct gpustub1_library *library, const char *path)
{
    static const char *const places[] = {"/nvidia/cu", "/cuda-"};
    int32_t major = 0;
    for (const struct gpustub1_told_by *by = library->told_by; by->prefix && !major; by++)
        major = gpustub1_told(by, path);
    char *real = major ? NULL : realpath(path, NULL);
    for (size_t i = 0; i < sizeof places / sizeof *places && real && !major; i++) {
        const char *place = strstr(real, places[i]);
        major = place ? gpustub1_leading_number(place + strlen(places[i])) : 0;
    }
    free(real);
    return major;
}
