#!/usr/bin/env bash
# Offload bundles and binaries: what their tools do with two images for one target, and with an unknown one.
#
# LLVM 19.1.7 (Debian). Two images for gfx90a:
#  * clang-offload-bundler refuses duplicate targets ("Duplicate targets are not allowed").
#  * clang-offload-packager packs both without a message. Extraction by architecture writes both, the second over the first
#    one's file: the output has the last image only. With --archive both are members of one archive, under names of their own.
#  * the binaries of several objects follow each other in one section `.llvm.offloading`, so that a linked relocatable
#    object (ld -r) has the images of all inputs, also for one target; llvm-objdump --offloading lists each.
# Asked for an architecture that is not there, the bundler fails ("Can't find bundles"), the packager succeeds and writes
# no file.
#
# So a reader must not key images by their architecture, and a build that extracts one has to check for the file.
#
# Needs clang-19, clang-tools-19, llvm-19 and binutils of Debian.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=/usr/lib/llvm-19/bin:$PATH
clang --version | head -n 1 >&2
printf one >1.bc
printf two >2.bc
target=hip-amdgcn-amd-amdhsa--gfx90a
seen=$(
    clang-offload-bundler -type=bc "-targets=$target,$target" -input=1.bc -input=2.bc -output=both 2>&1 | sed 's/.*error: //' || true
    image() { echo "--image=file=$1,arch=gfx90a,triple=amdgcn-amd-amdhsa,kind=hip"; }
    clang-offload-packager -o both.bin "$(image 1.bc)" "$(image 2.bc)"
    echo "packed: $(llvm-objdump --offloading both.bin | grep -c gfx90a)"
    clang-offload-packager both.bin --image=file=out.bc,arch=gfx90a && echo "extracted: $(cat out.bc)"
    clang-offload-packager --archive both.bin --image=file=out.a,arch=gfx90a && echo "archived: $(llvm-ar p out.a)"
    clang-offload-packager both.bin --image=file=none.bc,arch=gfx942 && echo "unknown: status 0, $(ls none.bc 2>/dev/null || echo no file)"
    clang-offload-bundler -type=bc "-targets=$target" -input=1.bc -output=bundle
    clang-offload-bundler -unbundle -type=bc "-targets=${target%gfx90a}gfx942" -input=bundle -output=none.bc 2>&1 |
        sed "s/.*error: //; s/ for.*//" || true
    echo 'int x;' >h.c && clang -c h.c -Xclang -fembed-offload-object=both.bin -o a.o
    echo 'int y;' >h.c && clang -c h.c -Xclang -fembed-offload-object=both.bin -o b.o
    ld -r a.o b.o -o ab.o
    echo "linked: $(llvm-objdump --offloading ab.o | grep -c gfx90a) in $(readelf -SW ab.o | grep -c llvm.offloading) section"
)
echo "$seen"
expected='Duplicate targets are not allowed
packed: 2
extracted: two
archived: onetwo
unknown: status 0, no file
'"Can't find bundles"'
linked: 4 in 1 section'
[ "$seen" = "$expected" ] || { diff <(echo "$expected") <(echo "$seen"); echo 'changed: see the lines above' >&2; exit 1; }
