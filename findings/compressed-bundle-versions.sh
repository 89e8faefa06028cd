#!/usr/bin/env bash
# Compressed offload bundles: which version a release writes, and that the next older LLVM reports the wrong fault.
#
# A bundle of `--offload-compress` begins with CCOB, a version and the method. Seen:
#  * LLVM 19.1.7 (Debian) writes version 2 with zstd.
#  * bitsandbytes 0.50.2: its libraries for ROCm 6.4 and 7.0 have version 2, those for ROCm 7.1 and later version 3. Each
#    has two bundles in one section `.hip_fatbin`, at pages; the first one's size is needed to find the second.
#  * clang-offload-bundler 19 does not say that version 3 is newer: it reads the header as one of version 2, whose sizes have
#    4 bytes, and reports a damaged zstd frame ("Unknown frame descriptor"). Zstd itself unpacks the same bytes.
# With `-fgpu-rdc`, `--offload-compress` changes no byte of the device code in objects, with either driver: only code that is
# linked already, or bundled as a file, is compressed.
#
# So a reader has to look at the version before the sizes, and a message about damage may mean a newer ROCm.
#
# Needs clang-19 and clang-tools-19 of Debian, zstd, and a wheel of 40 MB.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bin=/usr/lib/llvm-19/bin
export PATH=$bin:$PATH
clang --version | head -n 1 >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --platform manylinux_2_24_x86_64 --dest . bitsandbytes==0.50.2
cat >bundles.py <<'EOF'
import re, sys, zipfile
# Version and position in the file of each bundle of the libraries; writes the first bundle of one, and its zstd frame.
wheel = zipfile.ZipFile(sys.argv[1])
for name in sorted(wheel.namelist()):
    if not (match := re.search(r'_(rocm\d+)\.so$', name)):
        continue
    data = wheel.read(name)
    starts = [m.start() for m in re.finditer(b'CCOB[\1-\3]\0[\0\1]\0', data)]
    versions = {data[start + 4] for start in starts}
    pages = all(start % 4096 == 0 for start in starts)
    print(match[1], 'bundles', len(starts), 'version', *versions, 'at pages' if pages else '')
    start, version = starts[0], data[starts[0] + 4]
    size = int.from_bytes(data[start + 8:start + (12 if version == 2 else 16)], 'little')
    header = 24 if version == 2 else 32
    open(f'{match[1]}.ccob', 'wb').write(data[start:start + size])
    open(f'{match[1]}.zst', 'wb').write(data[start + header:start + size])
EOF
cat >k.hip <<'EOF'
__attribute__((device)) int twice(int x) { return 2 * x; }
EOF
seen=$(
    compile() { clang++ -Qunused-arguments -x hip -nogpuinc -nogpulib --offload-arch=gfx90a --offload-arch=gfx1100 -c k.hip "$@"; }
    compile --no-offload-new-driver --offload-compress --cuda-device-only --gpu-bundle-output -o own.hipfb
    echo "LLVM 19: $(head -c 4 own.hipfb) version $(od -An -tu2 -j4 -N2 own.hipfb | tr -d ' ')"
    for driver in --no-offload-new-driver --offload-new-driver; do
        compile $driver -fgpu-rdc -cuid=1 -o plain.o
        compile $driver -fgpu-rdc -cuid=1 --offload-compress -o compressed.o
        cmp -s plain.o compressed.o && echo "$driver -fgpu-rdc: --offload-compress changes nothing"
    done
    python3 bundles.py bitsandbytes-*.whl
    for name in rocm64 rocm71; do
        echo "$name: $(clang-offload-bundler --list -type=o -input=$name.ccob 2>&1 | grep -c gfx) entries," \
            "zstd: $(zstd -dqc $name.zst | head -c 24)"
    done
    clang-offload-bundler --list -type=o -input=rocm71.ccob 2>&1 | sed 's/.*error: //' || true
)
echo "$seen"
expected='LLVM 19: CCOB version 2
--no-offload-new-driver -fgpu-rdc: --offload-compress changes nothing
--offload-new-driver -fgpu-rdc: --offload-compress changes nothing
rocm64 bundles 2 version 2 at pages
rocm70 bundles 2 version 2 at pages
rocm71 bundles 2 version 3 at pages
rocm714 bundles 2 version 3 at pages
rocm715 bundles 2 version 3 at pages
rocm72 bundles 2 version 3 at pages
rocm64: 14 entries, zstd: __CLANG_OFFLOAD_BUNDLE__
rocm71: 0 entries, zstd: __CLANG_OFFLOAD_BUNDLE__
Failed to decompress input: Could not decompress embedded file contents: Unknown frame descriptor'
[ "$seen" = "$expected" ] || { diff <(echo "$expected") <(echo "$seen"); echo 'changed: see the lines above' >&2; exit 1; }
