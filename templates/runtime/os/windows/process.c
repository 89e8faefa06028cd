/* process.c: variables, threads, memory and output of the process. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No process has more privileges than its user because of its file. */
int is_secure(void)
{
    return 0;
}

/* Values of variables that were read, since callers keep them as they keep those of getenv(). */
struct variable {
    struct variable *next;
    char *value;
};
static struct variable *variables; /* atomic; grows only, once per value */

/* Takes ownership of a value; NULL: none. */
static const char *keep_value(char *value)
{
    struct variable *first = LOAD_ACQUIRE(&variables);
    for (const struct variable *known = first; value && known; known = known->next)
        if (!strcmp(known->value, value)) {
            free(value);
            return known->value;
        }
    struct variable *variable = value ? malloc(sizeof *variable) : NULL;
    if (!variable) {
        free(value);
        return NULL;
    }
    *variable = (struct variable){first, value};
    while (!__atomic_compare_exchange_n(&variables, &variable->next, variable, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
    }
    return value;
}

/* Returns the variable's value, or NULL if unset or empty; a path with `/`. */
static const char *read_variable(const char *name, int is_path)
{
    utf16 *wide = to_utf16(name), *value = NULL;
    windows_number size = wide ? GetEnvironmentVariableW(wide, NULL, 0) : 0;
    char *text = NULL;
    if (size > 1 && (value = calloc(size, sizeof *value)) &&
        GetEnvironmentVariableW(wide, value, size) < size && *value)
        text = to_utf8(value);
    if (text && is_path)
        use_slashes(text);
    free(value);
    free(wide);
    return keep_value(text);
}

const char *read_env(const char *name)
{
    return read_variable(name, 0);
}

/* Returns the value of a variable that names files or directories. */
const char *read_path(const char *name)
{
    return read_variable(name, 1);
}

int32_t process_id(void)
{
    return (int32_t)GetCurrentProcessId();
}

/* Identifies the calling thread in its process. */
uintptr_t thread_id(void)
{
    return GetCurrentThreadId();
}

/* Returns the number by which other tools know the calling thread. */
long thread_number(void)
{
    return (long)GetCurrentThreadId();
}

void yield_thread(void)
{
    SwitchToThread();
}

struct saved_errors save_errors(void)
{
    return (struct saved_errors){errno, GetLastError()};
}

void restore_errors(struct saved_errors errors)
{
    errno = errors.number;
    SetLastError(errors.last);
}

/* 4 KiB on x64 and ARM64 (GetSystemInfo, dwPageSize). */
size_t page_size(void)
{
    return 4096;
}

/* Makes pages writable or read-only. Returns whether that was done. */
int protect_pages(void *start, size_t length, int is_writable)
{
    enum { READ_ONLY = 2, READ_WRITE = 4 }; /* PAGE_READONLY, PAGE_READWRITE */
    windows_number previous;
    return VirtualProtect(start, length, is_writable ? READ_WRITE : READ_ONLY, &previous);
}

void write_stderr(const char *data, size_t length)
{
    windows_handle file = GetStdHandle((windows_number)-12); /* STD_ERROR_HANDLE */
    windows_number written = 0;
    for (; length && WriteFile(file, data, (windows_number)length, &written, NULL) && written;
         length -= written)
        data += written;
}
