/* text.c: conversions between UTF-8 and UTF-16, and of paths. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { UTF8 = 65001 }; /* CP_UTF8 */

/* Returns the text as an allocated string; NULL if memory is short. Malformed UTF-8 becomes U+FFFD. */
utf16 *to_utf16(const char *text)
{
    int length = MultiByteToWideChar(UTF8, 0, text, -1, NULL, 0);
    utf16 *wide = length > 0 ? calloc((size_t)length, sizeof *wide) : NULL;
    if (wide)
        MultiByteToWideChar(UTF8, 0, text, -1, wide, length);
    return wide;
}

/* As to_utf16(), with `\`: the loader takes no `/` in paths (LoadLibraryExW). */
utf16 *to_windows_path(const char *path)
{
    utf16 *wide = to_utf16(path);
    for (utf16 *c = wide; c && *c; c++)
        if (*c == '/')
            *c = '\\';
    return wide;
}

/* Returns the text as an allocated string; NULL if memory is short. */
char *to_utf8(const utf16 *text)
{
    int length = WideCharToMultiByte(UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = length > 0 ? calloc((size_t)length, 1) : NULL;
    if (narrow)
        WideCharToMultiByte(UTF8, 0, text, -1, narrow, length, NULL, NULL);
    return narrow;
}

/* Replaces each `\` by `/`. */
void use_slashes(char *path)
{
    for (; *path; path++)
        if (*path == '\\')
            *path = '/';
}

/* As to_utf8(), with `/`, and without the prefix of long paths (`\\?\C:\`, `\\?\UNC\server\`). */
char *from_windows_path(const utf16 *path)
{
    char *narrow = to_utf8(path);
    if (narrow)
        use_slashes(narrow);
    if (!narrow || strncmp(narrow, "//?/", 4))
        return narrow;
    int is_share = !strncmp(narrow + 4, "UNC/", 4);
    char *plain = join(is_share ? "//" : "", narrow + (is_share ? 8 : 4), "");
    free(narrow);
    return plain;
}
