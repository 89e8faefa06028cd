/* needed.c: which toolkit a file belongs to whose name two toolkits use (libcusparse.so.12 is that of
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

enum { GPUSTUB1_MOST_SEGMENTS = 32, GPUSTUB1_MOST_ENTRIES = 256, GPUSTUB1_LONGEST_NEEDED = 64 };

static int32_t gpustub1_leading_number(const char *text)
{
    long number = *text >= '0' && *text <= '9' ? strtol(text, NULL, 10) : 0;
    return number < 10000 ? (int32_t)number : 0;
}

/* The major in the first needed name that tells one; 0: none does. */
static int32_t gpustub1_needed_major(int file, const char *const *told_by)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[GPUSTUB1_MOST_SEGMENTS];
    ElfW(Dyn) entries[GPUSTUB1_MOST_ENTRIES];
    uint64_t strings = 0;
    ssize_t length = pread(file, &header, sizeof header, 0);
    if (length != sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
        header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header.e_phentsize != sizeof *segments)
        return 0;
    length = pread(file, segments, sizeof segments, (off_t)header.e_phoff);
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
    for (int i = 0; i < last && strings; i++) {
        char name[GPUSTUB1_LONGEST_NEEDED + 1];
        if (entries[i].d_tag != DT_NEEDED)
            continue;
        length = pread(file, name, sizeof name - 1, (off_t)(strings + entries[i].d_un.d_val));
        name[length < 0 ? 0 : length] = 0;
        for (const char *const *prefix = told_by; *prefix; prefix++) {
            int32_t major = strncmp(name, *prefix, strlen(*prefix))
                                ? 0
                                : gpustub1_leading_number(name + strlen(*prefix));
            if (major)
                return major;
        }
    }
    return 0;
}

/* The toolkit major of a file of such a name: by what it needs, or else by where it lies
 * (site-packages/nvidia/cu13, /usr/local/cuda-13.0). 0: neither tells. */
int32_t gpustub1_told_major(const struct gpustub1_library *library, const char *path)
{
    static const char *const places[] = {"/nvidia/cu", "/cuda-"};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for a pipe's writer */
    int32_t major = file < 0 ? 0 : gpustub1_needed_major(file, library->told_by);
    if (file >= 0)
        close(file);
    char *real = major ? NULL : realpath(path, NULL);
    for (size_t i = 0; i < sizeof places / sizeof *places && real && !major; i++) {
        const char *place = strstr(real, places[i]);
        major = place ? gpustub1_leading_number(place + strlen(places[i])) : 0;
    }
    free(real);
    return major;
}
