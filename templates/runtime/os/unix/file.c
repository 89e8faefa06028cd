/* file.c: files and directories. */
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int is_absolute(const char *path)
{
    return path[0] == '/';
}

/* Returns whether a file exists, and its size, unless `size` is NULL. */
int find_file(const char *path, size_t *size)
{
    struct stat status;
    if (stat(path, &status))
        return 0;
    if (size)
        *size = (size_t)status.st_size;
    return 1;
}

int is_directory(const char *path)
{
    struct stat status;
    return !stat(path, &status) && S_ISDIR(status.st_mode);
}

int is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !strcmp(a, b) ||
           (!stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Returns the path without symbolic links, as an allocated string; NULL if there is no such file. */
char *real_path(const char *path)
{
    return realpath(path, NULL);
}

/* Returns the reason for a link without a target, as an allocated string; NULL: no such link. The link of a
 * driver often remains when the driver is removed, or is not mounted into a container. */
char *dangling_reason(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return NULL;
    target[length] = 0;
    return join("a link to ", target, ", which does not exist");
}

static int is_shortage(int error)
{
    static const int errors[] = {SHORTAGES};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (error == errors[i])
            return 1;
    return 0;
}

/* Reads the paths of directory entries whose names start with the prefix, in no order. Returns their number; the
 * caller frees each path. Sets `is_short`, unless NULL, if a shortage may be the reason for none. */
size_t read_directory(const char *directory, const char *prefix, char *paths[], size_t max_paths,
                      int *is_short)
{
    size_t count = 0;
    DIR *stream = opendir(directory);
    if (stream)
        errno = 0;
    for (struct dirent *entry; stream && count < max_paths && (entry = readdir(stream));)
        if (entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix))) {
            paths[count] = join(directory, "/", entry->d_name);
            count += paths[count] != NULL;
        }
    if (is_short && !count && is_shortage(errno))
        *is_short = 1;
    if (stream)
        closedir(stream);
    return count;
}
