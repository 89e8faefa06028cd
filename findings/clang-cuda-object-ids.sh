#!/usr/bin/env bash
# clang: the id of an object of relocatable CUDA code is a hash of its source's path, and nvcc's device link is over such objects.
#
# Objects of clang's older offload driver (`clang -x cuda -fgpu-rdc --no-offload-new-driver`, the default of LLVM 19) have the
# sections of nvcc's: __nv_relfatbin, .nvFatBinSegment and __nv_module_id, and call __cudaRegisterLinkedBinary<id>. nvlink
# links them, also beside those of nvcc, and each is registered. But the id is made of the path on the command line alone:
# MD5 of `<path>;__cuda_fatbin_wrapper`. Two packages with a `cuda/kernels.cu` each have one id, and the host code of their
# device link does not compile. With absolute paths the ids differ.
#
# The newer driver's objects (default of LLVM 22) have a section .llvm.offloading instead, of which nvlink knows nothing: a
# device link over them alone ends with status 0 and registers nothing.
#
# Needs clang-19 and clang-tools-19 of Debian (19.1.7); nvcc 13.5.37 of wheels. clang 19 accepts neither the headers of CUDA 13
# nor its fatbinary, which no longer has the option `-image`: the sources declare what they use, and the steps of the driver
# are written out.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$work" \
    nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-runtime==13.5.37
toolkit=$work/nvidia/cu13
chmod -R u+x "$toolkit/bin" "$toolkit/nvvm/bin"
export PATH=/usr/lib/llvm-19/bin:$PATH
clang++ --version | head -n 1 >&2

cat >cuda.h <<'EOF'
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; dim3(unsigned n) : x(n), y(1), z(1) {} };
typedef struct CUstream_st *cudaStream_t;
enum cudaError { cudaSuccess };
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, unsigned long = 0, cudaStream_t = nullptr);
extern "C" cudaError cudaLaunchKernel(const void *, dim3, dim3, void **, unsigned long, cudaStream_t);
EOF
mkdir -p one/cuda two/cuda
cat >one/cuda/kernels.cu <<'EOF'
#include "cuda.h"
__device__ int value(int x) { return x + 1; }
__global__ void one(int *p) { *p = value(1); }
void run_one() { one<<<1, 1>>>(nullptr); }
EOF
cat >two/cuda/kernels.cu <<'EOF'
#include "cuda.h"
__device__ int value(int);
__global__ void two(int *p) { *p = value(2); }
void run_two() { two<<<1, 1>>>(nullptr); }
EOF
echo '__device__ int value(int); __global__ void three(int *p) { *p = value(3); }' >three.cu
clang() { # directory, words
    (cd "$1" && clang++ -x cuda -fgpu-rdc -fPIC -O1 -nocudainc -Wno-unknown-cuda-version --cuda-gpu-arch=sm_80 \
        --cuda-path="$toolkit" -I"$work" "${@:2}")
}
older() { # directory, path of the source
    clang "$1" --no-offload-new-driver --cuda-device-only -S "$2" -o "$work/$1.ptx"
    "$toolkit/bin/ptxas" -c -arch=sm_80 "$1.ptx" -o "$1.cubin"
    "$toolkit/bin/fatbinary" -64 --create="$1.fatbin" --image3=kind=elf,sm=80,file="$1.cubin" --cmdline=--compile-only
    clang "$1" --no-offload-new-driver --cuda-host-only -Xclang -fcuda-include-gpubinary -Xclang "$work/$1.fatbin" \
        -c "$2" -o "$work/$1.o"
}
id() { objcopy -O binary --only-section=__nv_module_id "$1" id && tr -d '\0' <id; }
link() { # name, objects
    rm -rf kept && mkdir kept
    "$toolkit/bin/nvcc" -dlink -arch=sm_80 -cudadevrt none --keep --keep-dir kept "${@:2}" -o link.o >printed 2>&1 &&
        status=0 || status=$?
    registered=$(cat kept/*.reg.c 2>/dev/null | grep -c DEFINE_REGISTER_FUNC || true)
    echo "$1: status $status, $registered registered$(grep -oE ' redefinition of| Undefined reference' printed | sort -u)"
}

seen=$(
    for directory in one two; do older $directory cuda/kernels.cu; done
    "$toolkit/bin/nvcc" -rdc=true -arch=sm_80 -c three.cu -o three.o
    echo "sections: $(readelf -SW one.o | grep -oE '__nv_relfatbin|\.nvFatBinSegment|__nv_module_id|\.llvm\.offloading' | LC_ALL=C sort -u | tr '\n' ' ')"
    hash=$(printf 'cuda/kernels.cu;__cuda_fatbin_wrapper' | md5sum | sed -E 's/^(..)(..)(..)(..)(..)(..)(..)(..).*/\8\7\6\5\4\3\2\1/; s/^0+//')
    [ "$(id one.o) $(id two.o)" = "__nv_$hash __nv_$hash" ] && echo 'one id for both sources, the hash of their path'
    link 'one path' one.o two.o
    for directory in one two; do older $directory "$work/$directory/cuda/kernels.cu"; done
    link 'absolute paths' one.o two.o
    link 'clang and nvcc' one.o two.o three.o
    for directory in one two; do clang $directory --offload-new-driver -c cuda/kernels.cu -o "$work/$directory.o"; done
    echo "sections: $(readelf -SW one.o | grep -oE '__nv_relfatbin|\.nvFatBinSegment|__nv_module_id|\.llvm\.offloading' | LC_ALL=C sort -u | tr '\n' ' ')"
    link 'newer driver' one.o two.o
    link 'newer driver and nvcc' one.o three.o
)
echo "$seen"
expected='sections: .nvFatBinSegment __nv_module_id __nv_relfatbin 
one id for both sources, the hash of their path
one path: status 1, 2 registered redefinition of
absolute paths: status 0, 2 registered
clang and nvcc: status 0, 3 registered
sections: .llvm.offloading 
newer driver: status 0, 0 registered
newer driver and nvcc: status 255, 1 registered Undefined reference'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
