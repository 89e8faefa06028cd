#!/usr/bin/env bash
# delvewheel: the GPU driver's DLLs are libraries to pack.
#
# delvewheel 1.13.2 knows the DLLs of a freshly installed Windows, and no driver's. For pynvvideocodec 2.2.4, whose modules import
# nvcuda.dll, it reports an error where no driver is installed; where it finds nvcuda.dll (by PATH, which has System32), it
# packs the driver of the build machine under a mangled name, without a warning, unless `--exclude nvcuda.dll` is given.
# OpenCL's loader has been packed thus in pyopencl 2026.1.4: its module imports opencl-<hash>.dll, not OpenCL.dll.
# Needs mingw-w64's gcc and binutils.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv tools
tools/bin/pip install --quiet --disable-pip-version-check delvewheel==1.13.2
tools/bin/pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12 \
    --platform win_amd64 pynvvideocodec==2.2.4 pyopencl==2026.1.4
for wheel in *.whl; do python3 -m zipfile -e "$wheel" wheels; done
mkdir found
cp wheels/PyNvVideoCodec/*.dll found
# A fake of the driver's library, which no package has.
x86_64-w64-mingw32-gcc -shared -x c - -o found/nvcuda.dll <<<'__declspec(dllexport) int cuInit(unsigned flags) { return 0; }'
packed() {
    python3 -m zipfile -l "$1" | grep -oE '\.libs/(nvcuda|cudart)[^ ]*' | sed -E 's/[0-9a-f]{32}/HASH/' | sort | tr '\n' ' '
}

seen=$(
    echo "not found: $(tools/bin/delvewheel show pynvvideocodec-*.whl | grep -oE 'nvcuda.*')"
    for excluded in msvcp140.dll msvcp140.dll:nvcuda.dll; do
        tools/bin/delvewheel repair --add-path found --exclude $excluded --wheel-dir out pynvvideocodec-*.whl >log 2>&1 || cat log
        echo "without $excluded: $(packed out/pynvvideocodec-*.whl)"
    done
    x86_64-w64-mingw32-objdump -p wheels/pyopencl/_cl*.pyd | sed -nE 's/[0-9a-f]{32}/HASH/; s/.*DLL Name: (opencl)/\1/ip'
)
echo "$seen"
expected='not found: nvcuda.dll (Error: Not Found)
without msvcp140.dll: .libs/cudart64_12-HASH.dll .libs/nvcuda-HASH.dll 
without msvcp140.dll:nvcuda.dll: .libs/cudart64_12-HASH.dll 
opencl-HASH.dll'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
