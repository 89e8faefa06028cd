/* A DLL with stubs of its own, whose destructor runs after the end of a library that was loaded later. */
#include <stdio.h>
#include <windows.h>

int trap_value(void);

static void show(const char *when)
{
    printf("%s: %d\n", when, trap_value());
    fflush(stdout);
}

__declspec(dllexport) void plugin(void) { show("plugin"); }

__attribute__((destructor)) static void end(void) { show("plugin ends"); }

#ifdef IN_DLLMAIN
BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved)
{
    (void)module, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH)
        show("DllMain");
    return TRUE;
}
#endif
