/* Loads and unloads a shared library with device code twice; calls it if CALL is set. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    static const char file[] = "/plugin.so";
    for (int i = 0; i < 2; i++) {
        void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL), *symbol;
        int (*launch)(void);
        if (!plugin) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        symbol = dlsym(plugin, "plugin_launch");
        memcpy(&launch, &symbol, sizeof launch);
        if (getenv("CALL"))
            launch();
        fflush(stdout);
        fprintf(stderr, "closing\n");
        dlclose(plugin);
        fprintf(stderr, "closed %s\n", dlopen(file, RTLD_NOW | RTLD_NOLOAD) ? "not" : "all");
    }
    return 0;
}
