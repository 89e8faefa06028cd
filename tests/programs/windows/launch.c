/* Runs a command with a directory for temporary files, which wine does not take from Unix, and writes `ended`. Ctrl-C ends the
 * command alone; wine's exit code is then 0. */
#include <stdio.h>
#include <windows.h>

static BOOL WINAPI ignore(DWORD event)
{
    (void)event;
    return TRUE;
}

int main(int argc, char **argv)
{
    STARTUPINFOA start = {0};
    PROCESS_INFORMATION process;
    if (argc != 3 || !SetConsoleCtrlHandler(ignore, TRUE))
        return 100;
    SetEnvironmentVariableA("TMP", argv[1]);
    SetEnvironmentVariableA("TEMP", argv[1]);
    start.cb = sizeof start;
    if (!CreateProcessA(NULL, argv[2], NULL, NULL, FALSE, 0, NULL, NULL, &start, &process))
        return 101;
    WaitForSingleObject(process.hProcess, INFINITE);
    FILE *file = fopen("ended", "w");
    fclose(file);
    return 0;
}
