/* gcc.exe and ar.exe for Windows' cargo under wine: runs x86_64-w64-mingw32-gcc or -ar of this machine, since no package of
 * mingw-w64 for Windows is at hand. wine starts a Unix program without a handle and without pipes, so that its words and
 * its output are files, and the last line of its output is its status. */
#define WIN32_LEAN_AND_MEAN
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static char *(*unix_name)(const WCHAR *);
static char text[1 << 20];

/* The name of a file for Unix. */
static const char *translate(const char *path)
{
    WCHAR wide[MAX_PATH];
    MultiByteToWideChar(CP_ACP, 0, path, -1, wide, MAX_PATH);
    const char *name = unix_name(wide);
    return name ? name : path;
}

/* Writes the words for `@file` of binutils and GCC, in which `\` escapes a character. */
static void write_words(const char *path, int count, char **words)
{
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < count; i++) {
        int is_absolute = words[i][0] && !strncmp(words[i] + 1, ":\\", 2);
        fputc('"', file);
        for (const char *at = is_absolute ? translate(words[i]) : words[i]; *at; at++) {
            if (*at == '"')
                fputc('\\', file);
            fputc(*at == '\\' ? '/' : *at, file);
        }
        fputs("\"\n", file);
    }
    fclose(file);
}

/* Reads the output; returns whether it is complete. */
static int read_output(const char *path, int *status)
{
    FILE *file = fopen(path, "rb");
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    char *last = NULL;
    for (char *next = strstr(text, "\nended "); next; next = strstr(next + 1, "\nended "))
        last = next;
    if (!last || text[size - 1] != '\n')
        return 0;
    *status = atoi(last + strlen("\nended "));
    *last = 0;
    return 1;
}

int main(int argc, char **argv)
{
    char tool[MAX_PATH], directory[MAX_PATH], words[MAX_PATH], output[MAX_PATH], line[3 * MAX_PATH];
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    STARTUPINFOA start = {0};
    PROCESS_INFORMATION process;
    int status = 0;

    unix_name = (void *)GetProcAddress(GetModuleHandleA("kernel32"), "wine_get_unix_file_name");
    GetModuleFileNameA(NULL, tool, sizeof tool);
    *strrchr(tool, '.') = 0;
    GetTempPathA(sizeof directory, directory);
    GetTempFileNameA(directory, "arg", 0, words);
    GetTempFileNameA(directory, "out", 0, output);
    write_words(words, argc - 1, argv + 1);
    start.cb = sizeof start;
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdOutput = CreateFileA(output, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, &inherited,
                                   CREATE_ALWAYS, 0, NULL);
    start.hStdInput = start.hStdError = start.hStdOutput;
    snprintf(line, sizeof line, "sh -c \"PATH=/usr/bin:/bin x86_64-w64-mingw32-%s '@%s' 2>&1; printf '\\nended %%d\\n' $?\"", strrchr(tool, '\\') + 1,
             translate(words));
    if (!CreateProcessA("Z:\\bin\\sh", line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process))
        return 100;
    CloseHandle(start.hStdOutput);
    while (!read_output(output, &status))
        Sleep(5);
    fputs(text, status ? stderr : stdout);
    DeleteFileA(words);
    DeleteFileA(output);
    return status;
}
