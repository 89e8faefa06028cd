/* Calls each function of functions.inc twice with the same arguments: the stub of this system, whose library is missing,
 * and the constant answer for macOS, whose symbol has one more underscore. Prints the differences, and the number of
 * functions. FUNCTION(name, kind of result, size of a struct, mask of the out-parameters with a text, whether argument 0
 * is a status code); codes.inc: the codes of the headers. PLACES: arguments whose place macOS' convention tells. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpustub.h"

enum result { STATUS, VALUE, TEXT, NOTHING, STRUCT };
enum { ARGUMENTS = 32, BYTES = 640, FILLED = 0xAA };

#define FUNCTION(name, ...) extern char lazy_##name[] __asm__(#name), constant_##name[] __asm__("_" #name);
#include "functions.inc"
#undef FUNCTION

static const struct function {
    const char *name;
    char *stubs[2];
    enum result result;
    int size;
    unsigned texts;
    int describes;
} functions[] = {
#define FUNCTION(name, ...) {#name, {lazy_##name, constant_##name}, __VA_ARGS__},
#include "functions.inc"
};

static const int codes[] = {
#include "codes.inc"
};

#define EIGHT(type) type, type, type, type, type, type, type, type
#define ALL EIGHT(void *), EIGHT(void *), EIGHT(void *), EIGHT(void *)
struct pair { uintptr_t low, high; };
struct area { unsigned char bytes[BYTES]; };
typedef struct pair pair_function(ALL);
typedef double number_function(double, ALL);
typedef struct area struct_function(ALL);

/* Results and out-parameters of a call. */
struct outcome {
    struct pair result;
    double number;
    struct area area;
    unsigned char buffers[ARGUMENTS][BYTES];
};
static unsigned char buffers[ARGUMENTS][BYTES];
static int wrong;

static void call(const struct function *function, int stub, void *first, int with_pointers, struct outcome *outcome)
{
    pair_function *returns_pair;
    number_function *returns_number;
    struct_function *returns_struct;
    memcpy(&returns_pair, &function->stubs[stub], sizeof returns_pair);
    memcpy(&returns_number, &function->stubs[stub], sizeof returns_number);
    memcpy(&returns_struct, &function->stubs[stub], sizeof returns_struct);
    memset(outcome, 0, sizeof *outcome);
    memset(buffers, FILLED, sizeof buffers);
#define BUFFER(n) (with_pointers ? buffers[n] : NULL)
#define BUFFERS(n) \
    (n) ? BUFFER(n) : first, BUFFER(n + 1), BUFFER(n + 2), BUFFER(n + 3), BUFFER(n + 4), BUFFER(n + 5), \
        BUFFER(n + 6), BUFFER(n + 7)
#define ARGUMENTS_OF_CALL BUFFERS(0), BUFFERS(8), BUFFERS(16), BUFFERS(24)
    if (function->result == STRUCT)
        outcome->area = returns_struct(ARGUMENTS_OF_CALL);
    else
        outcome->result = returns_pair(ARGUMENTS_OF_CALL);
    memcpy(outcome->buffers, buffers, sizeof buffers);
    if (function->result == VALUE)
        outcome->number = returns_number(1.5, ARGUMENTS_OF_CALL); /* in the register of the result */
}

/* Only the run time has a log. */
static int is_same_text(uintptr_t lazy, uintptr_t constant)
{
    const char *a = (const char *)lazy, *b = (const char *)constant;
    size_t length = b ? strlen(b) : 0;
    if (!a || !b)
        return a == b;
    return !strncmp(a, b, length) && (!a[length] || !strcmp(a + length, "; GPUSTUB_LOG=1 shows why"));
}

static void expect(int right, const struct function *function, const char *what, long number)
{
    if (right)
        return;
    printf("%s: %s %ld\n", function->name, what, number);
    wrong = 1;
}

