/* Binds LIBRARY and prints the functions that do not reach it: `lacks NAME`. functions.inc: FUNCTION(name) for
 * each function that has a stub. GPUSTUB_LOG=json prints the numbers. */
#include <stdio.h>

#include "gpustub.h"

#define FUNCTION(name) extern char stub_##name[] __asm__(#name);
#include "functions.inc"
#undef FUNCTION

static const struct {
    const char *name;
    const char *address;
} functions[] = {
#define FUNCTION(name) {#name, stub_##name},
#include "functions.inc"
};

int main(void)
{
    const char *volatile address = "";
    if (gpustub_load(LIBRARY) != GPUSTUB_OK) {
        printf("%s", gpustub_report(LIBRARY));
        return 1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        address = functions[i].address; /* keeps the stub */
        if (!gpustub_has_function(LIBRARY, functions[i].name))
            printf("lacks %s\n", functions[i].name);
    }
    return address == NULL;
}
