/* Images of shared.rs: a program with stubs of two packages, a plugin with stubs of its own, and libraries
 * that need the real libraries. */
#include <dlfcn.h>
#include <stdio.h>

#if defined(REAL)
int trap1(void) { return 1; }
int trap2(void) { return 2; }
int other1(void) { return 11; }

#elif defined(INNOCENT)
int trap1(void);
int INNOCENT(void);
int INNOCENT(void) { return trap1(); }

#elif defined(PLUGIN)
#include "gpustub.h"
int trap2(void);
int plugin(int *bound);
int plugin(int *bound)
{
    gpustub_counts("trap", bound, NULL, NULL);
    return trap2();
}

#else
#include "gpustub.h"
int trap1(void);
int trap2(void);
int other1(void);
int versioned(void);
int plain(void);

int main(void)
{
    printf("calls %d %d %d\n", trap1(), trap2(), other1());
    printf("load %d %d %d\n", gpustub_load("trap"), gpustub_load("other"), gpustub_load("none"));
    printf("others %d %d\n", versioned(), plain());
    void *handle = dlopen("libplugin.so", RTLD_NOW | RTLD_GLOBAL);
    int (*plugin)(int *) = NULL;
    if (handle)
        *(void **)&plugin = dlsym(handle, "plugin");
    else
        puts(dlerror());
    int bound = 0, all = 0;
    if (plugin && plugin(&bound) >= 0) {
        gpustub_counts("trap", &all, NULL, NULL);
        printf("plugin %d of %d\n", bound, all);
    }
    return 0;
}
#endif
