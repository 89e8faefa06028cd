/* The one function of bcryptprimitives.dll that Rust's standard library imports. wine 8 has no such DLL. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL ProcessPrng(PBYTE data, SIZE_T size)
{
    return RtlGenRandom(data, (ULONG)size);
}
