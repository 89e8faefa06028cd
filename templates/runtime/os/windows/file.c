/* file.c: files and directories. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { DIRECTORY = 0x10 }; /* FILE_ATTRIBUTE_DIRECTORY */

/* A drive and a root, or a share. `C:name` depends on the drive's current directory, `/name` on the drive. */
int is_absolute(const char *path)
{
    int is_letter = (path[0] >= 'A' && path[0] <= 'Z') || (path[0] >= 'a' && path[0] <= 'z');
    if (is_letter && path[1] == ':')
        return path[2] == '/' || path[2] == '\\';
    return (path[0] == '/' || path[0] == '\\') && path[1] == path[0];
}

static int read_attributes(const char *path, struct file_attributes *attributes)
{
    utf16 *wide = to_windows_path(path);
    int is_there = wide && GetFileAttributesExW(wide, 0, attributes);
    free(wide);
    return is_there;
}

/* Returns whether a file exists, and its size, unless `size` is NULL. */
int find_file(const char *path, size_t *size)
{
    struct file_attributes attributes;
    if (!read_attributes(path, &attributes))
        return 0;
    if (size)
        *size = (size_t)((uint64_t)attributes.size_high << 32 | attributes.size_low);
    return 1;
}

int is_directory(const char *path)
{
    struct file_attributes attributes;
    return read_attributes(path, &attributes) && attributes.attributes & DIRECTORY;
}

/* Opens a file or directory for its properties; INVALID_HANDLE if there is none. */
static windows_handle open_for_properties(const char *path)
{
    enum { SHARE_ALL = 7, OPEN_EXISTING = 3, BACKUP_SEMANTICS = 0x02000000 }; /* fileapi.h, winbase.h */
    utf16 *wide = to_windows_path(path);
    windows_handle file = wide ? CreateFileW(wide, 0, SHARE_ALL, NULL, OPEN_EXISTING,
                                             BACKUP_SEMANTICS, NULL)
                               : INVALID_HANDLE;
    free(wide);
    return file;
}

static int identify(const char *path, struct file_information *information)
{
    windows_handle file = open_for_properties(path);
    int is_known = file != INVALID_HANDLE && GetFileInformationByHandle(file, information);
    if (file != INVALID_HANDLE)
        CloseHandle(file);
    return is_known;
}

int is_same_file(const char *a, const char *b)
{
    struct file_information x, y;
    return !strcmp(a, b) ||
           (identify(a, &x) && identify(b, &y) && x.volume == y.volume &&
            x.index_high == y.index_high && x.index_low == y.index_low);
}

/* Returns the path without symbolic links and junctions, as an allocated string; NULL if there is no such file. */
char *real_path(const char *path)
{
    windows_handle file = open_for_properties(path);
    if (file == INVALID_HANDLE)
        return NULL;
    windows_number size = GetFinalPathNameByHandleW(file, NULL, 0, 0);
    utf16 *wide = size ? calloc((size_t)size + 1, sizeof *wide) : NULL;
    char *real = NULL;
    if (wide && GetFinalPathNameByHandleW(file, wide, size + 1, 0) <= size)
        real = from_windows_path(wide);
    free(wide);
    CloseHandle(file);
    return real;
}

/* Drivers are no links here. */
char *dangling_reason(const char *path)
{
    (void)path;
    return NULL;
}

/* Reads the paths of directory entries whose names start with the prefix, in no order. Returns their number; the
 * caller frees each path. Sets `is_short`, unless NULL, if a shortage may be the reason for none. */
size_t read_directory(const char *directory, const char *prefix, char *paths[], size_t max_paths,
                      int *is_short)
{
    char *pattern = join(directory, "/", "*");
    utf16 *wide = pattern ? to_windows_path(pattern) : NULL;
    struct directory_entry entry;
    windows_handle search = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE;
    size_t count = 0;
    int is_entry = search != INVALID_HANDLE;
    for (; is_entry && count < max_paths; is_entry = FindNextFileW(search, &entry)) {
        char *name = to_utf8(entry.name);
        if (name && name[0] != '.' && !strncmp(name, prefix, strlen(prefix))) {
            paths[count] = join(directory, "/", name);
            count += paths[count] != NULL;
        }
        free(name);
    }
    if (is_short && !wide)
        *is_short = 1;
    if (search != INVALID_HANDLE)
        FindClose(search);
    free(wide);
    free(pattern);
    return count;
}
