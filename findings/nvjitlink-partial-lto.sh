#!/usr/bin/env bash
# nvJitLink with -lto refuses a link of LTO code and other code that nvlink makes: it drops what the other code calls.
#
# Two objects of relocatable device code: LTO code with `helper` and a kernel that calls it, and another caller, in machine
# code or PTX.
#  * nvlink -dlto (13.5.37) reports "partial LTO", keeps `helper` as a function, and links both.
#  * nvJitLink -lto (13.5.37) adds both without an error, puts `helper` into the kernel of the LTO code, drops it, and reports it
#    as undefined in the other object. Without that kernel it keeps `helper`.
# From PTX of both it links for sm_120, which the objects were not compiled for. So code that is to be linked on GPUs of
# tomorrow is PTX in all objects, or LTO code in all of them; a mixture that the build accepts fails on the user's machine.
# Beside it: `nvcc -dlink -dlto -ptx` writes the linked program as PTX, which needs no linker at run time; without -dlto it
# fails.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$work" \
    nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-runtime==13.5.37 \
    nvidia-nvjitlink==13.5.37
toolkit=$work/nvidia/cu13
chmod -R u+x "$toolkit/bin" "$toolkit/nvvm/bin"
# nvlink looks for the library of LTO under this path alone.
mkdir -p "$toolkit/nvvm/lib64" && ln -s ../../lib/libnvvm.so.4 "$toolkit/nvvm/lib64/libnvvm.so"
cd "$work"
nvcc=$toolkit/bin/nvcc

cat >helper.cu <<'EOF'
__device__ int helper(int x) { return 5 * x; }
__global__ void own(int *p) { *p = helper(*p); }
EOF
cat >kernel.cu <<'EOF'
__device__ int helper(int);
__global__ void kernel(int *p) { *p = helper(*p); }
EOF
for code in sm_80 compute_80 lto_80; do
    for name in helper kernel; do
        "$nvcc" -dc -gencode "arch=compute_80,code=$code" "$name.cu" -o "$name.$code.o"
    done
done

cat >link.py <<'EOF'
import ctypes, sys
library, *arguments = sys.argv[1:]
options = [a for a in arguments if a.startswith("-")]
call = ctypes.CDLL(library)
function = lambda name: getattr(call, f"__nvJitLink{name}_13_5")
handle, size, object_file = ctypes.c_void_p(), ctypes.c_size_t(), 5
array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
assert function("Create")(ctypes.byref(handle), len(options), array) == 0
for path in arguments[len(options):]:
    assert function("AddFile")(handle, object_file, path.encode()) == 0
if function("Complete")(handle):
    function("GetErrorLogSize")(handle, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    function("GetErrorLog")(handle, log)
    print(log.value.split(b" in ")[0].decode())
else:
    function("GetLinkedCubinSize")(handle, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    function("GetLinkedCubin")(handle, image)
    open("linked.cubin", "wb").write(image.raw)
EOF

functions() { readelf -sW "$1" | awk '$4 == "FUNC" { print $NF }' | sort | tr '\n' ' '; echo; }
nvlink() { "$toolkit/bin/nvlink" -arch=sm_80 -L"$toolkit/lib" -nvvmpath="$toolkit/nvvm" "$@" -o linked.cubin; }
jit() {
    rm -f linked.cubin
    python3 link.py "$toolkit/lib/libnvJitLink.so.13" "$@"
    [ ! -f linked.cubin ] || functions linked.cubin
}
seen=$(
    echo '== nvlink: LTO code, and machine code'
    nvlink -dlto helper.lto_80.o kernel.sm_80.o -lcudadevrt
    functions linked.cubin
    echo '== nvJitLink: the same'
    jit -arch=sm_80 -lto helper.lto_80.o kernel.sm_80.o
    echo '== nvJitLink: LTO code, and PTX'
    jit -arch=sm_80 -lto helper.lto_80.o kernel.compute_80.o
    echo '== nvJitLink: PTX, for a later GPU'
    jit -arch=sm_120 helper.compute_80.o kernel.compute_80.o
    echo '== nvJitLink: LTO code, for a later GPU'
    jit -arch=sm_120 -lto helper.lto_80.o kernel.lto_80.o
    echo '== nvcc -dlink -ptx, with and without -dlto'
    "$nvcc" -dlink -dlto -ptx -arch=sm_80 helper.lto_80.o kernel.lto_80.o -o linked.ptx
    grep -oE '^(\.version|\.target|\.visible \.entry).*[^(]' linked.ptx
    "$nvcc" -dlink -ptx -arch=sm_80 helper.sm_80.o kernel.sm_80.o -o linked.ptx 2>&1 || true
)
echo "$seen"
expected="== nvlink: LTO code, and machine code
_Z3ownPi _Z6helperi _Z6kernelPi 
== nvJitLink: the same
error   : Undefined reference to '_Z6helperi'
== nvJitLink: LTO code, and PTX
error   : Undefined reference to '_Z6helperi'
== nvJitLink: PTX, for a later GPU
_Z3ownPi _Z6helperi _Z6kernelPi 
== nvJitLink: LTO code, for a later GPU
_Z3ownPi _Z6kernelPi 
== nvcc -dlink -ptx, with and without -dlto
.version 9.5
.target sm_80
.visible .entry _Z3ownPi
.visible .entry _Z6kernelPi
nvcc fatal   : A single input file is required for a non-link phase when an outputfile is specified"
[ "$seen" = "$expected" ] || { diff <(echo "$expected") <(echo "$seen"); echo 'changed: see the lines above' >&2; exit 1; }
