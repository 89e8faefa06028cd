//! The fields of `GpuStub.toml`, as a table: the decoder's known keys, the JSON schema and the
//! reference page all come from it.

/// Type of a field's value.
#[cfg(feature = "tools")]
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum Type {
    /// A string.
    String,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// A list of strings.
    Strings,
    /// A table with fields of its own, by the id of its section.
    Table(&'static str),
    /// A list of such tables.
    Tables(&'static str),
    /// A table from names to tables of this section.
    Map(&'static str),
    /// A table from names to strings.
    MapString,
    /// A table from names to lists of strings.
    MapStrings,
    /// A string or `false`.
    StringOrFalse,
    /// A table from names to one of these strings.
    MapOneOf(&'static [&'static str]),
    /// `{ linux = [...], windows = [...] }`, by [`SYSTEMS`].
    NamesByOs,
    /// A table from function names to lists such as `[0, { arg = 1, size = 4 }]`: whole numbers
    /// and tables of section `stub.zero-out`.
    ZeroOut,
}

/// A field of a section.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy)]
pub struct Field {
    /// Section that contains it: `""` (the top), `stub`, `policy`, …
    pub section: &'static str,
    /// The key.
    pub name: &'static str,
    /// Type of its value.
    #[cfg(feature = "tools")]
    pub ty: Type,
    /// Whether its table must contain the key.
    #[cfg(feature = "tools")]
    pub required: bool,
    /// Meaning, with the default.
    #[cfg(feature = "tools")]
    pub doc: &'static str,
    /// An example value, as TOML.
    #[cfg(feature = "tools")]
    pub example: &'static str,
}

/// The value of `schema` that this version reads.
pub const SCHEMA_VERSION: i64 = 1;

/// The values of `CARGO_CFG_TARGET_OS` that load names can be given for.
pub const SYSTEMS: &[&str] = &["linux", "freebsd", "windows", "macos", "android"];

/// The values of `type`; the first is the default.
pub const LIBRARY_TYPES: &[&str] = &["static", "shared"];

/// Values of `dlopen-note`; the first is the default.
pub const DLOPEN_NOTES: &[&str] = &["suggested", "recommended", "off"];

/// Values of `type` of a device-link table; the first is the default.
pub const DEVICE_LINK_TYPES: &[&str] = &["static", "shared", "module"];

/// Values of `format` of a module; the first is the default.
pub const MODULE_FORMATS: &[&str] = &["fatbin", "cubin", "ptx"];

/// Values of `compiler` of a device-link library; the first is the default.
pub const CUDA_COMPILERS: &[&str] = &["nvcc", "clang"];

/// Values of `cudart` of a device-link library; the first is the default.
pub const CUDARTS: &[&str] = &["shared", "static", "none"];

/// The levels of a policy rule.
pub const LEVELS: &[&str] = &["allow", "warn", "deny"];

/// Names of a section's fields: the keys that the decoder knows.
pub fn keys(section: &str) -> Vec<&'static str> {
    let mut keys = Vec::new();
    for field in FIELDS {
        if field.section == section {
            keys.push(field.name);
        }
    }
    keys
}

macro_rules! fields {
    ($($section:literal { $($name:literal: $ty:expr, $required:literal, $example:literal, $doc:literal;)* })*) => {
        /// All fields, in the order of the reference page.
        pub const FIELDS: &[Field] = &[$($(Field {
            section: $section,
            name: $name,
            #[cfg(feature = "tools")]
            ty: $ty,
            #[cfg(feature = "tools")]
            required: $required,
            #[cfg(feature = "tools")]
            doc: $doc,
            #[cfg(feature = "tools")]
            example: $example,
        }),*),*];
    };
}

// Each line: key, type, whether mandatory, example, meaning.
fields! {
    "" {
        "schema": Type::Integer, true, "1",
            "The rules that the file follows: 1. Must be the first key, so that later versions can \
             change the rules without changing what older files mean.";
        "stub": Type::Map("stub"), false, "{ nvrtc = {} }",
            "The libraries to stub, a table each: `[stub.cudart]`. The table of a library that gpustub \
             knows may be empty, unless the library needs `header-version`. `cargo gpustub add` writes \
             one.";
        "device-link": Type::Map("device-link"), false,
            "{ physics = { sources = [\"cuda/*.cu\"], archs = [\"sm_80\"] } }",
            "Libraries of relocatable CUDA or HIP code (nvcc's `-rdc=true`, clang's `-fgpu-rdc`), a table each: \
             `[device-link.physics]`. Each program links their device code once, over all that it \
             reaches; `cargo gpustub plan` shows where.";
        "link-archs": Type::Strings, false, "[\"sm_90\"]",
            "The architectures that the device links of this package's programs, tests and C libraries are made for: \
             machine code (`sm_90`, `sm_90a`, `gfx942`). Each library needs code that serves them, by nvlink's rules: \
             `sm_80` code serves `sm_86`. Default, for each vendor: all that the libraries contain. Shared libraries, \
             and programs that use the device link of one, are not changed. A library's own code is always compiled \
             for its `archs`.";
        "archive": Type::Map("archive"), false,
            "{ builtins = { layers = { common = [\"common.a\"] }, views = { gfx900 = [\"common\"] } } }",
            "Super-archives, static libraries for many GPU families in one file, a table each: \
             `[archive.builtins]`. The build script writes `OUT_DIR/builtins.a`, and the package's code \
             embeds it by `include_bytes!(env!(\"GPUSTUB_ARCHIVE_BUILTINS\"))`.";
        "policy": Type::Table("policy"), false, "{ platform-tag = \"manylinux_2_28\" }",
            "Settings of `cargo gpustub check`: for the whole workspace in the file at its root, for a \
             package's own directory in the file of the package. A package's settings add to those of the \
             root, and override them where both name a rule.";
        "toolkit": Type::Table("toolkit"), false, "{ cuda = \"12.8\" }",
            "Directory that build scripts of dependencies see as an installed toolkit. \
             `cargo gpustub add --toolkit cuda=12.8` writes it, `sync` maintains it. Only in the file at the workspace \
             root.";
    }
    "stub" {
        "majors": Type::Strings, false, "[\"13\", \"12\"]",
            "The major versions that the program accepts, in order of preference. Default: all that \
             the library's manifest knows, the major of `header-version` first, then newest first.";
        "header-version": Type::String, false, "\"12\"",
            "The version of the headers (or bindings) that the program was compiled against: a major \
             (`\"12\"`) or an exact version (`\"11.8\"`). It decides which functions have the \
             meaning that the program expects. `\"none\"` declares no version: functions whose meaning \
             changed between versions return the library's \"not supported\" code. No default: a library \
             that has such functions needs one or the other.";
        "required-functions": Type::Strings, false, "[\"cudaMallocAsync\"]",
            "Functions without which a library counts as unavailable. Default: none.";
        "min-version": Type::String, false, "\"11.2\"",
            "The lowest version that counts as available, for libraries whose version can be \
             queried. Default: any.";
        "search-dirs": Type::Strings, false, "[\"$ORIGIN/../lib\"]",
            "Directories that are searched before all others: absolute, or starting with `$ORIGIN`, \
             the directory of the program or shared library that holds the stubs. Paths of Windows \
             (`C:\\\\cuda\\\\bin`, `C:/cuda/bin`, `$ORIGIN\\\\gpu`) are for targets of Windows only, those that \
             begin with one `/` for other targets only. Default: none.";
        "type": Type::OneOf(LIBRARY_TYPES), false, "\"static\"",
            "`\"static\"` puts the stubs, hidden, into the program that links them; `\"shared\"` makes \
             a shared library that exports them, under a symbol version of its own; ship it in the \
             directory of the program, see `docs/distributions.md`. Default: `\"static\"`.";
        "dlopen-note": Type::OneOf(DLOPEN_NOTES), false, "\"recommended\"",
            "Priority of the library in the ELF note `.note.dlopen` of images that use the stubs, from which \
             tools of distributions derive dependencies of packages; `\"off\"`: no note. Linux only, see \
             `docs/distributions.md`. Default: `\"suggested\"`.";
        "provide": Type::Bool, false, "true",
            "Whether this package brings the stubs. `false`: the stubs in the image come from elsewhere, \
             as with `type = \"shared\"` in another package. For static stubs it is unnecessary: several \
             packages may bring stubs of one library. Default: `true`.";
        "required-features": Type::Strings, false, "[\"nvrtc\"]",
            "Cargo features of this package: the stub exists when all of them are enabled. Default: \
             none, it always exists.";
        "targets": Type::Strings, false, "[\"linux\"]",
            "Targets for which the stub exists: operating systems (`\"linux\"`, `\"freebsd\"`), and target \
             triples, in which `*` matches any text (`\"*-linux-gnu\"`). For other targets the table is \
             ignored: what links the library there stays as it is without gpustub. Default: every \
             target. A target that can have no stubs is a warning, and the build has none.";
        "link-names": Type::Strings, false, "[\"acme\"]",
            "Library names for `-l` that link the stubs. Default: those of the library's manifest; \
             for a user-defined library, its id.";
        "load-names": Type::NamesByOs, false, "{ linux = [\"libacme.so.3\", \"libacme.so.2\"] }",
            "File names to request from the loader, by operating system, in order of preference. The \
             number after `.so.` is the major. Required for a user-defined library; for a known one it \
             replaces the names of the manifest.";
        "symbols": Type::String, false, "\"symbols/acme.symbols\"",
            "Symbol list, relative to this file. `cargo gpustub add acme --from FILE --headers HEADER` \
             writes it from the library itself: a function a line, with what it returns (`returns=`) if the \
             library is missing. Each function of a user-defined library needs that, or `fallback.returns`. Required for a user-defined library; for a known one it replaces the \
             manifest's list.";
        "allowed-symbols": Type::Strings, false, "[\"malloc\"]",
            "Names of the C and C++ run time that get a stub: in this program they are functions of the \
             library. Other names of the run time are refused in `symbols`. Default: none.";
        "fallback": Type::Table("stub.fallback"), false,
            "{ status = 999, string = \"acme is not installed\" }",
            "Return values of functions that cannot be called. Default: those of the library's \
             manifest, function by function.";
        "zero-out": Type::ZeroOut, false,
            "{ acmeOpen = [0], acmeCount = [{ arg = 0, size = 4 }] }",
            "Out-parameters to set to zero when a function cannot be called: a list for each function, \
             of arguments counted from 0 among the integer and pointer arguments. A number alone is a \
             pointer-sized one. NULL is never written through. Adds to the manifest's.";
    }
    "stub.fallback" {
        "returns": Type::String, false, "\"status\"",
            "Result of the functions of a user-defined library without `returns=` in its list: `status`, `null` (NULL \
             or 0), `string`, `void`, `value:N`, `zeroed-struct:SIZE` or `zeroed-hfa:SIZE`. Default: none, such \
             functions are refused.";
        "status": Type::Integer, false, "999",
            "Status code of every function that returns one, whatever the reason: for a user-defined library, \
             of those with `returns=status` in its list. Default: the manifest's codes; for a user-defined \
             library, -1.";
        "string": Type::String, false, "\"acme is not installed\"",
            "Text of functions that return one (`returns=string`). Default: the manifest's; for a user-defined \
             library, \"ID is not available; GPUSTUB_LOG=1 shows why\".";
    }
    "stub.zero-out" {
        "arg": Type::Integer, true, "0",
            "The argument, counted from 0 among the integer and pointer arguments.";
        "position": Type::Integer, false, "2",
            "The argument, counted from 0 among all arguments, for Windows, where each takes a register or word. \
             Default: `arg`.";
        "size": Type::Integer, false, "4",
            "Number of bytes to set to zero, 1 to 65535. Default: the size of a pointer.";
    }
    "device-link" {
        "sources": Type::Strings, false, "[\"cuda/*.cu\"]",
            "Files to compile as CUDA, relative to this file: `*` matches any text and `?` one \
             character of a name, `**` any directories. Names end in `.cu`, `.cpp`, `.cc` or `.cxx`. \
             `$OUT_DIR/` at the start: files that the build script writes. Without `sources` and `prebuilt` the library consists of its headers.";
        "prebuilt": Type::String, false, "\"/opt/acme/lib/libacme_static.a\"",
            "Instead of `sources`: a finished archive of relocatable objects (nvcc -rdc=true, for AMD clang \
             -fgpu-rdc), without a device link in it. Relative to this file, absolute, or after `$OUT_DIR/` made by the build script before \
             `finalize()`.";
        "prebuilt-shared": Type::Table("device-link.prebuilt-shared"), false,
            "{ middle = \"/opt/acme/lib/libacme.so\", final = \"/opt/acme/lib/libacme_final.so\" }",
            "With `prebuilt` and `type = \"shared\"`: the shared libraries that hold it at run time. Not for AMD.";
        "include-dirs": Type::Strings, false, "[\"include\"]",
            "Directories with headers, relative to this file or, after `$OUT_DIR/`, made by the build \
             script; for a `prebuilt` library they may be absolute. \
             Published: libraries that require this one are compiled with them too. Default: none.";
        "defines": Type::MapString, false, "{ USE_FAST = \"1\" }",
            "Macros, as after `-D`. Published. Default: none.";
        "compile-options": Type::Strings, false, "[\"--use_fast_math\"]",
            "Arguments for the compile steps of nvcc and clang. Published. Without architectures, runtime and kind of \
             output: gpustub passes those itself. Default: none.";
        "requires": Type::Strings, false, "[\"geometry\"]",
            "The `device-link` libraries whose code this one calls: of this file, or of packages that \
             this package depends on. Default: none.";
        "compiler": Type::OneOf(CUDA_COMPILERS), false, "\"clang\"",
            "The compiler of CUDA `sources`: `\"clang\"` compiles them with the headers of the toolkit. nvcc makes \
             the device links over the objects of both. Not for modules, `cudadevrt` and `lto_` in `archs`. Code for AMD is \
             always clang's. Default: `\"nvcc\"`.";
        "archs": Type::Strings, false, "[\"sm_80\", \"sm_90\", \"compute_90\"]",
            "Architectures that the code is compiled for, or that the archive contains: `gfx` for AMD, `sm_` for machine \
             code, `lto_` for code that is finished at the device link, `compute_` for PTX, from which \
             device links for newer `sm_` are made, by drivers for later GPUs too. A device link is for each `sm_` and \
             `lto_` of any of its libraries, and contains no PTX. No default: on a GPU that is missing here a \
             program fails at run time. Only a library of headers needs none.";
        "type": Type::OneOf(DEVICE_LINK_TYPES), false, "\"shared\"",
            "`\"static\"` puts the objects into the program; `\"shared\"` makes a library of them and a \
             second one with its device link, so that other languages can use both. `\"module\"` makes a \
             file for programs that load device code themselves (`cuModuleLoadData`, `hipModuleLoadData`), and no \
             program is linked with it: `include_bytes!(env!(\"GPUSTUB_MODULE_PHYSICS\"))`. Architectures of both vendors \
             make two files, whose variables end in `_CUDA` and `_HIP`. Default: `\"static\"`.";
        "format": Type::OneOf(MODULE_FORMATS), false, "\"cubin\"",
            "Of a module: `\"fatbin\"` has the code of all `archs`, for AMD as an offload bundle; of CUDA alone are `\"cubin\"`, \
             machine code for one, and `\"ptx\"`, PTX for one, as text, of LTO code (`lto_`) or with `separable = false`. Default: `\"fatbin\"`.";
        "separable": Type::Bool, false, "false",
            "Of a module: `true` compiles relocatable code, and links it with all libraries in `requires` \
             to one file; `false` makes a file of each source, which calls no function of another one, \
             and whose variable ends in the source's name: `GPUSTUB_MODULE_PHYSICS_WAVES`. Default: `true`.";
        "cudart": Type::OneOf(CUDARTS), false, "\"static\"",
            "The CUDA runtime that the library's host code is linked with. gpustub's own stub counts as \
             shared. All libraries of a process must have the same. Default: `\"shared\"`.";
        "cudadevrt": Type::Bool, false, "true",
            "`true`: its kernels launch kernels. Device links with it, and their programs, contain the \
             toolkit's `libcudadevrt.a`. Not with `type = \"shared\"`. Default: `false`, such launches fail \
             the device link.";
        "optional": Type::Bool, false, "true",
            "`true`: without its compiler the library is left out, with a warning. Default: `false`, a missing \
             compiler is an error.";
        "required-features": Type::Strings, false, "[\"gpu\"]",
            "Cargo features of this package: the library is built when all of them are enabled. \
             Default: none, it is always built.";
    }
    "device-link.prebuilt-shared" {
        "middle": Type::String, true, "\"/opt/acme/lib/libacme.so\"",
            "The library with the objects, not device-linked.";
        "final": Type::String, true, "\"/opt/acme/lib/libacme_final.so\"",
            "The library with the device link.";
    }
    "archive" {
        "layers": Type::MapStrings, true,
            "{ gfx9 = [\"clc/gfx9/*.bc\"], common = [\"clc/common.a\"] }",
            "Members that are searched together, by name: archives, directories, object files, or globs (`*` \
             matches any text and `?` one character of a name, `**` any directories), relative to \
             this file or absolute. Files that the build script itself makes start with `$OUT_DIR/`. Of two \
             members that define a symbol the first is used.";
        "views": Type::MapStrings, false, "{ gfx900 = [\"gfx9\", \"common\"] }",
            "The archives in it, by name: layers, in the order in which they are searched. For each \
             symbol the search begins with the first layer. Required without `unpack`.";
        "unpack": Type::Bool, false, "true",
            "`true`: instead of `views`, one view for each target of the device code in fat objects (offload binaries \
             and bundles of clang, fatbins of CUDA), such as `gfx90a` and `sm_80`, and `host` for the host code, which \
             is the default view. Each has the layers in the order of the file. Default: `false`, device code stays in \
             its objects.";
        "interposable": Type::Strings, false, "[\"common\"]",
            "Layers whose strong definitions an earlier layer may override: their members were compiled with \
             `-fPIC -fsemantic-interposition`, so that each function can be replaced. Default: none, only weak \
             definitions can be overridden in a member that is needed for another one.";
        "default-view": Type::StringOrFalse, false, "\"gfx900\"",
            "The view that ordinary tools see, such as `ar`, `nm` and linkers; `false`: none. Default: the \
             first one.";
        "canonical-bitcode": Type::Bool, false, "true",
            "`true`: LLVM bitcode is written without its source file name, its producer and the function \
             attributes `target-cpu`, `target-features` and `tune-cpu`, so that families share it. Its \
             compilation must pass them: `-mcpu` and `-mattr`. Default: `false`, members are unchanged.";
        "compress": Type::Bool, false, "true",
            "`true`: members are compressed (zstd), except those of the default view, which ordinary tools read. Programs \
             decompress them into memory of their own. Build scripts need the feature `zstd` of gpustub-build. Default: \
             `false`, programs use members in place.";
        "split": Type::Bool, false, "true",
            "`true`: each LLVM bitcode module is split into members of a few functions and variables, which \
             families share; needs llvm-dis and llvm-as, of the modules' release or newer. Build scripts need the feature \
             `split` of gpustub-build. Default: `false`.";
        "required-features": Type::Strings, false, "[\"builtins\"]",
            "Cargo features of this package: the super-archive is written when all of them are enabled. \
             Default: none, it is always written.";
    }
    "toolkit" {
        "path": Type::String, false, "\"third-party/toolkit\"",
            "Path of the directory, relative to this file. Default: `\"gpustub-toolkit\"`.";
        "cuda": Type::String, false, "\"12.8\"",
            "CUDA release that the directory reports. Default: no CUDA toolkit.";
        "hip": Type::String, false, "\"6.4\"",
            "HIP release that the directory reports. Default: no HIP toolkit.";
        "force": Type::Bool, false, "true",
            "Whether build scripts see the directory even if the environment names another toolkit. \
             Default: `false`, the toolkit of the environment is used.";
        "override-build-scripts": Type::Strings, false, "[\"cuda-driver-sys\"]",
            "Crates whose build scripts cargo shall not run, because they only print which libraries to \
             link: gpustub knows their output. Default: none.";
    }
    "policy" {
        "platform-tag": Type::String, false, "\"manylinux_2_28\"",
            "The platform tag that wheels of this workspace must keep. Default: not checked.";
        "rules": Type::MapOneOf(LEVELS), false, "{ \"needed-toolkit\" = \"deny\" }",
            "The level of each rule of `cargo gpustub check`. Default: the level in the root's file for a \
             package, else each rule's own.";
        "allow": Type::Tables("policy.allow"), false,
            "[{ rule = \"needed-driver\", path = \"target/release/bench\", reason = \"GPU machines only\" }]",
            "Findings that are accepted, each with the reason: `[[policy.allow]]`.";
    }
    "policy.allow" {
        "rule": Type::String, true, "\"needed-driver\"", "The rule whose finding is accepted.";
        "path": Type::String, false, "\"target/release/bench\"",
            "File in which it is accepted, or a directory or archive around the file, relative to this file; \
             `dist/a.whl!a/b.so` is a file in an archive. A `*` matches any text, slashes \
             included. Default: everywhere.";
        "reason": Type::String, true, "\"benchmarks run on GPU machines only\"",
            "Reason, for later readers.";
        "until": Type::String, false, "\"2027-01-31\"",
            "Last day, as year-month-day, on which it is accepted; from the next day on it is reported \
             again. Default: no end.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_reached_and_every_name_is_unique() {
        for (index, field) in FIELDS.iter().enumerate() {
            assert!(
                !FIELDS[..index].iter().any(|previous| {
                    (previous.section, previous.name) == (field.section, field.name)
                }),
                "{}.{}",
                field.section,
                field.name
            );
            assert!(field.doc.ends_with('.'), "{}.{}", field.section, field.name);
            let reached = field.section.is_empty()
                || field.section == "stub.zero-out"
                || FIELDS.iter().any(|parent| match parent.ty {
                    Type::Table(section) | Type::Tables(section) | Type::Map(section) => {
                        section == field.section
                    }
                    _ => false,
                });
            assert!(reached, "no field contains section {}", field.section);
        }
    }
}
