#!/usr/bin/env bash
# Rust for windows-msvc: `#[link(name = "cuda")]` does not link with the cuda.lib of CUDA 13, a build script's `dylib=cuda` does.
#
# With the attribute rustc 1.95 calls __imp_cuInit, without it cuInit, also if a build script (`-l`) names `dylib=cuda`. The
# cuda.lib of nvidia-cuda-runtime-cu12 12.9.79, an import library, has both symbols; that of nvidia-cuda-runtime 13.5.37, a
# static library, has cuInit only, so rust-lld (LLD 22) reports an undefined `__declspec(dllimport) cuInit`. `kind = "static"`
# links with both, and still imports nvcuda.dll from the first; `kind = "raw-dylib"` needs neither. Needs Rust's
# x86_64-pc-windows-msvc target (`rustup target add`) and mingw-w64's import libraries.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform win_amd64 \
    nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-runtime==13.5.37
for wheel in *.whl; do python3 -m zipfile -e "$wheel" .; done
kernel32=$(x86_64-w64-mingw32-gcc -print-file-name=libkernel32.a)
host=$(rustc -vV | sed -n 's/^host: //p')
rustc=(rustc --edition 2024 --target x86_64-pc-windows-msvc -O -C panic=abort)
lld=(-C linker="$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld" -C linker-flavor=lld-link
    -C link-args="/entry:start /subsystem:console /nodefaultlib $kernel32")

# try ATTRIBUTE OPTION...: the symbol that a program calls, and the result of linking it with either library.
try() {
    cat >program.rs <<RUST
#![no_std]
#![no_main]
$1
unsafe extern "C" { fn cuInit(flags: u32) -> i32; }
#[unsafe(no_mangle)] extern "C" fn start() -> i32 { unsafe { cuInit(0) } }
#[unsafe(no_mangle)] static _fltused: i32 = 0;
#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
RUST
    "${rustc[@]}" "${@:2}" -L nvidia/cu13/lib/x64 --emit=obj program.rs -o program.o
    echo "$*: $(x86_64-w64-mingw32-nm -u program.o | grep -o '[^ ]*cuInit')"
    for library in nvidia/cuda_runtime/lib/x64 nvidia/cu13/lib/x64; do
        if "${rustc[@]}" "${lld[@]}" "${@:2}" -L $library program.rs -o program.exe 2>log; then
            echo "  $library: $(x86_64-w64-mingw32-objdump -p program.exe | grep -o 'nvcuda.dll' || echo 'not imported')"
        else
            echo "  $library: $(grep -o 'undefined symbol:.*' log || cat log)"
        fi
    done
}
seen=$(
    rustc --version | cut -d' ' -f1,2
    try '#[link(name = "cuda")]'
    try '#[link(name = "cuda")]' -l dylib=cuda
    try '' -l dylib=cuda
    try '#[link(name = "cuda", kind = "static")]'
    try '#[link(name = "nvcuda", kind = "raw-dylib")]'
)
echo "$seen"
expected='rustc 1.95.0
#[link(name = "cuda")]: __imp_cuInit
  nvidia/cuda_runtime/lib/x64: nvcuda.dll
  nvidia/cu13/lib/x64: undefined symbol: __declspec(dllimport) cuInit
#[link(name = "cuda")] -l dylib=cuda: __imp_cuInit
  nvidia/cuda_runtime/lib/x64: nvcuda.dll
  nvidia/cu13/lib/x64: undefined symbol: __declspec(dllimport) cuInit
 -l dylib=cuda: cuInit
  nvidia/cuda_runtime/lib/x64: nvcuda.dll
  nvidia/cu13/lib/x64: not imported
#[link(name = "cuda", kind = "static")]: cuInit
  nvidia/cuda_runtime/lib/x64: nvcuda.dll
  nvidia/cu13/lib/x64: not imported
#[link(name = "nvcuda", kind = "raw-dylib")]: __imp_cuInit
  nvidia/cuda_runtime/lib/x64: nvcuda.dll
  nvidia/cu13/lib/x64: nvcuda.dll'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
