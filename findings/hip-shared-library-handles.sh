#!/usr/bin/env bash
# HIP: relocatable objects in a shared library whose device link is in another image: a handle of its own is unregistered
# once per library.
#
# Objects of `clang -x hip -fgpu-rdc --no-offload-new-driver` (LLVM 19) leave two symbols undefined, __hip_fatbin_<id> and the
# hidden __hip_gpubin_handle_<id>. So they cannot be in a shared library that leaves their device link to another image, as
# CUDA's can: GNU ld reports the hidden symbol. An object's constructor registers the code object if its handle is null; its
# destructor unregisters it if the handle is not null, and clears the handle.
#  * With handles of its own, which a constructor of priority 101 fills in before those of the objects, a library works. But
#    each library clears its own handle alone, so that at exit the code object is unregistered once for each library, and
#    after the first the kernels of the others are gone.
#  * Hidden functions __hipRegisterFatBinary and __hipUnregisterFatBinary in each library, of which the first asks the image
#    with the device link for the handle, need no order of constructors. The code object is unregistered once, by that image.
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
struct dim3 { unsigned x, y, z; dim3(unsigned n) : x(n), y(1), z(1) {} };
extern "C" int __hipPushCallConfiguration(dim3 grid, dim3 block, unsigned long = 0, void * = nullptr);
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
EOF
cat >recorder.c <<'EOF'
#include <stdio.h>
static char handle;
void **__hipRegisterFatBinary(void *wrapper) { puts("code object"); return (void **)&handle; }
void __hipRegisterFunction(void **h, void *host, char *name) { printf("%s with %s\n", name, h == (void **)&handle ? "handle" : "null"); }
void __hipRegisterVar(void) {}
void __hipRegisterSurface(void) {}
void __hipRegisterTexture(void) {}
void __hipUnregisterFatBinary(void **h) { puts("unregistered"); fflush(stdout); }
int hipLaunchKernel(void) { puts("launch"); return 0; }
int __hipPushCallConfiguration(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
EOF
cc -w -shared -fPIC -o libamdhip64.so recorder.c
clang=(clang++ --no-offload-new-driver -fgpu-rdc -nogpuinc -nogpulib --offload-arch=gfx90a -O2 -fPIC -Qunused-arguments)
for name in a b; do
    printf '#include "hip.h"\n__global__ void %s() {}\nextern "C" void run_%s() { %s<<<1, 1>>>(); }\n' $name $name $name >$name.hip
    "${clang[@]}" -x hip -c $name.hip -o $name.o
    declare id_$name="$(nm $name.o | sed -n 's/.*__hip_cuid//p')"
done
echo 'void run_a(void); void run_b(void); int main(void) { run_a(); run_b(); }' >main.c
"${clang[@]}" --hip-link --cuda-device-only a.o b.o -o device.hipfb

# The image with the device link: one function for both libraries.
cat >link.c <<'EOF'
extern const char code[] __attribute__((visibility("hidden")));
__asm__(".section .hip_fatbin,\"a\"\n.p2align 12\n.globl code\n.hidden code\ncode: .incbin \"device.hipfb\"\n.text");
void **__hipRegisterFatBinary(const void *);
void __hipUnregisterFatBinary(void **);
static struct { unsigned magic, version; const char *code; void *unused; } wrapper = {0x48495046, 1, code, 0};
static void **handle;
void **linked(void) { return handle ? handle : (handle = __hipRegisterFatBinary(&wrapper)); }
#ifdef UNREGISTERS
__attribute__((destructor)) static void end(void) { __hipUnregisterFatBinary(handle); }
#endif
EOF
# handles or functions of a library.
cat >handles.c <<'EOF'
void **linked(void);
void **HANDLE __attribute__((visibility("hidden")));
const char FATBIN[8] __attribute__((visibility("hidden")));
__attribute__((constructor(101))) static void fill(void) { HANDLE = linked(); }
EOF
cat >functions.c <<'EOF'
void **linked(void);
void **HANDLE __attribute__((visibility("hidden")));
const char FATBIN[8] __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) void **__hipRegisterFatBinary(const void *wrapper) { return linked(); }
__attribute__((visibility("hidden"))) void __hipUnregisterFatBinary(void **handle) {}
EOF

seen=$(
    echo "objects alone:"
    cc -shared a.o -L. -lamdhip64 -o liba.so 2>errors || grep -o "hidden symbol .__hip_gpubin_handle_" errors | sort -u
    for way in handles functions; do
        echo "$way:"
        for name in a b; do
            id=id_$name
            cc -shared -fPIC "-DHANDLE=__hip_gpubin_handle${!id}" "-DFATBIN=__hip_fatbin${!id}" $way.c $name.o -o lib$name.so
        done
        unregisters=()
        [ $way = handles ] || unregisters=(-DUNREGISTERS)
        cc -shared -fPIC "${unregisters[@]}" link.c -L. -lamdhip64 -o liblink.so
        cc main.c -L. -Wl,--no-as-needed -la -lb -llink -lamdhip64 -lstdc++ -Wl,-rpath,"$work" -o program
        ./program
    done
)
echo "$seen"
registered='code object
_Z1bv with handle
_Z1av with handle
launch
launch'
expected="objects alone:
hidden symbol \`__hip_gpubin_handle_
handles:
$registered
unregistered
unregistered
functions:
$registered
unregistered"
[ "$seen" = "$expected" ] || { diff <(echo "$expected") <(echo "$seen"); echo 'changed: see the lines above' >&2; exit 1; }
