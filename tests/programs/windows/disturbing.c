/* A library whose start disturbs the last error. */
#include <errno.h>
#include <windows.h>

int trap_value(void) { return 1; }

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved)
{
    (void)module, (void)reserved, (void)reason;
    errno = ERANGE;
    SetLastError(ERROR_ACCESS_DENIED);
    return TRUE;
}
