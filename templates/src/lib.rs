//! The templates of gpustub, as text: data, no code.
//!
//! `asm/` contains the trampolines of each architecture and `runtime/` the C run time: real source
//! files that compile unchanged, around a generated table. `tree/` contains the Handlebars files
//! for the files that `cargo gpustub` writes into users' trees.

/// A template: its path below this package, with `/`, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// The path below this package, for example `asm/x86_64.S`.
    pub path: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! templates {
    ($(#[$doc:meta])* $name:ident: $($path:literal),* $(,)?) => {
        $(#[$doc])*
        pub const $name: &[Template] = &[$(Template {
            path: $path,
            text: include_str!(concat!("../", $path)),
        }),*];
    };
}

templates![
    /// The trampolines, one file per architecture.
    ASM: "asm/aarch64.S", "asm/x86_64.S",
];

templates![
    /// The C run time (`runtime/runtime.c` includes the others), and the layout of the trampolines.
    RUNTIME:
    "runtime/api.c",
    "runtime/call.c",
    "runtime/candidate.c",
    "runtime/client.c",
    "runtime/elf_table.h",
    "runtime/file_check.c",
    "runtime/format.c",
    "runtime/gpustub.h",
    "runtime/hook.c",
    "runtime/image.c",
    "runtime/internal.h",
    "runtime/load.c",
    "runtime/loader.c",
    "runtime/parts.c",
    "runtime/preload.c",
    "runtime/query.c",
    "runtime/report.c",
    "runtime/runtime.c",
    "runtime/search.c",
    "runtime/search_dirs.c",
    "runtime/shared.h",
    "runtime/toolkit_version.c",
    "runtime/trace.c",
    "runtime/unload.c",
];

templates![
    /// Handlebars files for the files written into users' trees.
    TREE:
    "tree/GpuStub.lock.hbs",
    "tree/GpuStub.toml.hbs",
    "tree/build-line.hbs",
    "tree/build.rs.hbs",
    "tree/doctor.c.hbs",
    "tree/finalizer/Cargo.toml.hbs",
    "tree/finalizer/GpuStub.toml.hbs",
    "tree/finalizer/build.rs.hbs",
    "tree/finalizer/lib.rs.hbs",
    "tree/export/stubs/BUILD.bazel.hbs",
    "tree/export/stubs/FindCUDA.cmake.hbs",
    "tree/export/stubs/FindCUDAToolkit.cmake.hbs",
    "tree/export/stubs/FindOpenCL.cmake.hbs",
    "tree/export/stubs/Findhip.cmake.hbs",
    "tree/export/stubs/gpustub-config-version.cmake.hbs",
    "tree/export/stubs/gpustub-config.cmake.hbs",
    "tree/export/stubs/gpustub-cuda.cmake.hbs",
    "tree/export/stubs/gpustub-cuda-targets.cmake.hbs",
    "tree/export/stubs/gpustub-targets.cmake.hbs",
    "tree/export/stubs/gpustub.pc.hbs",
    "tree/export/stubs/library.pc.hbs",
    "tree/export/stubs/meson.build.hbs",
    "tree/export/device-link/config-version.cmake.hbs",
    "tree/export/device-link/config.cmake.hbs",
    "tree/linker-script.hbs",
    "tree/toolkit/README.md.hbs",
    "tree/toolkit/cuda.h.hbs",
    "tree/toolkit/cuda_runtime_api.h.hbs",
    "tree/toolkit/gitattributes.hbs",
    "tree/toolkit/gitignore.hbs",
    "tree/toolkit/hip_runtime_api.h.hbs",
    "tree/toolkit/hip_version.h.hbs",
    "tree/toolkit/hipconfig.hbs",
    "tree/toolkit/nvcc.hbs",
    "tree/toolkit/version.hbs",
    "tree/toolkit/version.json.hbs",
    "tree/use-line.hbs",
];

/// Contents of the directory that `cargo gpustub add --toolkit` writes, as TOML:
/// `tree/toolkit/layout.toml`.
pub const TOOLKIT: &str = include_str!("../tree/toolkit/layout.toml");
