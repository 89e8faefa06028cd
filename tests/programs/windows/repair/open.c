/* Loads DLLs by their paths, as Python loads extension modules (Python/dynload_win.c), and calls a function without
 * arguments of each: open.exe FUNCTION DLL... */
#include <stdio.h>
#include <windows.h>

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        DWORD flags = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
        HMODULE module = LoadLibraryExA(argv[i], NULL, flags);
        if (!module) {
            printf("error %lu\n", GetLastError());
            return 1;
        }
        long long (*function)(void) = (long long (*)(void))GetProcAddress(module, argv[1]);
        printf("loaded\n");
        fflush(stdout);
        if (!function)
            return 2;
        function();
    }
    return 0;
}
