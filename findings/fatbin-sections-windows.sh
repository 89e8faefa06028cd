#!/usr/bin/env bash
# Windows DLLs: the sections of device code have other names than in ELF files, and cuobjdump for Linux sees no device code.
#
# COFF objects have long section names in a string table, PE images do not: link.exe cuts .nv_fatbin and .nvFatBinSegment of
# CUDA, .hip_fatbin and .hipFatBinSegment of HIP after eight bytes (bitsandbytes 0.50.2). cuobjdump 13.5
# (nvidia-cuda-cuobjdump 13.5.37) says of such a DLL "does not contain device code", the words that it has for a program
# without any, not that it cannot read the format. The bytes are the same: it lists the code of a file that
# holds what the section holds. Needs the binutils of mingw-w64.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
pip=(python3 -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --root-user-action=ignore --no-deps --target tools nvidia-cuda-cuobjdump==13.5.37
"${pip[@]}" download --no-deps --only-binary :all: --platform win_amd64 bitsandbytes==0.50.2
python3 -m zipfile -e bitsandbytes-*.whl wheel
cuobjdump=$(find tools -name cuobjdump -type f)
chmod +x "$cuobjdump"
cuda=wheel/bitsandbytes/libbitsandbytes_cuda130.dll

seen=$(
    for library in "$cuda" wheel/bitsandbytes/libbitsandbytes_rocm72.dll; do
        echo "${library##*/}:" $(x86_64-w64-mingw32-objdump -h "$library" | grep -oiE '\.(nv_?|hip_?)fat[^ ]*' | sort)
    done
    "$cuobjdump" --list-elf "$cuda" 2>&1 | sed "s|'.*/|'|" || true
    "$cuobjdump" --list-elf /bin/true 2>&1 || true
    x86_64-w64-mingw32-objcopy -O binary --only-section=.nv_fatb "$cuda" code.fatbin
    "$cuobjdump" --list-elf code.fatbin
)
echo "$seen"
expected="libbitsandbytes_cuda130.dll: .nvFatBi .nv_fatb
libbitsandbytes_rocm72.dll: .hipFatB .hip_fat
cuobjdump info    : File 'libbitsandbytes_cuda130.dll' does not contain device code
cuobjdump info    : File '/bin/true' does not contain device code
ELF file    1: code.1.sm_75.cubin
ELF file    2: code.2.sm_80.cubin
ELF file    3: code.3.sm_86.cubin
ELF file    4: code.4.sm_89.cubin
ELF file    5: code.5.sm_90.cubin
ELF file    6: code.6.sm_100.cubin
ELF file    7: code.7.sm_120.cubin"
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
