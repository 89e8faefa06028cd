#!/usr/bin/env bash
# NVRTC for Windows: nvrtc-builtins64_*.dll beside nvrtc64_*.dll is not found, nor in a directory of os.add_dll_directory.
#
# nvrtc64_130_0.dll of nvidia-cuda-nvrtc 13.5.37 does not import the DLL of builtins but opens it by bare name when it compiles
# (LoadLibrary: the program's directory, System32, the current directory, PATH). The directory of the calling DLL is not
# among these; LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR and LOAD_WITH_ALTERED_SEARCH_PATH, with which NVRTC itself is loaded, hold for
# its imports only, and AddDllDirectory (os.add_dll_directory) for calls with LOAD_LIBRARY_SEARCH flags. So NVRTC loads, and
# a compilation fails with 7. It works after SetDllDirectory, or once the program has loaded the builtins by path, before
# NVRTC or after: the loader knows a DLL by its base name. 11.8 and 12.9 do the same. Needs mingw-w64's gcc and wine.
set -euo pipefail

work=$(mktemp -d)
# Wine's server writes the prefix when it ends.
trap 'WINEPREFIX=$work/prefix wineserver --wait; rm -rf "$work"' EXIT
cd "$work"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform win_amd64 \
    nvidia-cuda-nvrtc==13.5.37
python3 -m zipfile -e ./*.whl wheel
export WINEPREFIX=$work/prefix WINEDEBUG=-all
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)

cat >main.c <<'C'
#define _WIN32_WINNT 0x0602
#include <windows.h>
#include <stdio.h>
#include <string.h>
static HMODULE load(const char *directory, const char *name, DWORD flags) {
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s\\%s", directory, name);
    return LoadLibraryExA(path, NULL, flags);
}
int main(int count, char **arguments) {
    const char *way = arguments[1], *directory = arguments[2], *builtins = "nvrtc-builtins64_135.dll";
    DWORD flags = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    WCHAR wide[MAX_PATH];
    MultiByteToWideChar(CP_ACP, 0, directory, -1, wide, MAX_PATH);
    if (!strcmp(way, "AddDllDirectory")) AddDllDirectory(wide);
    if (!strcmp(way, "SetDllDirectory")) SetDllDirectoryA(directory);
    if (!strcmp(way, "builtins-first")) load(directory, builtins, flags);
    int altered = !strcmp(way, "altered-search-path");
    HMODULE nvrtc = load(directory, "nvrtc64_130_0.dll", altered ? LOAD_WITH_ALTERED_SEARCH_PATH : flags);
    if (!strcmp(way, "builtins-after")) load(directory, builtins, flags);
    int (*create)(void **, const char *, const char *, int, void *, void *);
    create = (void *)GetProcAddress(nvrtc, "nvrtcCreateProgram");
    int (*compile)(void *, int, const char **) = (void *)GetProcAddress(nvrtc, "nvrtcCompileProgram");
    void *program = NULL;
    int created = create(&program, "__global__ void k(int *p) { *p = 1; }", "k.cu", 0, NULL, NULL);
    printf("%s: %d %d\n", way, created, compile(program, 0, NULL));
}
C
x86_64-w64-mingw32-gcc main.c -o main.exe
directory=Z:$(tr / '\\' <<<"$work/wheel/nvidia/cu13/bin/x86_64")
seen=$(
    ls wheel/nvidia/cu13/bin/x86_64
    for way in plain altered-search-path AddDllDirectory SetDllDirectory builtins-first builtins-after; do
        "$wine" main.exe $way "$directory" </dev/null 2>log | tr -d '\r'
    done
)
echo "$seen"
expected='nvrtc-builtins64_135.dll
nvrtc64_130_0.dll
plain: 0 7
altered-search-path: 0 7
AddDllDirectory: 0 7
SetDllDirectory: 0 0
builtins-first: 0 0
builtins-after: 0 0'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
