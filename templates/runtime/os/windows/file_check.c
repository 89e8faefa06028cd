/* file_check.c: rejects a file by its headers, before the loader maps it. The file is untrusted: all reads have fixed
 * sizes. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* The offset of Machine, after the signature "PE\0\0", is at 0x3c of the file (PE Format, "COFF File Header"). DLLs for
 * ARM64EC have that of x64, as processes have that load them. */
enum { HEADER_OFFSET = 0x3c, MAX_HEADER = 4096 };

/* Returns the reason why a file cannot be the library, or NULL. */
const char *file_objection(const char *path)
{
    enum { SHARE_ALL = 7, OPEN_EXISTING = 3 };
    const windows_number read = 0x80000000; /* GENERIC_READ */
    unsigned char header[MAX_HEADER];
    windows_number length = 0;
    uint32_t offset;
    utf16 *wide = path ? to_windows_path(path) : NULL;
    windows_handle file =
        wide ? CreateFileW(wide, read, SHARE_ALL, NULL, OPEN_EXISTING, 0, NULL) : INVALID_HANDLE;
    free(wide);
    if (file == INVALID_HANDLE)
        return NULL;
    if (!ReadFile(file, header, sizeof header, &length, NULL))
        length = 0;
    CloseHandle(file);
    if (length < HEADER_OFFSET + sizeof offset || header[0] != 'M' || header[1] != 'Z')
        return NULL;
    memcpy(&offset, header + HEADER_OFFSET, sizeof offset);
    if (offset > length - 6 || memcmp(header + offset, "PE\0", 4))
        return NULL;
    int machine = header[offset + 4] | header[offset + 5] << 8;
    return machine == MACHINE ? NULL : FOREIGN_FILE;
}

/* The loader has no cache. */
char *cached_file(const char *name, const char **objection)
{
    (void)name;
    (void)objection;
    return NULL;
}
