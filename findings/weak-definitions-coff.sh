#!/usr/bin/env bash
# COFF: a weak function is no definition that linkers merge, and GNU ld does not even find the only one.
#
# GNU as and clang write a weak `hook` of COFF as an undefined symbol with an alias, .weak.hook.NAME (.weak.hook.default.NAME),
# NAME being another global symbol of the object. GNU ld 2.40 leaves a call from another object undefined, and two objects without
# other symbols clash. lld as lld-link (LLD 22) finds one definition, but rejects two as duplicates; as ld.lld for mingw it takes
# the first of two, if their NAMEs differ. All of them let a plain definition win. So a default that ELF linkers take from
# any object fails to link. `__declspec(selectany)`, for data only, is merged by all.
# Needs mingw-w64's gcc, and rust-lld of Rust 1.95.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cc=(x86_64-w64-mingw32-gcc -O1 -c -x c -)
"${cc[@]}" -o caller.o <<<'int hook(void); int start(void) { return hook(); }'
"${cc[@]}" -o plain.o <<<'int hook(void) { return 1; }'
weak='__attribute__((weak)) int hook(void) { return 2; }'
for name in 1 2; do "${cc[@]}" -o alone$name.o <<<"$weak"; done
for name in a b; do "${cc[@]}" -o with_$name.o <<<"$weak int $name(void) { return hook(); }"; done
"${cc[@]}" -o data_caller.o <<<'extern int (*hook)(void); int start(void) { return hook(); }'
data='static int f(void) { return 2; } __declspec(selectany) int (*hook)(void) = f;'
for name in 1 2; do "${cc[@]}" -o data$name.o <<<"$data"; done

lld=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld
link() {
    case $1 in
        GNU) x86_64-w64-mingw32-ld -e start -o program.exe "${@:2}" ;;
        lld-link) "$lld" -flavor link /entry:start /subsystem:console /nodefaultlib /out:program.exe "${@:2}" ;;
        ld.lld) "$lld" -flavor gnu -m i386pep -e start -o program.exe "${@:2}" ;;
    esac
}
{ x86_64-w64-mingw32-ld --version | head -1; "$lld" -flavor link --version; } >&2
seen=$(
    for objects in 'caller.o with_a.o' 'caller.o with_a.o with_b.o' 'caller.o alone1.o alone2.o' \
        'caller.o with_a.o plain.o' 'data_caller.o data1.o data2.o'; do
        echo "$objects"
        for linker in GNU lld-link ld.lld; do
            # The list of objects is words.
            # shellcheck disable=SC2086
            if link $linker $objects 2>log; then
                echo "  $linker: links"
            else
                echo "  $linker: $(grep -oE 'undefined reference|multiple definition|duplicate symbol' log | head -1)"
            fi
        done
    done
)
echo "$seen"
expected='caller.o with_a.o
  GNU: undefined reference
  lld-link: links
  ld.lld: links
caller.o with_a.o with_b.o
  GNU: undefined reference
  lld-link: duplicate symbol
  ld.lld: links
caller.o alone1.o alone2.o
  GNU: multiple definition
  lld-link: duplicate symbol
  ld.lld: duplicate symbol
caller.o with_a.o plain.o
  GNU: links
  lld-link: links
  ld.lld: links
data_caller.o data1.o data2.o
  GNU: links
  lld-link: links
  ld.lld: links'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
