/* Common part of the generated fake libraries. A fake function logs each argument according to its own
   header, fills all memory that it may write, and reads all memory that it may read. Environment variables
   change that:

   GPUSTUB_TEST_FAKE_FIELDS=1          fills outputs by field, and adds a line `fields ARGUMENT.PATH=VALUE ...`
   GPUSTUB_TEST_FAKE_WRITES=KEY=N,...  values of outputs, with the keys of that line
   GPUSTUB_TEST_FAKE_RESULT=N          returns N
   GPUSTUB_TEST_FAKE_STATUS=N          returns N and fills nothing
   GPUSTUB_TEST_HELPER_STATUS=N        the same for the functions at the end, instead
   GPUSTUB_TEST_DRIVER_VERSION=N       version of the driver, instead of the library's own */
#include "common.h"

static struct text line, details;

/* A part of a struct according to the library's header: its name, offset and size, its value in outputs,
   and the names of its numbers. A mark of size 0 ends a list. */
struct mark {
    const char *label;
    unsigned long offset, size, number;
    const struct enumerator *names;
};

static void begin(const char *name)
{
    line.length = details.length = 0;
    add(&line, "%s", name);
}

static inline void integer(int at, unsigned long value)
{
    add(&line, " %d:%#lx", at, value);
}

static inline void real(int at, double value)
{
    add(&line, " %d:%a", at, value);
}

/* An address whose memory is not read: a handle, a buffer, a text. */
static inline void address(int at, const void *value)
{
    add(&line, " %d:%p", at, value);
}

/* A struct that is passed by value. */
static inline void value(int at, const void *from, unsigned long size, const struct field *fields)
{
    add(&line, " %d:value/%lu/%#lx", at, size, sum(from, size));
    for (; fields && fields->size; fields++)
        describe(&details, at, from, fields);
}

/* A null pointer, which only stubs pass, or callers that are asked to. */
static inline int is_null(int at, const void *pointer)
{
    if (!pointer)
        add(&line, " %d:NULL", at);
    return !pointer;
}

static inline void input(int at, const void *from, unsigned long size, const struct mark *marks,
                         const struct field *fields)
{
    if (is_null(at, from))
        return;
    add(&line, " %d:%p/in/%lu/%#lx", at, from, size, sum(from, size));
    for (; marks && marks->size; marks++) {
        unsigned long number = 0;
        memcpy(&number, (const char *)from + marks->offset, marks->size);
        add(&line, "/%s=", marks->label);
        if (marks->names) {
            const char *name = name_of(number, marks->names);
            add(&line, "%s", name ? name : "?");
        } else {
            add(&line, "%#lx", number);
        }
    }
    for (; fields && fields->size; fields++)
        describe(&details, at, from, fields);
}

static inline unsigned long written(int at, const struct field *field)
{
    char key[256];
    const char *writes = getenv("GPUSTUB_TEST_FAKE_WRITES");
    unsigned long length = snprintf(key, sizeof key, "%d.%s=", at, field->path);
    for (; writes; writes = strchr(writes, ',')) {
        writes += *writes == ',';
        if (!strncmp(writes, key, length))
            return parse(writes + length, field->names);
    }
    return field->number;
}

static inline void output(int at, void *to, unsigned long size, const struct mark *marks,
                          const struct field *fields)
{
    if (is_null(at, to))
        return;
    add(&line, " %d:%p/out/%lu", at, to, size);
    /* Some small structs have inputs, too. */
    for (const struct field *field = fields; size <= 64 && field && field->size; field++) {
        add(&details, " <");
        describe(&details, at, to, field);
    }
    if (getenv("GPUSTUB_TEST_FAKE_STATUS"))
        return;
    for (unsigned long i = 0; i < size; i++)
        ((volatile unsigned char *)to)[i] = FILLED;
    for (; marks && marks->size; marks++)
        memcpy((char *)to + marks->offset, &marks->number, marks->size);
    if (!getenv("GPUSTUB_TEST_FAKE_FIELDS"))
        return;
    for (; fields && fields->size; fields++) {
        /* Real libraries do not write reserved bytes; the others show whether an adapter copies them. */
        if (fields->path[0] != '~')
            set(to, fields, written(at, fields));
        describe(&details, at, to, fields);
    }
}

static int status_of(const char *variable, int otherwise)
{
    const char *status = getenv(variable);
    return status ? atoi(status) : otherwise;
}

static int end(void)
{
    if (getenv("GPUSTUB_TEST_FAKE_FIELDS"))
        add(&line, "\nfields%.*s", details.length, details.start);
    add(&line, "\n");
    int result = status_of("GPUSTUB_TEST_FAKE_RESULT", 0);
    return record(&line) ? status_of("GPUSTUB_TEST_FAKE_STATUS", result) : 999;
}

/* Functions that adapters call for themselves. Their records begin with `helper`, their answers depend on the
   question. */
static inline int helper(const char *name, const void *object, int number)
{
    struct text text = {.length = 0};
    add(&text, "helper %s %p %d\n", name, object, number);
    return record(&text) ? status_of("GPUSTUB_TEST_HELPER_STATUS", 0) : 999;
}

static inline int attribute_of(const char *name, int *value, int attribute, const void *object)
{
    int status = helper(name, object, attribute);
    if (!status)
        *value = 1000 + attribute;
    return status;
}

#ifdef LIBRARY_cudart
int cudaDriverGetVersion(int *version)
{
    *version = status_of("GPUSTUB_TEST_DRIVER_VERSION", LIBRARY_cudart);
    return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return attribute_of("cudaDeviceGetAttribute", value, attribute, (void *)(long)device);
}

/* The function is the address of the symbol, and one. */
int cudaGetFuncBySymbol(void **function, const void *symbol)
{
    int status = helper("cudaGetFuncBySymbol", symbol, 0);
    if (!status)
        *function = (char *)symbol + 1;
    return status;
}

static int handed_out_attribute(int *value, int attribute, void *function)
{
    return attribute_of("cuFuncGetAttribute", value, attribute, (char *)function - 1);
}

#if LIBRARY_cudart < 12000
static int handed_out_address(const char *symbol, void **function, int version, unsigned long flags)
{
    begin("cuGetProcAddress");
#else
static int handed_out_address(const char *symbol, void **function, int version, unsigned long flags,
                              int *status)
{
    begin("cuGetProcAddress_v2");
#endif
    const struct field pointer[] = {{"*", 0, 8, 0x1122334455667788, 0}, {0}};
    address(0, symbol);
    output(1, function, 8, 0, pointer);
    integer(2, version);
    integer(3, flags);
#if LIBRARY_cudart >= 12000
    const struct field number[] = {{"*", 0, 4, 0, 0}, {0}};
    output(4, status, 4, 0, number);
#endif
    return end();
}

/* Answers a request for a function of the driver that adapters call. */
static int hands_out(const char *symbol, void **function, int *status)
{
    void *found = !strcmp(symbol, "cuGetProcAddress")     ? (void *)handed_out_address
                  : !strcmp(symbol, "cuFuncGetAttribute") ? (void *)handed_out_attribute
                                                          : NULL;
    if (!found)
        return 0;
    *function = found;
    if (status)
        *status = 0;
    return 1;
}
#endif

#ifdef LIBRARY_hip
int hipDriverGetVersion(int *version)
{
    *version = status_of("GPUSTUB_TEST_DRIVER_VERSION", LIBRARY_hip);
    return 0;
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    return attribute_of("hipDeviceGetAttribute", value, attribute, (void *)(long)device);
}
#endif
