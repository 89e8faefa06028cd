#include <dlfcn.h>

#include "check.h"

int trap_value(void);
int trap_versioned(void);

static int plugin_value(void)
{
    void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin != NULL);
    int (*value)(void);
    *(void **)&value = dlsym(plugin, "plugin_value");
    CHECK(value != NULL);
    return value();
}

int main(void)
{
    /* Each in either order: neither the stubs nor the other library receives the other's calls. */
    FIRST_AND_WARM(CHECK(trap_value() == 1 && trap_versioned() == 10); CHECK(plugin_value() == 22));
    FIRST_AND_WARM(CHECK(plugin_value() == 22); CHECK(trap_value() == 1 && trap_versioned() == 10));
    PASSED();
}
