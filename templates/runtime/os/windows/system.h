/* system.h: the functions of Windows in use, and the names that os.h leaves to the system. No header of Windows: it
 * would take longer to compile than the run time, and rename functions of the program's libraries. */
#ifndef GPUSTUB_SYSTEM_H
#define GPUSTUB_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#include "shared.h"

typedef void *windows_handle;
typedef unsigned long windows_number; /* DWORD: `long` has 32 bits */
typedef unsigned short utf16;         /* WCHAR */

/* Messages, files and modules (winbase.h, fileapi.h, libloaderapi.h). */
#define WINDOWS __declspec(dllimport)
WINDOWS windows_handle LoadLibraryExW(const utf16 *name, windows_handle, windows_number flags);
WINDOWS void *GetProcAddress(windows_handle module, const char *name);
WINDOWS int GetModuleHandleExW(windows_number flags, const utf16 *name, windows_handle *module);
WINDOWS windows_number GetModuleFileNameW(windows_handle module, utf16 *path, windows_number size);
WINDOWS windows_number GetEnvironmentVariableW(const utf16 *name, utf16 *value, windows_number size);
WINDOWS windows_number GetLastError(void);
WINDOWS void SetLastError(windows_number error);
WINDOWS int SetThreadErrorMode(windows_number mode, windows_number *previous);
WINDOWS windows_number FormatMessageW(windows_number flags, const void *source, windows_number message,
                                      windows_number language, utf16 *text, windows_number size,
                                      void *arguments);
WINDOWS int MultiByteToWideChar(unsigned code_page, windows_number flags, const char *from,
                                int from_size, utf16 *to, int to_size);
WINDOWS int WideCharToMultiByte(unsigned code_page, windows_number flags, const utf16 *from,
                                int from_size, char *to, int to_size, const char *unknown,
                                int *used_unknown);
WINDOWS windows_handle CreateFileW(const utf16 *path, windows_number access, windows_number share,
                                   void *security, windows_number disposition,
                                   windows_number flags, windows_handle sample);
WINDOWS int ReadFile(windows_handle file, void *data, windows_number size, windows_number *read,
                     void *overlapped);
WINDOWS int WriteFile(windows_handle file, const void *data, windows_number size,
                      windows_number *written, void *overlapped);
WINDOWS int CloseHandle(windows_handle handle);
WINDOWS windows_handle GetStdHandle(windows_number which);
WINDOWS windows_number GetFinalPathNameByHandleW(windows_handle file, utf16 *path,
                                                 windows_number size, windows_number flags);
WINDOWS int VirtualProtect(void *start, size_t length, windows_number protection,
                           windows_number *previous);
WINDOWS windows_number GetCurrentProcessId(void);
WINDOWS windows_number GetCurrentThreadId(void);
WINDOWS int SwitchToThread(void);

struct file_information { /* BY_HANDLE_FILE_INFORMATION */
    windows_number attributes, times[6], volume, size_high, size_low, links, index_high, index_low;
};
WINDOWS int GetFileInformationByHandle(windows_handle file, struct file_information *information);

struct file_attributes { /* WIN32_FILE_ATTRIBUTE_DATA */
    windows_number attributes, times[6], size_high, size_low;
};
WINDOWS int GetFileAttributesExW(const utf16 *path, int level, struct file_attributes *attributes);

#define IMAGE_IS_LOCKED 0 /* none is written */
enum { MAX_STORES = 64 }; /* made together by a binding: a frame of more than a page needs a function of the C run time */

enum { MAX_NAME = 260 };
struct directory_entry { /* WIN32_FIND_DATAW */
    windows_number attributes, times[6], size_high, size_low, reserved[2];
    utf16 name[MAX_NAME], short_name[14];
};
WINDOWS windows_handle FindFirstFileW(const utf16 *pattern, struct directory_entry *entry);
WINDOWS int FindNextFileW(windows_handle search, struct directory_entry *entry);
WINDOWS int FindClose(windows_handle search);

#define INVALID_HANDLE ((windows_handle)(intptr_t)-1)

/* Address of a name in a library, or NULL. */
#define find_symbol(handle, name) GetProcAddress(handle, name)

/* A library whose functions are bound. */
struct symbol_table {
    void *handle;
};
#define open_symbol_table(handle) ((struct symbol_table){handle})
#define find_function(table, name) find_symbol((table)->handle, name)

/* Errors of the last call, which a stub leaves as they are. */
struct saved_errors {
    int number;
    windows_number last;
};

/* text.c: Windows has UTF-16 and `\`, the run time UTF-8 and `/`. The caller frees both. */
INTERNAL utf16 *to_utf16(const char *text);
INTERNAL utf16 *to_windows_path(const char *path);
INTERNAL char *to_utf8(const utf16 *text);
INTERNAL char *from_windows_path(const utf16 *path);
INTERNAL void use_slashes(char *path);

/* image.c */
INTERNAL char *module_path(windows_handle module);

/* Entry points (entries.c). */
static const struct api *const gpustub1_no_api[1];

#endif
