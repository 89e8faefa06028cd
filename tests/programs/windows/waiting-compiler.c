/* A C compiler that the user interrupts: writes `started` while a temporary directory exists, and waits. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

int main(void)
{
    char pattern[MAX_PATH];
    WIN32_FIND_DATAA entry;
    GetTempPathA(sizeof pattern, pattern);
    strcat(pattern, "gpustub-*");
    if (FindFirstFileA(pattern, &entry) == INVALID_HANDLE_VALUE)
        return 1;
    FILE *file = fopen("started", "w");
    fclose(file);
    Sleep(100000);
    return 0;
}
