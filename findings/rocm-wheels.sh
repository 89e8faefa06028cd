#!/usr/bin/env bash
# Wheels for ROCm: NCCL's names are RCCL's, a library is needed for nothing, and installed files have no hash.
#
# cupy-rocm-7-0 14.2.0: its module `nccl` needs librccl.so.1 and imports 22 functions called nccl*, without a symbol version.
# Whoever looks a function up by its name finds NCCL. What is needed says which of the two is meant.
#
# onnxruntime-rocm 1.22.2.post3: the provider needs libroctracer64.so.4 and imports none of its functions; cupy's runtime
# imports two. So a list from imports alone would not have made the first one loadable.
#
# That one and onnxruntime-migraphx 1.27.1: RECORD has no hash of any file (the wheel specification demands one of all but RECORD
# itself), so nobody can tell whether they are as built. pip installs both.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for wheel in cupy-rocm-7-0==14.2.0 onnxruntime-rocm==1.22.2.post3 onnxruntime-migraphx==1.27.1; do
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --python-version 3.11 --only-binary :all: \
        --platform manylinux_2_34_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
        --dest "$work" "$wheel"
done
cd "$work"
for wheel in cupy_rocm onnxruntime_rocm onnxruntime_migraphx; do
    python3 -m zipfile -e "$wheel"*.whl "$wheel"
done

# uses IMAGE LIBRARY PREFIX: whether an image needs a library, and how many functions with a prefix it imports.
uses() {
    local needed
    needed=$(readelf -dW "$1" | grep -c "NEEDED.*\[$2" || true)
    echo "$(basename "$1" | cut -d. -f1): $2 $needed, $3* $(nm -D --undefined-only "$1" | grep -c " $3" || true)"
}
seen=$(
    nccl=$(find cupy_rocm -name 'nccl.*.so')
    uses "$nccl" librccl nccl
    uses "$nccl" libnccl nccl
    echo "$(nm -D --undefined-only "$nccl" | grep -c ' nccl.*@' || true) with a symbol version"
    uses "$(find cupy_rocm -path '*/api/runtime.*.so')" libroctracer64 roctracer_
    uses "$(find onnxruntime_rocm -name 'libonnxruntime_providers_rocm.so')" libroctracer64 roctracer_
    for wheel in onnxruntime_rocm onnxruntime_migraphx cupy_rocm; do
        echo "$wheel: $(grep -v 'dist-info/RECORD,' "$wheel"/*.dist-info/RECORD | grep -c ',,' || true) files without a hash"
    done
)
echo "$seen"
expected='nccl: librccl 1, nccl* 22
nccl: libnccl 0, nccl* 22
0 with a symbol version
runtime: libroctracer64 1, roctracer_* 2
libonnxruntime_providers_rocm: libroctracer64 1, roctracer_* 0
onnxruntime_rocm: 311 files without a hash
onnxruntime_migraphx: 321 files without a hash
cupy_rocm: 0 files without a hash'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
