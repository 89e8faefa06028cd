#!/usr/bin/env bash
# nvlink: which architectures a device link can be made for, and where a missing one is no error.
#
# nvlink 13.5 (nvidia-cuda-nvcc 13.5.37) links objects for other architectures than their own: machine code for GPUs of the
# same major and a minor not lower, with or without a letter; code with `f` for later GPUs of its family; PTX for all later
# ones. Two libraries need not have one architecture in common: sm_80 and sm_86 are linked for sm_86, sm_100f and sm_103 for
# sm_103. Only code with `a` is for one GPU.
#
# An object without suitable code is a warning, and the exit status is 0: the device link has none of its kernels. Only a call
# from other device code is an error, about an undefined function. For a member of an archive there is no warning at all. So
# the architectures have to be compared before.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$work" \
    nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-runtime==13.5.37 \
    nvidia-cuda-cuobjdump==13.5.37
toolkit=$work/nvidia/cu13
chmod -R u+x "$toolkit/bin" "$toolkit/nvvm/bin"
echo '__device__ int value(int x) { return x + 1; } __global__ void base(int *p) { *p = value(*p); }' >base.cu
echo 'extern __device__ int value(int); __global__ void top(int *p) { *p = value(*p); }' >top.cu
compile() { # source architecture
    "$toolkit/bin/nvcc" -rdc=true -gencode "arch=compute_${2#*_},code=$2" -c "$1.cu" -o "$1.$2.o"
}

# Device link of files for an architecture: status, number of kernels, and what nvlink reports.
nvlink() {
    rm -f linked
    "$toolkit/bin/nvlink" -m64 -cpu-arch=X86_64 --arch="$1" "${@:2}" -o linked >printed 2>&1 && status=0 || status=$?
    kernels=$("$toolkit/bin/cuobjdump" -elf linked 2>/dev/null | grep -oE '\.text\._Z[0-9]+(base|top)Pi' | sort -u | wc -l)
    reports=$(sed -nE "s/^nvlink (warning|error) +: (SM Arch|Undefined reference).*/, \1: \2/p" printed)
    echo "status $status, $kernels kernels${reports//$'\n'/}"
}
pair() { # architectures of two libraries and of the device link
    compile base "$1"
    compile top "$2"
    echo "$1 and $2 for $3: $(nvlink "$3" "base.$1.o" "top.$2.o")"
}
alone() {
    compile base "$1"
    echo "$1 for $2: $(nvlink "$2" "base.$1.o")"
}

seen=$(
    pair sm_80 sm_86 sm_86
    pair sm_90 sm_90a sm_90a
    pair sm_100f sm_103 sm_103
    pair sm_100 sm_103 sm_103
    pair sm_120f sm_121 sm_121
    pair sm_100f sm_100a sm_100a
    pair compute_80 sm_90 sm_90
    echo '-- not served'
    alone sm_86 sm_80
    alone sm_80 sm_90
    alone sm_90a sm_90
    alone sm_100f sm_120
    pair sm_80 sm_90 sm_90
    echo '-- in an archive'
    ar rcs libbase.a base.sm_80.o
    echo "sm_80 for sm_90: $(nvlink sm_90 libbase.a)"
)
echo "$seen"
expected='sm_80 and sm_86 for sm_86: status 0, 2 kernels
sm_90 and sm_90a for sm_90a: status 0, 2 kernels
sm_100f and sm_103 for sm_103: status 0, 2 kernels
sm_100 and sm_103 for sm_103: status 0, 2 kernels
sm_120f and sm_121 for sm_121: status 0, 2 kernels
sm_100f and sm_100a for sm_100a: status 0, 2 kernels
compute_80 and sm_90 for sm_90: status 0, 2 kernels
-- not served
sm_86 for sm_80: status 0, 0 kernels, warning: SM Arch
sm_80 for sm_90: status 0, 0 kernels, warning: SM Arch
sm_90a for sm_90: status 0, 0 kernels, warning: SM Arch
sm_100f for sm_120: status 0, 0 kernels, warning: SM Arch
sm_80 and sm_90 for sm_90: status 255, 0 kernels, warning: SM Arch, error: Undefined reference
-- in an archive
sm_80 for sm_90: status 0, 0 kernels'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
