/* Prints the functions of LIBRARY that reach the real one, and the results of one call through a
 * stub and one without. functions.inc: FUNCTION(name) for each function that has a stub; SIGNATURE
 * and CALL name the one that is called. Prints a line for each result. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpustub.h"

#define string 1
#define property 2
#define out 3
#define pair 4
#define plain 5
#define out_string 6
#define null 7

#if SIGNATURE == string
typedef const char *function_type(int);
#elif SIGNATURE == property
typedef int function_type(int, int *);
#elif SIGNATURE == out
typedef int function_type(int *);
#elif SIGNATURE == pair
typedef int function_type(int *, int *);
#elif SIGNATURE == out_string
typedef int function_type(int, const char **);
#elif SIGNATURE == null
typedef int function_type(void *);
#else
typedef int function_type(void);
#endif

/* The declaration of CALL must precede those that only provide addresses. */
extern function_type CALL;
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

static void call(const char *how, function_type *function)
{
    int status = 0, a = -7, b = -7;
    const char *answer = "";
#if SIGNATURE == string
    answer = function(1);
#elif SIGNATURE == property
    status = function(0, &a);
    status += function(1, &b);
#elif SIGNATURE == out
    status = function(&a);
#elif SIGNATURE == pair
    status = function(&a, &b);
#elif SIGNATURE == out_string
    status = function(1, &answer);
#elif SIGNATURE == null
    status = function(NULL);
#else
    status = function();
#endif
    printf("%s %d %d %d %s\n", how, status, a, b, answer ? answer : "NULL");
}

int main(void)
{
    int bound = 0, refused = 0, missing = 0;
    const char *volatile address = "";

    if (gpustub_load(LIBRARY) != GPUSTUB_OK) {
        printf("unavailable: %s\n%s", gpustub_reason(LIBRARY), gpustub_report(LIBRARY));
        return 1;
    }
    gpustub_counts(LIBRARY, &bound, &refused, &missing);
    printf("path %s\ncounts %d %d %d\n", gpustub_path(LIBRARY), bound, refused, missing);
    printf("version %d\n", gpustub_version(LIBRARY));
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        address = functions[i].address; /* keeps the stub */
        if (!gpustub_has_function(LIBRARY, functions[i].name))
            printf("lacks %s\n", functions[i].name);
    }

    void *handle = dlopen(gpustub_path(LIBRARY), RTLD_LAZY | RTLD_NOLOAD);
    function_type *direct;
    void *symbol = handle ? dlsym(handle, CALL_NAME) : NULL;
    if (!symbol) {
        printf("no direct call: %s\n", dlerror());
        return 1;
    }
    memcpy(&direct, &symbol, sizeof direct);
    call("stub", CALL);
    call("direct", direct);
    return address == NULL;
}
