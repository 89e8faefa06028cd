/* Common part of the generated callers and fake libraries: texts, and fields of structs. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes that a library has written, and those of untouched memory. */
#define FILLED 0xa5
#define BEFORE 0x5a

struct text {
    char start[1 << 16];
    int length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    int left = sizeof text->start - text->length;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->start + text->length, left, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= left) {
        fprintf(stderr, "a text of more than %zu bytes\n", sizeof text->start);
        abort();
    }
    text->length += length;
}

/* Adds a line to the file that GPUSTUB_TEST_FAKE_LOG names, or to stderr. Returns whether it was written. */
static inline int record(const struct text *text)
{
    const char *log = getenv("GPUSTUB_TEST_FAKE_LOG");
    int file = log ? open(log, O_WRONLY | O_APPEND | O_CREAT, 0666) : 2;
    ssize_t written = write(file, text->start, text->length);
    if (log)
        close(file);
    return written == text->length;
}

static int all(const unsigned char *from, unsigned long size, unsigned char what)
{
    for (unsigned long i = 0; i < size; i++)
        if (from[i] != what)
            return 0;
    return 1;
}

static unsigned long sum(const void *from, unsigned long size)
{
    unsigned long found = size;
    for (unsigned long i = 0; i < size; i++)
        found = found * 31 + ((const volatile unsigned char *)from)[i];
    return found;
}

/* Name of a number. A list ends with an empty one. */
struct enumerator {
    const char *name;
    long number;
};

static const char *name_of(unsigned long number, const struct enumerator *names)
{
    for (; names && names->name; names++)
        if ((unsigned int)names->number == number)
            return names->name;
    return NULL;
}

/* A field of a struct according to the header of the caller or library: its path, offset and size, a number for
   it, and the names of its numbers if versions differ in them. The path `*` is that of memory that is no
   struct; a `~` is before the path of reserved bytes. A field of size 0 ends a list. */
struct field {
    const char *path;
    unsigned long offset, size, number;
    const struct enumerator *names;
};

/* An array has different elements. */
static inline void set(void *start, const struct field *field, unsigned long number)
{
    unsigned char *to = (unsigned char *)start + field->offset;
    for (unsigned long i = 0; i < field->size; i++)
        to[i] = number ? (number >> 8 * (i % 8)) + i / 8 : 0;
}

/* Reads a number, possibly by its name. */
static inline unsigned long parse(const char *text, const struct enumerator *names)
{
    unsigned long length = strcspn(text, ",");
    for (; names && names->name; names++)
        if (strlen(names->name) == length && !strncmp(text, names->name, length))
            return names->number;
    char *end;
    unsigned long number = strtoul(text, &end, 0);
    if (end == text || end != text + length) {
        fprintf(stderr, "%s is no number\n", text);
        exit(4);
    }
    return number;
}

/* Adds ` ARGUMENT.PATH=VALUE`. */
static inline void describe(struct text *text, int at, const void *start, const struct field *field)
{
    const unsigned char *from = (const unsigned char *)start + field->offset;
    add(text, " %d.%s=", at, field->path);
    if (all(from, field->size, BEFORE)) {
        add(text, "before");
    } else if (all(from, field->size, FILLED)) {
        add(text, "filled");
    } else if (field->size > 8 && !all(from, field->size, 0)) {
        add(text, "%lu/%#lx", field->size, sum(from, field->size));
    } else {
        unsigned long number = 0;
        memcpy(&number, from, field->size < 8 ? field->size : 8);
        const char *name = name_of(number, field->names);
        if (name)
            add(text, "%s", name);
        else
            add(text, "%#lx", number);
    }
}
