#!/usr/bin/env bash
# CUDA 13 for Windows: cuda.lib and cudart.lib are no import libraries, and programs that link them import no DLL of CUDA.
#
# Those of nvidia-cuda-runtime-cu12 12.9.79 are: a program imports nvcuda.dll or cudart64_12.dll, and does not start without it.
# Those of nvidia-cuda-runtime 13.5.37 hold code that opens nvcuda.dll at the first call, by LoadLibraryEx from System32 only,
# and for cudart.lib the run time in NVIDIA's driver, nvcudart_hybrid64.dll. A program with cuda.lib of 12.9 takes an nvcuda.dll
# beside it, one with that of 13.5 does not. The wheel's cudart64_13.dll beside a program with cudart.lib changes nothing. Without
# a driver such programs start, and functions fail with 801 (driver) or 35 (run time). cudart_static.lib of 13.5 is no static
# run time either but the same loader; that of 12.9 and libcudart_static.a of 13.5 are. So imports do not tell that a file needs
# CUDA: in bitsandbytes 0.50.2 libbitsandbytes_cuda130.dll imports cuBLAS only, libbitsandbytes_cuda128.dll cudart64_12.dll, too.
# Needs mingw-w64's gcc and wine.
set -euo pipefail

work=$(mktemp -d)
# Wine's server writes the prefix when it ends.
trap 'WINEPREFIX=$work/prefix wineserver --wait; rm -rf "$work"' EXIT
cd "$work"
wheels=(nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-runtime==13.5.37 bitsandbytes==0.50.2)
download=(python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:)
"${download[@]}" --platform win_amd64 "${wheels[@]}"
"${download[@]}" --platform manylinux_2_17_x86_64 --dest linux nvidia-cuda-runtime==13.5.37
for wheel in *.whl linux/*.whl; do python3 -m zipfile -e "$wheel" wheels; done
export WINEPREFIX=$work/prefix WINEDEBUG=-all
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)

cat >driver.c <<'C'
#include <stdio.h>
int cuInit(unsigned flags);
int main(void) { return printf("cuInit %d\n", cuInit(0)) < 0; }
C
cat >runtime.c <<'C'
#include <stdio.h>
int cudaGetDeviceCount(int *count);
int main(void) { int count; return printf("cudaGetDeviceCount %d\n", cudaGetDeviceCount(&count)) < 0; }
C
# Parts of the C run time that cl.exe's objects need and mingw-w64 lacks: stack cookies, control flow guard.
cat >msvc.c <<'C'
unsigned long long __security_cookie = 0x2b992ddfa232;
void __security_check_cookie(unsigned long long cookie) {}
int __GSHandlerCheck(void) { return 1; }
__asm__(".globl __guard_dispatch_icall_fptr\n.data\n.p2align 3\n__guard_dispatch_icall_fptr: .quad 1f\n.text\n1: jmp *%rax\n");
C
x86_64-w64-mingw32-gcc -shared -x c - -o nvcuda.dll <<<'__declspec(dllexport) int cuInit(unsigned flags) { return 77; }'
imports() { x86_64-w64-mingw32-objdump -p "$1" | sed -nE 's/.*DLL Name: (nvcuda|cudart|cublas)/\1/p' | sort | tr '\n' ' '; }
seen=$(
    for library in wheels/nvidia/cuda_runtime/lib/x64 wheels/nvidia/cu13/lib/x64; do
        for program in driver:cuda runtime:cudart; do
            name=${program#*:}.lib
            x86_64-w64-mingw32-gcc "${program%:*}.c" msvc.c "$library/$name" -o "${program%:*}.exe" 2>log || cat log
            echo "$library/$name: $(imports "${program%:*}.exe"), $(grep -c nvcudart_hybrid64.dll "$library/$name" || true)"
        done
        "$wine" driver.exe </dev/null 2>log | tr -d '\r'
    done
    grep -c nvcudart_hybrid64.dll wheels/nvidia/cuda_runtime/lib/x64/cudart_static.lib \
        wheels/nvidia/cu13/lib/{x64/cudart_static.lib,libcudart_static.a} || true
    cp wheels/nvidia/cu13/bin/x86_64/cudart64_13.dll .
    "$wine" runtime.exe </dev/null 2>log | tr -d '\r'
    for cuda in 128 130; do echo "bitsandbytes $cuda: $(imports wheels/bitsandbytes/libbitsandbytes_cuda$cuda.dll)"; done
)
echo "$seen"
expected='wheels/nvidia/cuda_runtime/lib/x64/cuda.lib: nvcuda.dll , 0
wheels/nvidia/cuda_runtime/lib/x64/cudart.lib: cudart64_12.dll , 0
cuInit 77
wheels/nvidia/cu13/lib/x64/cuda.lib: , 0
wheels/nvidia/cu13/lib/x64/cudart.lib: , 1
cuInit 801
wheels/nvidia/cuda_runtime/lib/x64/cudart_static.lib:0
wheels/nvidia/cu13/lib/x64/cudart_static.lib:1
wheels/nvidia/cu13/lib/libcudart_static.a:0
cudaGetDeviceCount 35
bitsandbytes 128: cublas64_12.dll cublasLt64_12.dll cudart64_12.dll 
bitsandbytes 130: cublas64_13.dll cublasLt64_13.dll '
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
