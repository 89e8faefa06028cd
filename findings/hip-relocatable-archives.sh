#!/usr/bin/env bash
# HIP: an archive of relocatable objects is linked without its kernels, without a message, by clang's newer offload driver.
#
# Objects of `clang -x hip -fgpu-rdc` hold bitcode for the device, which the link of the program finishes. Given as objects,
# both drivers of LLVM 19 link them and register each kernel once. Given as an archive, as every build system gives the
# objects of a library:
#  * the older driver (--no-offload-new-driver) does not look into the archive. The host link fails, since each object leaves
#    __hip_gpubin_handle_<id> undefined: a message, if one about a name that nobody wrote.
#  * the newer driver takes a member's device code only if device code of another input calls it. A program whose host code
#    launches the kernels has no such code: it links, starts and launches kernels that nobody registered. With
#    --whole-archive all are registered.
#
# A kernel's object in a shared library and in the program, each linked by itself, is registered twice by both drivers under
# one host address, since the program's symbol preempts the library's; the device variables exist twice. So relocatable HIP code needs one
# device link per process, as CUDA's does, and neither linker nor loader says so.
#
# Needs clang-19, lld-19 and clang-tools-19 of Debian (19.1.7). No header or device library of ROCm is used; HIP's runtime
# is a recorder of its calls.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bin=/usr/lib/llvm-19/bin
"$bin/clang" --version | head -n 1 >&2
export PATH=$bin:$PATH

cat >hip.h <<'EOF'
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; dim3(unsigned n) : x(n), y(1), z(1) {} };
extern "C" int __hipPushCallConfiguration(dim3 grid, dim3 block, unsigned long = 0, void * = nullptr);
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
EOF
cat >value.hip <<'EOF'
#include "hip.h"
__device__ int counter;
__device__ int value(int x) { return x + counter; }
EOF
cat >kernel.hip <<'EOF'
#include "hip.h"
__device__ int value(int);
__global__ void kernel(int *p) { *p = value(1); }
void run() { kernel<<<1, 1>>>(nullptr); }
EOF
echo 'void run(); int main() { run(); }' >main.cpp
cat >recorder.c <<'EOF'
#include <stdio.h>
static char handles[8];
static int opened;
void **__hipRegisterFatBinary(void *wrapper) { puts("code object"); return (void **)&handles[opened++]; }
void __hipRegisterFunction(void **h, void *host, char *name) { printf("kernel in code object %d\n", (int)((char *)h - handles)); }
void __hipRegisterVar(void **h) { printf("variable in code object %d\n", (int)((char *)h - handles)); }
void __hipRegisterSurface(void) {}
void __hipRegisterTexture(void) {}
void __hipUnregisterFatBinary(void **h) {}
int hipLaunchKernel(void) { puts("launch"); return 0; }
int __hipPushCallConfiguration(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
EOF
cc -w -shared -fPIC -o libamdhip64.so recorder.c

seen=$(
    for driver in --no-offload-new-driver --offload-new-driver; do
        clang=(clang++ "$driver" -fgpu-rdc -nogpuinc -nogpulib --offload-arch=gfx90a -O2 -fPIC -Qunused-arguments)
        link=("${clang[@]}" --hip-link -L. -lamdhip64 -Wl,-rpath,"$work")
        for name in value kernel; do "${clang[@]}" -x hip -c "$name.hip" -o "$name.o"; done
        rm -f libkernel.a && ar rcs libkernel.a kernel.o value.o
        echo "== $driver"
        run() {
            echo "$1:"
            "${link[@]}" "${@:2}" -o program 2>errors && ./program || grep -o 'undefined reference to .__hip_gpubin_handle' errors | sort -u
        }
        run objects main.cpp kernel.o value.o
        run archive main.cpp libkernel.a
        [ "$driver" = --no-offload-new-driver ] ||
            run 'whole archive' main.cpp -Wl,--whole-archive libkernel.a -Wl,--no-whole-archive
        "${link[@]}" -shared kernel.o value.o -o libboth.so
        run 'library and program' main.cpp kernel.o value.o -Wl,--no-as-needed -L. -lboth
    done
)
echo "$seen"
once='code object
kernel in code object 0
variable in code object 0
launch'
twice='code object
kernel in code object 0
variable in code object 0
code object
kernel in code object 1
variable in code object 1
launch'
expected="== --no-offload-new-driver
objects:
$once
archive:
undefined reference to \`__hip_gpubin_handle
library and program:
$twice
== --offload-new-driver
objects:
$once
archive:
launch
whole archive:
$once
library and program:
$twice"
[ "$seen" = "$expected" ] || { diff <(echo "$expected") <(echo "$seen"); echo 'changed: see the lines above' >&2; exit 1; }
