/* Calls functions that describe status codes, through stubs, or in the library LIBRARY if that is defined.
 * calls.inc: CALL(function, code, whether it returns the description by pointer); functions.inc:
 * FUNCTION(function) for each. Prints a line for each call: function, code, result, description. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
static void *find(const char *name)
{
    void *library = dlopen(LIBRARY, RTLD_LAZY);
    return library ? dlsym(library, name) : NULL;
}
#else
#define FUNCTION(name) extern char stub_##name[] __asm__(#name);
#include "functions.inc"
#undef FUNCTION
static void *find(const char *name)
{
#define FUNCTION(known) if (!strcmp(name, #known)) return stub_##known;
#include "functions.inc"
    return NULL;
}
#endif

static void describe(const char *name, int code, int by_pointer)
{
    const char *(*returning)(int), *text = "";
    int (*writing)(int, const char **), status = 0;
    void *address = find(name);
    if (!address) {
        printf("%s: %s\n", name, dlerror());
        return;
    }
    memcpy(&returning, &address, sizeof address);
    memcpy(&writing, &address, sizeof address);
    if (by_pointer)
        status = writing(code, &text);
    else
        text = returning(code);
    printf("%s %d %d %s\n", name, code, status, text ? text : "NULL");
}

int main(void)
{
#define CALL(name, code, by_pointer) describe(#name, code, by_pointer);
#include "calls.inc"
    return 0;
}
