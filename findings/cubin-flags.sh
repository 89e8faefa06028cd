#!/usr/bin/env bash
# ptxas: from CUDA 13 on, machine code for sm_90 and for sm_90a has the same e_flags, and the number is at another place.
#
# ptxas 12.9 (nvidia-cuda-nvcc-cu12 12.9.86) writes the number of sm_90 into bits 0 to 7 and bit 11 for the letter `a`; that
# of sm_100 into bits 8 to 15 and bit 3 for `a`, but nothing for `f`. ptxas 13.5 (nvidia-cuda-nvcc 13.5.37) writes the number
# into bits 8 to 15 for both, and nothing for any letter. So a tool that takes the architecture of a bare cubin from e_flags
# reads 4 for sm_90, or takes code that runs on one GPU only for code that its successors run; the letter is in the
# container (fatbin) around the cubin.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=(python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps)
"${pip[@]}" --target "$work/12" nvidia-cuda-nvcc-cu12==12.9.86
"${pip[@]}" --target "$work/13" nvidia-cuda-nvcc==13.5.37

# flags PTXAS PTX-VERSION ARCH: e_flags, bytes 48 to 52 of a 64-bit ELF file.
flags() {
    printf '.version %s\n.target %s\n.address_size 64\n.visible .entry k() { ret; }\n' "$2" "$3" >"$work/k.ptx"
    "$1" -arch="$3" "$work/k.ptx" -o "$work/k.cubin"
    od -An -tx4 -j48 -N4 "$work/k.cubin" | tr -d ' '
}

old=$(find "$work/12" -name ptxas -type f)
new=$(find "$work/13" -name ptxas -type f)
chmod +x "$old" "$new"
seen=$(
    for arch in sm_90 sm_90a sm_100 sm_100a sm_100f; do echo "12.9 $arch $(flags "$old" 8.8 "$arch")"; done
    for arch in sm_90 sm_90a sm_100 sm_100a sm_100f; do echo "13.5 $arch $(flags "$new" 9.0 "$arch")"; done
)
expected='12.9 sm_90 005a055a
12.9 sm_90a 005a0d5a
12.9 sm_100 06006402
12.9 sm_100a 0600640a
12.9 sm_100f 06006402
13.5 sm_90 06005a04
13.5 sm_90a 06005a04
13.5 sm_100 06006402
13.5 sm_100a 06006402
13.5 sm_100f 06006402'
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
