#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

#ifdef ABSENT
#define ANSWER 77
#else
#define ANSWER 42
#endif

typedef int run_function(int keep);

static run_function *open_plugin(void **plugin)
{
    run_function *run;
    void *symbol;
    *plugin = dlopen(PLUGIN, RTLD_NOW);
    CHECK(*plugin);
    symbol = dlsym(*plugin, "plugin_run");
    CHECK(symbol);
    memcpy(&run, &symbol, sizeof run);
    return run;
}

/* Calls until the process ends: also between the plugin's exit hook and that. */
static void *call_always(void *argument)
{
    run_function *run;
    memcpy(&run, &argument, sizeof run);
    for (;;)
        run(0);
    return NULL;
}

int main(void)
{
    void *plugin, *symbol;
    run_function *run;
    pthread_t thread;
    for (int i = 0; i < CYCLES; i++) {
        run = open_plugin(&plugin);
        CHECK(run(0) == ANSWER);
        CHECK(dlclose(plugin) == 0);
        CHECK(!dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD));
    }
    if (!CYCLES) {
        run = open_plugin(&plugin);
        CHECK(run(1) == ANSWER);
        memcpy(&symbol, &run, sizeof symbol);
        CHECK(pthread_create(&thread, NULL, call_always, symbol) == 0);
    }
    PASSED();
}
