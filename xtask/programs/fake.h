/* Common part of the generated fake libraries. A fake function logs each argument according to its own
   header, fills all memory that it may write, and reads all memory that it may read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILLED 0xa5

static char line[4096];
static int length;

/* Name of a number. */
struct enumerator {
    const char *name;
    long number;
};

/* A part of a struct according to the library's header: its name, offset and size, its value in outputs,
   and the names of its numbers. A mark of size 0 ends a list. */
struct mark {
    const char *label;
    unsigned long offset, size, number;
    const struct enumerator *names;
};

static void begin(const char *name)
{
    length = snprintf(line, sizeof line, "%s", name);
}

static inline void integer(int at, unsigned long value)
{
    length += snprintf(line + length, sizeof line - length, " %d:%#lx", at, value);
}

static inline void real(int at, double value)
{
    length += snprintf(line + length, sizeof line - length, " %d:%a", at, value);
}

/* An address whose memory is not read: a handle, a buffer, a text. */
static inline void address(int at, const void *value)
{
    length += snprintf(line + length, sizeof line - length, " %d:%p", at, value);
}

static unsigned long sum(const void *from, unsigned long size)
{
    unsigned long found = size;
    for (unsigned long i = 0; i < size; i++)
        found = found * 31 + ((const volatile unsigned char *)from)[i];
    return found;
}

/* A struct that is passed by value. */
static inline void value(int at, const void *from, unsigned long size)
{
    length += snprintf(line + length, sizeof line - length, " %d:value/%lu/%#lx", at, size,
                       sum(from, size));
}

static const char *name_of(unsigned long number, const struct enumerator *names)
{
    for (; names->name; names++)
        if ((unsigned int)names->number == number)
            return names->name;
    return "?";
}

/* A null pointer, which only stubs pass, never a caller. */
static inline int is_null(int at, const void *pointer)
{
    if (!pointer)
        length += snprintf(line + length, sizeof line - length, " %d:NULL", at);
    return !pointer;
}

static inline void input(int at, const void *from, unsigned long size, const struct mark *marks)
{
    if (is_null(at, from))
        return;
    length += snprintf(line + length, sizeof line - length, " %d:%p/in/%lu/%#lx", at, from, size,
                       sum(from, size));
    for (; marks && marks->size; marks++) {
        unsigned long number = 0;
        memcpy(&number, (const char *)from + marks->offset, marks->size);
        length += snprintf(line + length, sizeof line - length, "/%s=", marks->label);
        length += marks->names ? snprintf(line + length, sizeof line - length, "%s",
                                          name_of(number, marks->names))
                               : snprintf(line + length, sizeof line - length, "%#lx", number);
    }
}

static inline void output(int at, void *to, unsigned long size, const struct mark *marks)
{
    if (is_null(at, to))
        return;
    for (unsigned long i = 0; i < size; i++)
        ((volatile unsigned char *)to)[i] = FILLED;
    for (; marks && marks->size; marks++)
        memcpy((char *)to + marks->offset, &marks->number, marks->size);
    length += snprintf(line + length, sizeof line - length, " %d:%p/out/%lu", at, to, size);
}

static int end(void)
{
    const char *log = getenv("GPUSTUB_TEST_FAKE_LOG");
    int file = log ? open(log, O_WRONLY | O_APPEND | O_CREAT, 0666) : 2;
    line[length++] = '\n';
    ssize_t written = write(file, line, length);
    if (log)
        close(file);
    return written == length ? 0 : 999;
}
