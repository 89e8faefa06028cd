/* A program and a DLL without a C run time of the compiler, which no package of Debian has for this machine. */
#define USED(name) int name(void);
#include "used.inc"
#undef USED
int gpustub_load(const char *library);

typedef int (*function)(void);
#define USED(name) name,
const function used[] = {
#include "used.inc"
};

/* The TLS directory (PE Format, "The .tls Section"), whose callbacks are those of .CRT$XL?. */
typedef void (*callback)(void *, unsigned, void *);
__attribute__((section(".CRT$XLA"))) const callback first_callback = 0;
__attribute__((section(".CRT$XLZ"))) const callback last_callback = 0;
__attribute__((section(".CRT$XCA"))) const function first_initializer = 0;
__attribute__((section(".CRT$XCZ"))) const function last_initializer = 0;
unsigned _tls_index;
const struct {
    void *start, *end;
    unsigned *index;
    const callback *callbacks;
    unsigned zeroes, characteristics;
} _tls_used = {0, 0, &_tls_index, &first_callback + 1, 0, 0};

int atexit(void (*function)(void))
{
    return function == 0;
}

int start(void)
{
    for (const function *initializer = &first_initializer + 1; initializer < &last_initializer; initializer++)
        (*initializer)();
    return used[0]() + gpustub_load("trap");
}

int start_dll(void *module, unsigned reason, void *reserved)
{
    (void)module, (void)reserved;
    return !reason || start();
}
