/* Calls every function of LIBRARY while the library is missing, each argument a pointer to a separate
 * buffer, and compares the results with the manifest. functions.inc has for each function
 * FUNCTION(name, kind of result, number, {{argument, bytes, kind}, ...}). Prints the differences, and
 * at the end the number of called functions. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpustub.h"

enum result { STATUS, VALUE, TEXT, UNKNOWN, POINTER, NOTHING };
enum { ARGUMENTS = 32, BYTES = 640, FILLED = 0xAA };
enum kind { ZERO = 1, CODE, STRING };

struct out { int argument, bytes; enum kind kind; };

#define FUNCTION(name, ...) extern char stub_##name[] __asm__(#name);
#include "functions.inc"
#undef FUNCTION

static const struct function {
    const char *name;
    char *address;
    enum result result;
    int number;
    struct out outs[ARGUMENTS + 1];
} functions[] = {
#define FUNCTION(name, ...) {#name, stub_##name, __VA_ARGS__},
#include "functions.inc"
};

#define EIGHT(type) type, type, type, type, type, type, type, type
typedef void *function_type(EIGHT(void *), EIGHT(void *), EIGHT(void *), EIGHT(void *));

static unsigned char buffers[ARGUMENTS][BYTES];
static int wrong;

static void expect(int right, const char *name, const char *what, long number)
{
    if (right)
        return;
    printf("%s: %s %ld\n", name, what, number);
    wrong = 1;
}

static void check_buffer(const struct function *function, int argument)
{
    const unsigned char *buffer = buffers[argument];
    unsigned char expected[BYTES];
    memset(expected, FILLED, sizeof expected);
    for (const struct out *out = function->outs; out->kind; out++) {
        if (out->argument != argument)
            continue;
        if (out->kind == ZERO) {
            memset(expected, 0, (size_t)out->bytes);
        } else if (out->kind == CODE) {
            memcpy(expected, &function->number, sizeof function->number);
        } else {
            const char *text;
            memcpy(&text, buffer, sizeof text);
            memcpy(expected, buffer, sizeof text);
            expect(text && !strcmp(text, TEXT_OF_LIBRARY), function->name, "no text in argument", argument);
        }
    }
    expect(!memcmp(buffer, expected, sizeof expected), function->name, "wrong bytes in argument", argument);
}

int main(void)
{
    size_t count = sizeof functions / sizeof *functions;
    for (size_t i = 0; i < count; i++) {
        const struct function *function = &functions[i];
        function_type *call;
        memset(buffers, FILLED, sizeof buffers);
        memcpy(&call, &function->address, sizeof call);
#define BUFFERS(n) \
    buffers[n], buffers[n + 1], buffers[n + 2], buffers[n + 3], buffers[n + 4], buffers[n + 5], \
        buffers[n + 6], buffers[n + 7]
        void *result = call(BUFFERS(0), BUFFERS(8), BUFFERS(16), BUFFERS(24));
        switch (function->result) {
        case STATUS:
        case VALUE:
            expect((int)(intptr_t)result == function->number, function->name, "returned",
                   (long)(intptr_t)result);
            break;
        case TEXT:
            expect(result && !strcmp(result, TEXT_OF_LIBRARY), function->name, "returned no text", 0);
            break;
        case UNKNOWN: /* the address of a buffer is no status code */
            expect(result && !strcmp(result, "unknown error code"), function->name, "names", 0);
            break;
        case POINTER:
            expect(!result, function->name, "returned a pointer", (long)(intptr_t)result);
            break;
        case NOTHING:
            break;
        }
        for (int argument = 0; argument < ARGUMENTS; argument++)
            check_buffer(function, argument);
    }
    expect(!gpustub_is_available(LIBRARY), LIBRARY, "is available", 1);
    printf("%zu functions\n", count);
    return wrong;
}
