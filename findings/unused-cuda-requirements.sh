#!/usr/bin/env bash
# pylibraft: extension modules need six CUDA libraries and call no function of any.
#
# In pylibraft-cu12 26.10.0 three extension modules have libcusolver, libcublas, libcublasLt, libcusparse, libnvJitLink
# and libcurand in DT_NEEDED. None of their undefined symbols has a name of these libraries, no run path leads to them, and the wheel
# itself requires no package that has them: they are what libraft.so of another wheel needs. So a tool that removes
# requirements without symbols may take from libraft.so what it finds loaded.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --python-version 3.11 --only-binary :all: \
    --platform manylinux_2_28_x86_64 --dest "$work" pylibraft-cu12==26.10.0
cd "$work"
python3 -m zipfile -e pylibraft_cu12-*.whl wheel

seen=$(
    find wheel -name '*.so' | sort | while read -r module; do
        needed=$(readelf -dW "$module" | grep -cE 'NEEDED.*\[lib(cusolver|cublas|cublasLt|cusparse|nvJitLink|curand)\.so' || true)
        called=$(nm -D --undefined-only "$module" | grep -cE ' (cusolver|cublas|cusparse|nvJitLink|curand)[A-Z]' || true)
        [ "$needed" = 0 ] || echo "${module#wheel/}: $needed needed, $called functions"
    done
    grep -ciE '^Requires-Dist: *(nvidia|cuda-toolkit)' wheel/*.dist-info/METADATA || true
)
echo "$seen"
expected='pylibraft/random/rmat_rectangular_generator.abi3.so: 6 needed, 0 functions
pylibraft/sparse/linalg/lanczos.abi3.so: 6 needed, 0 functions
pylibraft/sparse/linalg/svds.abi3.so: 6 needed, 0 functions
0'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
