//! Options of cl and clang-cl ("MSVC compiler options", learn.microsoft.com).

use gpustub_core::target::Target;

/// Compilers by the form of their options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// GCC, and clang.
    Gnu,
    /// The compiler of Visual Studio.
    Cl,
    /// clang with cl's options.
    ClangCl,
}

/// Variables that cl and clang-cl read, and the `cc` crate's for the choice between them.
pub(super) const VARIABLES: [&str; 4] = ["CC_PREFER_CLANG_CL_OVER_MSVC", "CL", "_CL_", "INCLUDE"];

/// Flags that the code relies on: C11 with a standard preprocessor, functions and data that the linker can drop one by
/// one, any C run time, the characters of the sources, and no times in objects.
const REQUIRED: [&str; 7] = [
    "-nologo", "-std:c11", "-Gy", "-Gw", "-Zl", "-utf-8", "-Brepro",
];

impl Family {
    /// The family of a compiler for this target. The `cc` crate takes each program without an identity for cl.
    pub(super) fn of(compiler: &cc::Tool, target: &Target) -> Self {
        match (compiler.is_like_msvc(), compiler.is_like_clang_cl()) {
            (true, _) if target.env != "msvc" => Self::Gnu,
            (false, _) => Self::Gnu,
            (true, false) => Self::Cl,
            (true, true) => Self::ClangCl,
        }
    }

    /// Flags of cl and clang-cl that override `CFLAGS`, for machine code and not an intermediate form, too.
    pub(super) fn required_flags(self) -> Vec<&'static str> {
        let mut flags = REQUIRED.to_vec();
        flags.push(match self {
            Self::Cl => "-GL-",
            Self::Gnu | Self::ClangCl => "-fno-lto",
        });
        flags
    }

    /// Flags that name the object to write.
    pub(super) fn output_flags(self, object: &str) -> Vec<String> {
        match self {
            Self::Gnu => vec!["-o".to_owned(), object.to_owned()],
            Self::Cl | Self::ClangCl => vec![format!("-Fo{object}")],
        }
    }
}