static void compare_buffers(const struct function *function, struct outcome *lazy, struct outcome *constant)
{
    for (int i = 0; i < ARGUMENTS; i++) {
        unsigned char *a = lazy->buffers[i], *b = constant->buffers[i];
        if (i >= PLACES) /* the constant answer does not know the place of this argument */
            memset(a, FILLED, BYTES);
        if (function->texts >> i & 1) {
            uintptr_t texts[2];
            memcpy(&texts[0], a, sizeof *texts);
            memcpy(&texts[1], b, sizeof *texts);
            int is_filled = texts[0] == UINTPTR_MAX / 0xff * FILLED;
            expect(is_filled ? texts[1] == texts[0] : is_same_text(texts[0], texts[1]), function,
                   "another text in argument", i);
            memcpy(a, b, sizeof *texts);
        }
        expect(!memcmp(a, b, BYTES), function, "other bytes in argument", i);
    }
}

static void compare(const struct function *function, void *first, int with_pointers)
{
    static struct outcome lazy, constant;
    call(function, 0, first, with_pointers, &lazy);
    call(function, 1, first, with_pointers, &constant);
    compare_buffers(function, &lazy, &constant);
    long result = (long)constant.result.low;
    switch (function->result) {
    case VALUE:
        expect(lazy.result.high == constant.result.high, function, "second word", (long)constant.result.high);
        expect(!memcmp(&lazy.number, &constant.number, sizeof lazy.number), function, "number", (long)constant.number);
        /* fallthrough */
    case STATUS: expect(lazy.result.low == constant.result.low, function, "returned", result); break;
    case TEXT: expect(is_same_text(lazy.result.low, constant.result.low), function, "returned text", result); break;
    case STRUCT:
        expect(!memcmp(lazy.area.bytes, constant.area.bytes, (size_t)function->size), function, "struct", 0);
        break;
    case NOTHING: break;
    }
}

int constant_load(const char *) __asm__("_gpustub_load");
int constant_is_available(const char *) __asm__("_gpustub_is_available");
int constant_has_function(const char *, const char *) __asm__("_gpustub_has_function");
const char *constant_path(const char *) __asm__("_gpustub_path");
int constant_version(const char *) __asm__("_gpustub_version");
const char *constant_reason(const char *) __asm__("_gpustub_reason");
const char *constant_report(const char *) __asm__("_gpustub_report");
int constant_counts(const char *, int *, int *, int *) __asm__("_gpustub_counts");
int constant_set_handle(const char *, void *) __asm__("_gpustub_set_handle");

/* The functions of gpustub.h. */
static void compare_queries(void)
{
    static const struct function query = {.name = "gpustub.h"};
    int lazy[3] = {7, 7, 7}, constant[3] = {7, 7, 7};
    for (int i = 0; i < 2; i++) {
        const char *name = i ? NULL : "cudart";
        expect(gpustub_load(name) == constant_load(name), &query, "load", i);
        expect(gpustub_is_available(name) == constant_is_available(name), &query, "is_available", i);
        expect(gpustub_has_function(name, "cudaMalloc") == constant_has_function(name, "cudaMalloc"), &query,
               "has_function", i);
        expect(gpustub_path(name) == constant_path(name), &query, "path", i);
        expect(gpustub_version(name) == constant_version(name), &query, "version", i);
        expect(gpustub_counts(name, NULL, NULL, NULL) == constant_counts(name, NULL, NULL, NULL), &query, "counts", i);
        expect(gpustub_set_handle(name, NULL) == constant_set_handle(name, NULL), &query, "set_handle", i);
        expect(constant_reason(name) && *constant_reason(name), &query, "no reason", i);
        expect(!constant_report(name), &query, "report", i);
    }
    gpustub_counts("cudart", &lazy[0], &lazy[1], &lazy[2]);
    constant_counts("cudart", &constant[0], &constant[1], &constant[2]);
    expect(!constant[0] && !constant[1] && !constant[2], &query, "counts", constant[0]);
    expect(constant_set_handle("cudart", lazy) == GPUSTUB_UNAVAILABLE, &query, "a handle", 0);
}

int main(void)
{
    size_t count = sizeof functions / sizeof *functions;
    for (size_t i = 0; i < count; i++) {
        const struct function *function = &functions[i];
        compare(function, buffers[0], 1);
        compare(function, NULL, 0);
        for (size_t code = 0; function->describes && code < sizeof codes / sizeof *codes; code++)
            compare(function, (void *)(intptr_t)codes[code], 1);
    }
    compare_queries();
    printf("%zu functions\n", count);
    return wrong;
}
