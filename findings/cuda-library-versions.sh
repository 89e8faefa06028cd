#!/usr/bin/env bash
# CUDA's libraries: the number in a name is not that of the release, the soname or the version node.
#
# nvJPEG 12.2.0.2 is that of CUDA 12.1.1, and 12.3.0.81 that of 12.3.2, by the requirements of cuda-toolkit. libcustatevec.so.1 and
# libcutensornet.so.2 have the version node of a soname that no file has, `….so.0`: a stub with nodes of its soname is rejected by
# the loader. libcutensor.so.2 has a node for each release that added functions, and 2.8 has cutensorBlockSparseContract under
# another node than 2.2, of which no header declares it: a program linked with 2.2 does not start with 2.8, and the
# soname is the same.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
pip=(python3 -m pip --quiet --disable-pip-version-check)
seen=$(
    for version in 12.1.1 12.3.2; do
        "${pip[@]}" download --no-deps --only-binary :all: --dest toolkit cuda-toolkit==$version
        python3 -m zipfile -e toolkit/cuda_toolkit-$version-*.whl toolkit/$version
        echo "CUDA $version: $(sed -nE 's/^Requires-Dist: (nvidia-nvjpeg-cu12==[0-9.]+)\.\*.*/\1/p' toolkit/$version/*/METADATA | sort -u)"
    done
    for package in custatevec-cu11==1.9.0 cutensornet-cu11==2.8.0 cutensor-cu11==2.2.0 cutensor-cu12==2.8.1; do
        "${pip[@]}" install --no-deps --root-user-action=ignore --target "$package" "$package"
        library=$(find "$package" -name 'libcustatevec.so.?' -o -name 'libcutensornet.so.?' -o -name 'libcutensor.so.?')
        names=$(nm -D --defined-only "$library" | sed -nE 's/.* T (custatevecCreate|cutensornetCreate|cutensorBlockSparseContract)@@/\1 in /p')
        echo "$package: $(basename "$library"), $names"
        rm -rf "$package"
    done
)
echo "$seen"
expected='CUDA 12.1.1: nvidia-nvjpeg-cu12==12.2.0.2
CUDA 12.3.2: nvidia-nvjpeg-cu12==12.3.0.81
custatevec-cu11==1.9.0: libcustatevec.so.1, custatevecCreate in libcustatevec.so.0
cutensornet-cu11==2.8.0: libcutensornet.so.2, cutensornetCreate in libcutensornet.so.0
cutensor-cu11==2.2.0: libcutensor.so.2, cutensorBlockSparseContract in libcutensor.2.0.0
cutensor-cu12==2.8.1: libcutensor.so.2, cutensorBlockSparseContract in libcutensor.2.3.0'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
