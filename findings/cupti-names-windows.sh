#!/usr/bin/env bash
# CUPTI for Windows: until CUDA 13.4 the DLL has another name in each update, and no major in it.
#
# nvidia-cuda-cupti 13.0.48 and 13.0.85, two updates of one release, have cupti64_2025.3.0.dll and cupti64_2025.3.1.dll, 13.4.92
# has cupti64_2026.3.1.dll, and 13.5.25 cupti64_13.dll. For Linux all four have libcupti.so.13. So a program that imports the DLL
# of one update does not start with the next, a table of names by CUDA's major does not find it, and the number is neither
# the release of CUDA nor a major of an interface. CUDA 12 does the same. Needs the binutils of mingw-w64.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
download=(python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:)

seen=$(
    for version in 13.0.48 13.0.85 13.4.92 13.5.25; do
        "${download[@]}" --platform win_amd64 --dest $version nvidia-cuda-cupti==$version
        "${download[@]}" --platform manylinux_2_25_x86_64 --dest $version nvidia-cuda-cupti==$version
        for wheel in $version/*.whl; do python3 -m zipfile -e "$wheel" $version/wheel; done
        tree=$version/wheel/nvidia/cu13
        # The name in the DLL itself, which linkers write into import tables.
        name=$(x86_64-w64-mingw32-objdump -p $tree/bin/x86_64/cupti64_*.dll | sed -nE 's/^Name[ \t]+[0-9a-f]+ (.*)/\1/p')
        soname=$(readelf -dW $tree/lib/libcupti.so.* | sed -nE 's/.*SONAME.*\[(.*)\]/\1/p')
        echo "$version: $(basename $tree/bin/x86_64/cupti64_*.dll) $name, $soname"
    done
)
echo "$seen"
expected='13.0.48: cupti64_2025.3.0.dll cupti64_2025.3.0.dll, libcupti.so.13
13.0.85: cupti64_2025.3.1.dll cupti64_2025.3.1.dll, libcupti.so.13
13.4.92: cupti64_2026.3.1.dll cupti64_2026.3.1.dll, libcupti.so.13
13.5.25: cupti64_13.dll cupti64_13.dll, libcupti.so.13'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
