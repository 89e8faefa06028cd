#!/usr/bin/env bash
# cudart64_13.dll: without a driver it does not know its own version, nor the names of errors.
#
# The DLL of nvidia-cuda-runtime 13.5.37 has entry points only; the run time is in NVIDIA's driver (nvcudart_hybrid64.dll).
# Without a driver cudaRuntimeGetVersion fails with 35 (with 801 in 13.0.96) and cudaGetErrorName returns NULL: code that
# prints the name of that error passes NULL to `%s`. cudart64_12.dll (nvidia-cuda-runtime-cu12 12.9.79) answers both, as does
# libcudart.so.13 of 13.5.37 for Linux. cudaDriverGetVersion, which succeeds with 0 in these two, fails in the DLLs of CUDA 13.
# Needs mingw-w64's gcc, wine, and a machine without NVIDIA's driver.
set -euo pipefail

work=$(mktemp -d)
# Wine's server writes the prefix when it ends.
trap 'WINEPREFIX=$work/prefix wineserver --wait; rm -rf "$work"' EXIT
cd "$work"
download=(python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:)
"${download[@]}" --platform win_amd64 nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-runtime==13.0.96
"${download[@]}" --platform win_amd64 nvidia-cuda-runtime==13.5.37
"${download[@]}" --platform manylinux_2_17_x86_64 nvidia-cuda-runtime==13.5.37
for wheel in *.whl; do python3 -m zipfile -e "$wheel" "${wheel%.whl}"; done
export WINEPREFIX=$work/prefix WINEDEBUG=-all
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)

cat >main.c <<'C'
#include <stdio.h>
#ifdef _WIN32
#include <windows.h>
#define SYMBOL(name) (void *)GetProcAddress(LoadLibraryA(path), name)
#else
#include <dlfcn.h>
#define SYMBOL(name) dlsym(dlopen(path, RTLD_NOW), name)
#endif
int main(int count, char **arguments) {
    const char *path = arguments[1];
    int (*runtime)(int *) = SYMBOL("cudaRuntimeGetVersion"), (*driver)(int *) = SYMBOL("cudaDriverGetVersion");
    const char *(*name)(int) = SYMBOL("cudaGetErrorName"), *text = name(35);
    int runtime_version = -1, driver_version = -1;
    int statuses[] = {runtime(&runtime_version), driver(&driver_version)};
    printf("runtime %d %d, ", statuses[0], runtime_version);
    printf("driver %d %d, %s\n", statuses[1], driver_version, text ? text : "NULL");
}
C
x86_64-w64-mingw32-gcc main.c -o main.exe
cc main.c -o main -ldl
seen=$(
    for library in *12.9.79*/nvidia/cuda_runtime/bin/cudart64_12.dll *13*win*/nvidia/cu13/bin/x86_64/cudart64_13.dll; do
        cp "$library" .
        echo "$(cut -d- -f2 <<<"$library") ${library##*/}: $("$wine" main.exe "${library##*/}" </dev/null 2>log | tr -d '\r')"
    done
    echo "13.5.37 libcudart.so.13: $(./main *13.5.37*linux*/nvidia/cu13/lib/libcudart.so.13)"
)
echo "$seen"
expected='12.9.79 cudart64_12.dll: runtime 0 12090, driver 0 0, cudaErrorInsufficientDriver
13.0.96 cudart64_13.dll: runtime 801 -1, driver 801 -1, NULL
13.5.37 cudart64_13.dll: runtime 35 -1, driver 35 -1, NULL
13.5.37 libcudart.so.13: runtime 0 13050, driver 0 0, cudaErrorInsufficientDriver'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
