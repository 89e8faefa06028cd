/* Loads a plugin, with `CYCLES` several times; it and the program have stubs, each with a run time of its own. A DLL that
 * the program needs calls it back at its end. */
#include <windows.h>

#include "check.h"

int trap_value(void);
void guest_at_end(void (*function)(void));

static void show(const char *when)
{
    printf("%s: %d\n", when, trap_value());
    fflush(stdout);
}

static void late(void) { show("guest ends"); }

__attribute__((destructor)) static void end(void) { show("program ends"); }

static HMODULE run_plugin(void)
{
    HMODULE module = LoadLibraryA("plugin.dll");
    CHECK(module);
    void (*plugin)(void) = (void (*)(void))(void *)GetProcAddress(module, "plugin");
    CHECK(plugin);
    plugin();
    return module;
}

int main(void)
{
    guest_at_end(late);
#ifdef CYCLES
    for (int i = 0; i < CYCLES; i++) {
        CHECK(FreeLibrary(run_plugin()));
        CHECK(!GetModuleHandleA("plugin.dll"));
    }
#else
    run_plugin();
#endif
    show("program");
    return 0;
}
