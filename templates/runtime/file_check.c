/* file_check.c: rejects a file by its headers, before the loader maps it. The file is untrusted: all reads
 * have fixed sizes, and pread checks their offsets. */
#include "internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef ElfW
#define ElfW(type) Elf_##type /* FreeBSD's spelling */
#endif

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

enum { MAX_HEADERS = 64, MAX_NOTES_SIZE = 512 };

/* Returns whether a note segment has the note of a stub library (elf_table.h). */
static int has_stub_note(int file, const ElfW(Phdr) * segment)
{
    static const char name[8] = "gpustub";
    char notes[MAX_NOTES_SIZE];
    size_t size = segment->p_filesz < sizeof notes ? (size_t)segment->p_filesz : sizeof notes;
    ElfW(Nhdr) note;
    if (pread(file, notes, size, (off_t)segment->p_offset) != (ssize_t)size)
        return 0;
    for (size_t at = 0; size - at >= sizeof note + sizeof name;) {
        memcpy(&note, notes + at, sizeof note);
        size_t left = size - at - sizeof note;
        if (note.n_namesz == sizeof name && !memcmp(notes + at + sizeof note, name, sizeof name))
            return 1;
        if (note.n_namesz > left || note.n_descsz > left)
            return 0;
        size_t length = ((size_t)note.n_namesz + 3) / 4 * 4 + ((size_t)note.n_descsz + 3) / 4 * 4;
        if (length > left)
            return 0;
        at += sizeof note + length;
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
            return "a library of stubs, not the library";
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
        if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
            header.e_machine != MACHINE)
            why = FOREIGN_FILE;
        else
            why = check_segments(file, &header);
    }
    close(file);
    return why;
}
