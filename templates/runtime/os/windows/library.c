/* library.c: the loader. Never the current directory nor PATH, which LoadLibrary searches by default ("Dynamic-link
 * library search order", learn.microsoft.com). */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { /* libloaderapi.h */
    FROM_DIRECTORY_OF_DLL = 0x100,
    FROM_SYSTEM32 = 0x800,
    FROM_DEFAULT_DIRECTORIES = 0x1000 /* the program's, those of AddDllDirectory, System32 */
};
enum { FILE_NOT_FOUND = 2, NOT_ENOUGH_MEMORY = 8, MODULE_NOT_FOUND = 126, BAD_FORMAT = 193 }; /* winerror.h */

/* Loads a file, or a bare name that the loader resolves: of a driver in System32 only. NULL: open_error() has the
 * reason. No box tells the user what is missing. */
void *open_library(const char *name, enum role role)
{
    enum { NO_BOXES = 0x8001 }; /* SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX */
    windows_number flags = is_absolute(name)      ? FROM_DIRECTORY_OF_DLL | FROM_DEFAULT_DIRECTORIES
                           : role == ROLE_TOOLKIT ? FROM_DEFAULT_DIRECTORIES
                                                  : FROM_SYSTEM32;
    windows_number mode = 0;
    utf16 *wide = to_windows_path(name);
    SetThreadErrorMode(NO_BOXES, &mode);
    windows_handle module = wide ? LoadLibraryExW(wide, NULL, flags) : NULL;
    windows_number error = wide ? GetLastError() : NOT_ENOUGH_MEMORY;
    SetThreadErrorMode(mode, NULL);
    free(wide);
    SetLastError(error);
    return module;
}

/* Returns the handle of a library that is loaded already, or NULL. It stays loaded. */
void *loaded_library(const char *name)
{
    utf16 *wide = to_windows_path(name);
    windows_handle module = NULL;
    if (wide && !GetModuleHandleExW(0, wide, &module))
        module = NULL;
    free(wide);
    return module;
}

/* Returns the path of a file beside the program, where the loader looks first, as an allocated string; NULL: none. */
static char *file_beside_program(const char *name)
{
    char *program = module_path(NULL);
    char *slash = program ? strrchr(program, '/') : NULL;
    char *path = NULL;
    size_t size;
    if (slash) {
        *slash = 0;
        path = join(program, "/", name);
    }
    if (path && !find_file(path, &size)) {
        free(path);
        path = NULL;
    }
    free(program);
    return path;
}

/* Returns why the last open_library() failed, as an allocated string; NULL if `name` does not exist. Sets
 * `is_short` for a shortage. */
char *open_error(const char *name, size_t size, int *is_short)
{
    enum { FROM_SYSTEM = 0x1000, WITHOUT_INSERTS = 0x200, MAX_MESSAGE = 512 };
    windows_number error = GetLastError();
    utf16 wide[MAX_MESSAGE];
    struct text text = {NULL, 0, 0};
    *is_short |= error == NOT_ENOUGH_MEMORY;
    char *path = !is_absolute(name)       ? file_beside_program(name)
                 : find_file(name, &size) ? copy_string(name)
                                          : NULL;
    if (!path && (error == MODULE_NOT_FOUND || error == FILE_NOT_FOUND))
        return NULL;
    if (error == BAD_FORMAT) {
        const char *why = path ? file_objection(path) : FOREIGN_FILE;
        free(path);
        return copy_string(why ? why : "not a DLL, or a damaged one");
    }
    if (path && !is_absolute(name)) {
        append(&text, path);
        append(&text, ": ");
    }
    free(path);
    windows_number length = FormatMessageW(FROM_SYSTEM | WITHOUT_INSERTS, NULL, error, 0, wide,
                                           MAX_MESSAGE, NULL);
    while (length && wide[length - 1] <= ' ') /* ends with a line break */
        wide[--length] = 0;
    char *message = length ? to_utf8(wide) : NULL;
    append(&text, error == MODULE_NOT_FOUND ? "a DLL that it needs is missing: " : "");
    append(&text, message ? message : "cannot be loaded");
    append(&text, " (error ");
    append_number(&text, (long)error);
    append(&text, ")");
    free(message);
    return text.data;
}

/* DLLs have no versions of symbols. */
void *find_versioned_symbol(void *handle, const char *name, const char *version)
{
    (void)version;
    return GetProcAddress(handle, name);
}

void clear_errors(void)
{
}

/* Windows tells nobody where it would find a library. */
int loader_finds(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return 0;
}

void add_loader_dirs(struct search_dirs *dirs)
{
    append_dir(dirs, NULL, (struct search_dir){.kind = DIR_LOADER, .found_by = "dynamic loader"});
}

/* Adds the absolute directories of PATH, where the installers of toolkits put theirs. The loader would also search
 * relative ones, and the current directory. */
void add_last_dirs(struct search_dirs *dirs)
{
    const char *path = read_path("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ";");
        struct text directory = {NULL, 0, 0};
        append_bytes(&directory, path, length);
        if (directory.data)
            add_search_dir(dirs, directory.data, "", "PATH");
        free(directory.data);
        path += length + (path[length] == ';');
    }
}

const char *missing_loader_hint(void)
{
    return "";
}
