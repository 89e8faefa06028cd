#!/usr/bin/env bash
# cuDSS: releases with one soname differ in the arguments of their functions and in the numbers of their enumerators.
#
# nvidia-cudss-cu12 0.7.1.6 and 0.8.0.10 both have libcudss.so.0, with one version node, so that the loader accepts either
# for a program of the other. But cudssMatrixCreateCsr of 0.8 has one argument more, in the middle, and
# CUDSS_DATA_MEMORY_ESTIMATES is 12 in 0.7 and 13 in 0.8: the program reads other data, without an error. Stubs must ask the
# library for its version (cudssGetProperty needs no GPU). Needs clang.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
install=(python3 -m pip install --quiet --disable-pip-version-check --no-deps --root-user-action=ignore)
"${install[@]}" --target cuda nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-crt==13.5.37

cat >ask.c <<'TEXT'
#include <cudss.h>
#include <stdio.h>
int main(void)
{
    printf("CUDSS_DATA_MEMORY_ESTIMATES = %d\n", (int)CUDSS_DATA_MEMORY_ESTIMATES);
    return 0;
}
TEXT
seen=$(
    for version in 0.7.1.6 0.8.0.10; do
        "${install[@]}" --target $version nvidia-cudss-cu12==$version
        tree=$version/nvidia/cu12
        soname=$(readelf -dW $tree/lib/libcudss.so.0 | sed -nE 's/.*SONAME.*\[(.*)\]/\1/p')
        include=(-I $tree/include -I cuda/nvidia/cuda_runtime/include -I cuda/nvidia/cu13/include)
        clang "${include[@]}" ask.c -o ask
        arguments=$(clang -x c -E -P "${include[@]}" $tree/include/cudss.h 2>/dev/null | tr '\n' ' ' |
            grep -oE 'cudssMatrixCreateCsr\([^)]*\)' | tr -cd ',' | wc -c)
        echo "$version: $soname, cudssMatrixCreateCsr has $((arguments + 1)) arguments, $(./ask)"
    done
)
echo "$seen"
expected='0.7.1.6: libcudss.so.0, cudssMatrixCreateCsr has 13 arguments, CUDSS_DATA_MEMORY_ESTIMATES = 12
0.8.0.10: libcudss.so.0, cudssMatrixCreateCsr has 14 arguments, CUDSS_DATA_MEMORY_ESTIMATES = 13'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
