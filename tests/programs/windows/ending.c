/* A library that shows its end, and calls after it. */
#include <stdio.h>
#include <windows.h>

static int has_ended;

int trap_value(void)
{
    if (has_ended) {
        puts("CALLED AFTER ITS END");
        fflush(stdout);
    }
    return 42;
}

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved)
{
    (void)module, (void)reserved;
    if (reason == DLL_PROCESS_DETACH) {
        has_ended = 1;
        puts("library ends");
        fflush(stdout);
    }
    return TRUE;
}
