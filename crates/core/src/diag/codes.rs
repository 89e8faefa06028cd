//! All kinds of diagnostics. Ids are a contract: they may be named in configuration and scripts.

use super::Code;

macro_rules! codes {
    ($($konst:ident $id:literal: $summary:literal, $explanation:literal;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $summary, ".")]
            pub static $konst: Code = Code {
                id: $id,
                summary: $summary,
                #[cfg(feature = "tools")]
                explanation: $explanation,
            };
        )*
        /// All codes, sorted by id.
        pub static CODES: &[&Code] = &[$(&$konst),*];
    };
}

codes! {
    COMPILER_ERROR "compiler-error": "the C compiler refused the generated sources",
        "The stubs are C and assembly, compiled for the target in the build script. The compiler's own
messages follow. The usual cause is a compiler for another target than cargo's, or flags in
`CFLAGS`; the variables of the cc crate choose another compiler.

    export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
    cargo build --target aarch64-unknown-linux-gnu";
    DATA_SYMBOL "data-symbol": "data symbol in a symbol list",
        "Only functions can be stubbed: a stub resolves the function at its first call. The address of data
(variables, tables, thread-local variables) is fixed before the program starts, so it requires
linking the library itself. If the program does not use it, remove the line.

    acmeTable kind=object size=64      # remove this line";
    DEVICE_CODE_IN_BUILD_SCRIPT "device-code-in-build-script": "relocatable code in a build script or procedural macro",
        "Relocatable code needs a device link in the program that contains it, and cargo has no way to pass
link arguments to build scripts and procedural macros. A build-dependency on such a library fails to
link. Depend on it in `[dependencies]` only, or make the generator a program of its own.

    [build-dependencies]
    physics = \"1\"            # has a device-link library";
    DEVICE_LINK_ERROR "device-link-error": "device code that cannot be linked",
        "nvcc (nvlink) links the device code of all RDC libraries of a program at once. Its own messages
follow. `Undefined reference` is device code of a library that `requires` does not name, `Multiple
definition` the same function in two libraries, `SM Arch not found` a library that is compiled for
fewer architectures than the others.

    [device-link.physics]
    requires = [\"geometry\"]
    archs = [\"sm_80\", \"compute_90\"]";
    DEVICE_LINKED_ARCHIVE "device-linked-archive": "archive that contains a device link",
        "nvlink silently skips the whole archive: its kernels are never registered, and references to them
stay undefined. The cc crate creates such archives from CUDA code, as does CMake with
CUDA_RESOLVE_DEVICE_SYMBOLS. Archive only the objects. An archive for host linkers alone, such as a
staticlib, may contain a device link: allow the rule for it (https://github.com/llnl/blt/pull/134).

    [device-link.physics]
    sources = [\"cuda/*.cu\"]              # instead of cc::Build::new().cuda(true)";
    DUPLICATE_DEVICE_LINK "duplicate-device-link": "library in two device links of one process",
        "The objects of a library register with the first device link that the loader finds. A second device
link waits for them forever and registers none of its kernels: the build succeeds, and launches fail
with \"invalid device function\". Use one device link for all libraries: let one shared library
require what all of them use. Or close an image, which then has its own device link and its own copy
of the device globals, as a cdylib over static libraries has. In built images, hide
`__cudaRegisterLinkedBinary*` and `__fatbinwrap*` (https://github.com/Alpine-DAV/ascent/issues/807).
For images that no program of the graph opens this is a warning: no process may open both.

    A*:shared -> B; C*:shared -> B
    p1:plugin -> A; p2:plugin -> C
    host:bin opens p1,p2      # A_final and C_final are both over B";
    DUPLICATE_DEVICE_OBJECTS "duplicate-device-objects": "one archive inside two images of a process",
        "An archive of relocatable objects that is linked into two shared libraries is in the process twice,
and both copies register with one device link under one name. Make the library shared, so that the
process has one copy, or close all images but one, each with a device link of its own.

    B*:static
    S1:shared -> B; S2:shared -> B
    exe:bin -> S1,S2";
    DUPLICATE_DEVICE_SYMBOL "duplicate-device-symbol": "two libraries of a device link that define the same device code",
        "Names of device functions and variables are unique in a device link. Two libraries that compile the
same source, or two versions of one crate in a program, stop nvlink with \"Multiple definition\".

    cargo tree -i physics      # dependents of each version";
    DUPLICATE_FUNCTION "duplicate-function": "two stubbed libraries with one function",
        "In one program a name is one function. If two stubbed libraries export the same one, only one of
their lists can contain it: remove it from the list of the library that the program does not mean,
or do not stub that library.

    [stub.acme]
    symbols = \"symbols/acme.symbols\"     # without the functions of acme-compat";
    DUPLICATE_STUB_NAME "duplicate-stub-name": "two stubs that would have the same name",
        "A library's id becomes a part of C names, with `_` for `-`, and its link names become files that
the linker finds. Both must differ between all stubs of a package.

    [stub.acme]
    link-names = [\"acme\"]
    [stub.acme-next]
    link-names = [\"acme\"]        # taken by stub.acme";
    DUPLICATE_SYMBOL "duplicate-symbol": "symbol listed twice",
        "Name and symbol version together identify a symbol, so each pair is listed once. Two lines of
one name with different versions are fine. Remove one of the two.

    acmeOpen version=ACME_1 compat
    acmeOpen version=ACME_2";
    DYLIB_CRATE "dylib-crate": "a Rust dylib that would hide the stubs",
        "Stubs are hidden symbols of the image that they are linked into. With `crate-type = [\"dylib\"]` the
Rust code that calls them can end up in another image, where they are missing. Use `rlib` for Rust
dependents and `cdylib` for others.

    [lib]
    crate-type = [\"rlib\", \"cdylib\"]";
    EMPTY_LAYER "empty-layer": "a layer whose path matches no file",
        "A layer of a super-archive names archives, directories, object files or globs, relative to
GpuStub.toml. Paths of files that the build script makes start with `$OUT_DIR/`; the files must
exist before the call of `gpustub_build`.

    [archive.builtins]
    layers = { gfx9 = [\"$OUT_DIR/gfx9/*.o\"], common = [\"clc/common.a\"] }";
    HARD_CODED_LOAD_NAME "hard-coded-load-name": "GPU library that a repaired image opens by name",
        "`cargo gpustub repair` replaces libraries that the dynamic loader loads at start. A library that the
code opens by a name in its data (`dlopen`) stays: where it is missing, `dlopen` returns NULL, which
the code may or may not handle. The loader has to find a library of that name.

    LD_LIBRARY_PATH=/usr/local/cuda/lib64 python app.py";
    HEADER_VERSION_MISMATCH "header-version-mismatch": "function unknown to the declared header version",
        "Headers rename many functions from one version to the next: `cuCtxCreate` in the source becomes
`cuCtxCreate_v4` in the object since 13.0. A name that `header-version` does not have therefore
shows that an object was compiled against other headers. With a wrong `header-version`, functions
are bound with different parameters, or refused without need. Correct `header-version`, or compile
all objects against the same headers.

    [stub.cuda]
    header-version = \"13.0\"";
    INCOMPATIBLE_STUBS "incompatible-stubs": "stubs of one library for incompatible headers in one image",
        "Packages that bring stubs of one library into an image share them. So no function may have different
ABI variants in the headers that they declare, and none of the packages may leave `header-version`
out if another one has it. The linker would report the duplicate symbol
gpustub_error_incompatible_header_versions_of_…, which both packages define. Compile both against
compatible headers or bindings, and declare them.

    [stub.cudart]
    header-version = \"12\"          # in the GpuStub.toml of both packages";
    INCOMPLETE_DEVICE_LINK "incomplete-device-link": "device link over a library missing from the process",
        "A device link registers its kernels once all of its libraries have registered. If one is missing
from the process, no kernel of the device link is registered. Link the library, or repeat the device
link without it. In built images the device link is usually older than the libraries around it
(https://github.com/celeritas-project/celeritas/pull/856).

    B*:shared
    old:shared prelinked=B     # no image links B
    exe:bin -> old";
    INDIRECT_DEVICE_LIBRARY "indirect-device-library": "device library that is only an indirect dependency",
        "Cargo passes `links` metadata to direct dependents only, so the build script of a program does not
receive the archive of an indirect dependency, which its device link needs. Run `cargo gpustub
sync`, which adds a finalizer crate, or depend on the library directly.

    [dependencies]
    gpustub-final-app = { path = \"gpustub-final\" }";
    INVALID_GRAPH "invalid-graph": "a graph of libraries that cannot be read or planned",
        "A statement is a name, a form, the linked and the opened libraries, and marks. Each name is declared
once; programs and plugins cannot be linked, archives not opened. No part of such a graph is
planned.

    B*:shared                 # relocatable code in a shared library
    A*:shared -> B
    exe:bin -> A opens p1,p2 cudart=shared";
    INVALID_LOAD_NAME "invalid-load-name": "a load name that no loader accepts",
        "A load name is a file name that is passed to the system's loader, which searches its own
directories: no slash, no control characters, at most 255 bytes. Directories are named with
`search-dirs`.

    [stub.acme]
    load-names = { linux = [\"libacme.so.3\"] }
    search-dirs = [\"$ORIGIN/../lib\"]";
    INVALID_SCHEMA "invalid-schema": "a GpuStub.toml that does not start with its schema",
        "The first key names the rules of the rest of the file, so that later versions can change them
without changing the meaning of older files.

    schema = 1

    [stub.cudart]";
    INVALID_SYMBOL_NAME "invalid-symbol-name": "a function name that assembly cannot spell",
        "A stub is an assembly label of the function's name: letters, digits, `_`, `$` and `.`, starting
with a letter or `_`. Remove other lines from the symbol list; calls to such functions cannot be
stubbed.

    acmeOpen        # fine
    acme-open       # not a label";
    INVALID_TOML "invalid-toml": "a file that is not TOML",
        "The file does not follow the TOML grammar at the location shown. The rest of the file is not
checked.

    [stub.cudart]
    majors = [\"13\", \"12\"]";
    INVALID_VALUE "invalid-value": "a value of the wrong type or out of range",
        "The key is known, but its value is invalid. The message lists the valid values. Versions are
strings, because 12.10 as a number would be 12.1.

    [stub.cudart]
    header-version = \"12\"       # not 12
    type = \"static\"     # or \"shared\"";
    IO_ERROR "io-error": "a file that cannot be read or written",
        "The message names the file and the system's reason. No other file was changed: files are written
under a temporary name in the same directory and then renamed, so that an interrupted run leaves
none half-written.

    error[io-error]: cannot write src/lib.rs: Permission denied";
    LAYER_CONFLICT "layer-conflict": "conflicting definitions in a view",
        "A member provides one symbol and also defines another that an earlier layer overrides. Of a weak
definition the view has a variant of the member, in which the symbol is undefined, so that every
reference takes the earlier layer's. A strong one cannot be replaced: compilers inline it, and
assume which registers it spares. Make the definition of the later layer weak, compile it from a
file of its own, or compile that layer with `-fPIC -fsemantic-interposition` and declare it in
`interposable`. Compilers insert the values of constants, even of weak ones: only equal constants
are accepted. Mach-O and COFF objects, GPU objects, indirect functions and objects with code for
link-time optimization have no variants.

    [archive.builtins]
    layers = { gfx9 = [\"gfx9/cos.o\"], common = [\"common/cos.o\", \"common/sin.o\"] }";
    LIMIT_EXCEEDED "limit-exceeded": "a number above the limit of the generated tables",
        "The tables are compact: numbers of libraries and of different kinds of functions have limits far
above those of real libraries. A list this large was probably made from the wrong file.

    127 libraries, 65535 different combinations of fall-back values in each";
    MACHINE_MISMATCH "machine-mismatch": "a library for another architecture",
        "The list was requested for one architecture, and the library is built for another. Exports differ
between architectures, so a list of the wrong one would be silently wrong.

    cargo gpustub symbols /usr/aarch64-linux-gnu/lib/libacme.so --machine aarch64";
    MALFORMED_LIBRARY "malformed-library": "a file that is not a readable shared library",
        "Symbols are read from the dynamic symbol table of an ELF shared library. The file is of
another kind, truncated, or inconsistent. A `libfoo.so` in a toolkit may be a linker script:
a text that names the real file. Name that file instead.

    cargo gpustub symbols /usr/local/cuda/lib64/libcudart.so.13";
    MALFORMED_SUPER_ARCHIVE "malformed-super-archive": "malformed or modified super-archive",
        "A super-archive must stay byte for byte as written. Tools that rewrite an archive (`ar r`,
`ranlib`, `strip`) move the members of a super-archive, and some drop its views. Apply them to the
inputs and build the super-archive again.

    cargo gpustub archive verify all.a";
    MALFORMED_SYMBOL_LIST "malformed-symbol-list": "a symbol list that cannot be read",
        "A symbol list is a text: the line `@gpustub-symbols 1`, then a symbol a line with its
attributes. `cargo gpustub add --from` writes the lists of user-defined libraries; a hand-written
one may consist of names only. Functions without `returns=` return NULL if the library is missing.

    @gpustub-symbols 1
    acmeClose returns=status
    acmeVersion returns=string";
    MISSING_ARCH "missing-arch": "no device code for a requested architecture",
        "nvlink builds code for a GPU from machine code of the same major and an equal or lower minor, or
from PTX or LTO code that is not newer. If a library has none, nvlink only warns and writes an empty
image; kernels fail at run time. With only PTX in `archs`, nothing is linked, and nvcc reports
nothing. Without `-arch`, nvlink links for the oldest GPU that it knows
(https://github.com/deepseek-ai/DeepEP/pull/554).

    [device-link.physics]
    archs = [\"sm_80\", \"sm_90\"]       # as in all libraries that it is linked with";
    MISSING_BUILD_FEATURE "missing-build-feature": "a table or file that needs a cargo feature of gpustub-build",
        "Functionality for some projects is behind a feature of the build-dependency, so that others do not
compile it: `device-link` for the tables of that name, `archive` for super-archives. `cargo gpustub
sync` writes these two. Members of super-archives are ELF objects and LLVM bitcode, the formats of
GPUs; `coff` and `macho` add the objects of Windows and macOS.

    [build-dependencies]
    gpustub-build = { version = \"0.1\", features = [\"device-link\"] }";
    MISSING_COMPILER "missing-compiler": "no C compiler for the target",
        "The stubs are C and assembly, so the build script needs a C compiler for the target. Install
one, or name one in `CC` or `CC_<target>`. No GPU toolkit is needed.

    apt-get install gcc
    CC=clang cargo build";
    MISSING_DEVICE_LINK "missing-device-link": "relocatable code without a device link in its process",
        "The objects of a library with relocatable code call functions that only a device link over them
defines. The linker reports `__cudaRegisterLinkedBinary_…` as undefined in a Rust program, test or
example without the line that names its finalizer crate: `cargo gpustub sync` adds it. A shared
library that is opened at run time and was linked with the middle of such a library has none: it
cannot be loaded. Open a plugin, which has a device link, or the final of the library, and open it
first. `check` inspects programs together with their needed libraries, and other images together
with all files around them (https://github.com/pytorch/extension-cpp/issues/80).

    B*:shared
    plug:shared -> B           # `plugin` has a device link
    host:bin opens plug";
    MISSING_HEADER_VERSION "missing-header-version": "unknown version of the headers",
        "A name of such a library has one meaning in one version and another in the next: more arguments, or
another struct behind a pointer (https://github.com/ROCm/hipfort/issues/387). The stubs bind a name
only where it means what the program's headers mean. `cargo gpustub add` reads the version from a
binding crate's feature (`cuda-12080` of cudarc), from `[toolkit]`, or from an installed toolkit;
otherwise declare the version that the program is compiled against. `\"none\"` refuses these functions
on every machine, for a program that calls none of them.

    [stub.cudart]
    header-version = \"12.8\"     # or \"none\"";
    MISSING_KEY "missing-key": "a mandatory key is missing",
        "Some tables have mandatory keys: an entry of `[[policy.allow]]` needs the rule that it allows and
the reason, a user-defined library needs its load names and its symbol list.

    [stub.acme]
    load-names = { linux = [\"libacme.so.3\"] }
    symbols = \"symbols/acme.symbols\"";
    MISSING_LOAD_NAME "missing-load-name": "a library without a file name on the target's system",
        "No load name is known for this library on the target's operating system. The program builds and
starts there, and the library is never found: every call returns the fall-back.

    [stub.acme]
    load-names = { linux = [\"libacme.so.3\"], freebsd = [\"libacme.so.3\"] }";
    MISSING_NVCC "missing-nvcc": "no CUDA compiler",
        "Device-link libraries are compiled by nvcc, found by NVCC, CUDA_HOME, CUDA_PATH, PATH, in
/usr/local/cuda and /opt/cuda, and in the wheels of the active Python environment. With
`optional = true` a library is left out if there is no nvcc; Rust code tests for it with
`#[cfg(gpustub_device_link = \"physics\")]`.

    [device-link.physics]
    optional = true";
    MISSING_SYMBOL_LIST "missing-symbol-list": "a symbol list that does not exist",
        "`symbols` names a file, relative to GpuStub.toml, that lists the library's functions. It is made
once from the library itself and committed, so that other machines build without it.

    cargo gpustub add acme --from /opt/acme/lib/libacme.so --headers acme.h";
    MIXED_CUDART "mixed-cudart": "static and shared CUDA runtime in one process",
        "Each copy of the CUDA runtime has its own list of kernels and its own state. With the static one in
one image and the shared one in another, kernels are registered with one and launched with the
other: \"invalid device function\". gpustub's stub of cudart counts as shared
(https://github.com/NVIDIA/thrust/issues/1737).

    [device-link.physics]
    cudart = \"shared\"";
    NO_SYMBOLS "no-symbols": "an object file whose symbols are unknown",
        "Symbols are read from ELF, COFF, Mach-O and WebAssembly objects, SPIR-V, and LLVM bitcode; for
other members they are those of the input archive's index. This member is named like an object
file, or contains only GCC's code for link-time optimization, and no index has symbols of it: no
view finds them.

    gcc-ar rcs libf.a f.o      # not `ar`, for objects of `gcc -flto`";
    NONCANONICAL_BITCODE "noncanonical-bitcode": "bitcode that keeps the name of its processor",
        "With `canonical-bitcode = true`, or `--canonical-bitcode`, LLVM bitcode modules are written without
their processor, source file name and producer. This module has a form that is not supported, and is
written unchanged: a bitcode wrapper, a ThinLTO summary, LLVM before 5, or a version of LLVM newer
than this program.

    clang -c -emit-llvm cos.c -o cos.bc      # without -flto, which adds a summary";
    NVCC_ERROR "nvcc-error": "the CUDA compiler reported an error",
        "nvcc compiles the sources of device-link libraries, and links their device code. Its own
messages follow. The valid `-arch` names are listed by `nvcc --list-gpu-code`.

    export CUDA_HOME=/usr/local/cuda-12.9      # another toolkit";
    OBJECT_LIBRARY "object-library": "relocatable code in objects outside of a library",
        "A device link is over archives, each of them once. Objects that are passed from target to target
would be in several device links, and the graph does not show which. Declare a static or shared
library.

    A*:static                  # not A*:object";
    OUT_OF_SYNC "out-of-sync": "files that are out of date with GpuStub.toml",
        "`cargo gpustub sync` would change the lock file, the build script line or a symbol list. Builds do
not fail for this reason. Run `sync` and commit its changes.

    cargo gpustub sync";
    OVERRIDE_MAY_BE_INLINED "override-may-be-inlined": "overridden functions that may be inlined",
        "LLVM may inline functions with the linkage `linkonce_odr` or `weak_odr`, as in AMD's device
libraries: all their definitions are supposed to be equal. Where an earlier layer overrides one, the
view has a variant of the module, in which the function is only declared. Calls reach the earlier
layer's function, but copies that the compiler inlined into other functions of the module stay.
Compile the layer without inlining, or with the linkage `weak`.

    view `gfx9`: `common.bc` of layer `common` may contain copies of `cos1`";
    PYTHON_LOADER "python-loader": "Python code that loads a GPU library",
        "Some wheels load the libraries of CUDA wheels before their own, and raise an exception if one is
missing. `cargo gpustub repair` edits no Python code. The repaired images need no such library any
more: let the code continue without it, or remove its entry from the list that it reads.

    try:
        ctypes.CDLL(\"libcudart.so.12\", mode=ctypes.RTLD_GLOBAL)
    except OSError: pass                 # the stubs of the repaired images answer";
    REQUIRES_CYCLE "requires-cycle": "device-link libraries that require each other",
        "A library is device-linked after the libraries that it requires, so `requires` must not form a
cycle. Two libraries that call each other's device code are one library, or both need a third one
with the shared code.

    [device-link.physics]
    requires = [\"geometry\"]
    [device-link.geometry]
    requires = [\"physics\"]          # closes the cycle";
    RESERVED_SYMBOL "reserved-symbol": "name of the C or C++ run time in a symbol list",
        "A stub takes its name in the whole program. With a stub of `malloc`, each allocation of the program
would load the library, and fail without it: the program ends before `main`. Libraries that link an
allocator or the C++ run time statically often export such names. `cargo gpustub add --from` leaves
them out; remove them from other lists. If the program means the library's own function, name it in
`allowed-symbols`. `main`, `_start`, `_DYNAMIC`, `_GLOBAL_OFFSET_TABLE_` and the names of gpustub's
run time (`gpustub_…`) are defined in each program and cannot be allowed.

    [stub.acme]
    allowed-symbols = [\"malloc\", \"free\"]";
    STATIC_LIBC "static-libc": "a statically linked C library that cannot load others",
        "Stubs load the real library at run time with `dlopen`. A program that links musl statically has no
working `dlopen`: every load fails. Link musl dynamically, or use a gnu target.

    RUSTFLAGS=\"-C target-feature=-crt-static\" cargo build --target x86_64-unknown-linux-musl";
    TOO_MANY_DIAGNOSTICS "too-many-diagnostics": "a file with more problems than are shown",
        "The first problems of a file are shown, and the others are counted: a file that is generated by
mistake may have one in every line. Fix those that are shown, and run the command again.

    cargo gpustub sync";
    UNKNOWN_DEVICE_LIBRARY "unknown-device-library": "a library that is not in the graph",
        "A library links, opens or requires one that no table and no statement declares. Either the name is
misspelt, or the package that declares it is not among the dependencies.

    [device-link.physics]
    requires = [\"geometry\"]             # of this file, or of a dependency";
    UNKNOWN_FUNCTION "unknown-function": "a function that is not in the library's list",
        "The name is not in the library's symbol list, so no function could be bound to it. Either it is
misspelt, or the list is of another version; the nearest name is given.

    [stub.cudart]
    required-functions = [\"cudaMallocAsync\"]";
    UNKNOWN_KEY "unknown-key": "a key that is unknown in this table",
        "Unknown keys are errors, so that a typing mistake cannot silently change what is built. The
nearest known key is named.

    [stub.cudart]
    requires = [\"cudaMallocAsync\"]       # the key is `required-functions`";
    UNKNOWN_LAYER "unknown-layer": "a view that names an undeclared layer",
        "The views of a super-archive are lists of its layers.

    [archive.builtins]
    layers = { gfx9 = [\"gfx9/*.o\"], common = [\"common.a\"] }
    views = { gfx900 = [\"gfx9\", \"common\"] }";
    UNKNOWN_LIBRARY "unknown-library": "a library that gpustub does not ship a manifest for",
        "Either the name is misspelt, or the library is user-defined and needs its load names and its symbol
list, which `add --from` writes.

    cargo gpustub add acme --from /opt/acme/lib/libacme.so --headers acme.h";
    UNKNOWN_SYMBOL "unknown-symbol": "a symbol that no view of a super-archive contains",
        "Symbols are named as linkers know them: C++ names mangled. `nm` lists those of all views, each
with the member that defines it.

    cargo gpustub archive nm all.a --view gfx900";
    UNKNOWN_VERSION "unknown-version": "a version that is unknown in the library's manifest",
        "`majors` and `header-version` choose among the versions that the library's manifest was made from:
load names and changes of the ABI are known for those only. A newer gpustub may know more. The last
minor release of a major is known once the next major is out: there is no CUDA 12.10.

    [stub.cudart]
    majors = [\"13\", \"12\"]
    header-version = \"12\"";
    UNMATCHED_SOURCES "unmatched-sources": "a pattern that matches no source file",
        "`sources` of a device-link library names CUDA files by patterns, relative to GpuStub.toml: `*`
for part of a name, `**` for any directories. A pattern without a match is usually a typing mistake.

    [device-link.physics]
    sources = [\"cuda/*.cu\"]";
    UNSHARED_DEVICE_GLOBALS "unshared-device-globals": "device globals with a copy per image",
        "A Rust cdylib contains its own copy of the static libraries that it reaches, as does each closed
image. All copies work, but device globals and constants are not shared: one image does not see the
writes of another. To share them, make the library shared. If separate copies are intended, allow
the rule (https://github.com/NVIDIA/thrust/issues/1737).

    A*:static
    cdy:cdylib -> A
    bin:bin -> A opens cdy";
    UNSUPPORTED_FORMAT "unsupported-format": "file in a format newer than this gpustub",
        "The format number at the start of the file is higher than the highest that this gpustub supports.
Use a newer gpustub; in a build script, update the build-dependency.

    cargo update -p gpustub-build
    cargo install cargo-gpustub";
    UNSUPPORTED_IMAGE "unsupported-image": "program or library that cannot be repaired",
        "A stub library has functions of the GPU libraries that gpustub knows. It has no data, no C++ classes
and no functions of other libraries. An image that needs these, or is damaged, stays as it is, and
still needs the library; others of the package are repaired. A static CUDA runtime stays.

    cargo gpustub export stubs cudart --header-version 12 --out-dir stubs     # for its own build";
    UNSUPPORTED_TARGET "unsupported-target": "a target without stubs or device links",
        "A stub is a few instructions of assembly, written for each architecture and object format. There
are none for this target. Such a build has no stubs: the program links the libraries itself, or
leaves its GPU code out. `targets` states where a library has stubs; for other targets there is no
warning.

    [stub.cudart]
    targets = [\"linux\"]

CUDA code of `[device-link.*]` tables is linked for Linux only.";
    UNSUPPORTED_WHEEL "unsupported-wheel": "wheel that cannot be rewritten",
        "Any change makes the signature of a wheel invalid; `--unsign` removes it. A damaged archive, one
that unpackers read in different ways, or one of more than 4 GiB is never rewritten.

    cargo gpustub repair dist/x.whl --unsign --out-dir repaired";
    UNUSED_LAYER "unused-layer": "a layer of a super-archive that no view contains",
        "No member of the layer is written. Name the layer in a view, or remove it.

    [archive.builtins]
    layers = { gfx9 = [\"gfx9/*.o\"], common = [\"common.a\"] }
    views = { gfx900 = [\"common\"] }       # and gfx9?";
    WEAK_SYMBOL "weak-symbol": "weak C++ symbols that get no stub",
        "Inline functions and templates of C++ are weak symbols of every library that uses them, and the
program has its own copy. A stub would replace that copy and redirect the program's own calls into
the library. They are left out; the functions that the library itself defines remain.

    _ZNSt6vectorIiSaIiEE9push_backERKi weak      # std::vector<int>::push_back";
}
