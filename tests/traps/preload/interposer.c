/* A function of the library, for LD_PRELOAD: calls the next one of its name. That is a shared stub, whose
 * version is hidden: dlsym does not find it. */
#include <dlfcn.h>
#include <string.h>

int trap_answer(void);

int trap_answer(void)
{
    int (*next)(void);
    void *symbol = dlvsym(RTLD_NEXT, "trap_answer", "GPUSTUB_gpustub_shared");
    if (!symbol || dlsym(RTLD_NEXT, "trap_answer"))
        return -1;
    memcpy(&next, &symbol, sizeof next);
    return next() + 1;
}
