//! Kernels and variables that host code of several images uses.
//!
//! Since 13.0 nvcc gives them hidden ELF visibility, so that two images with a runtime each cannot
//! share them (developer.nvidia.com/blog/cuda-c-compiler-updates-impacting-elf-visibility-and-linkage).
//! The images of one device link have one runtime.

use super::metadata::DeviceLibrary;
use super::nvcc::Nvcc;
use gpustub_core::manifest::LibraryType;

/// Option of nvcc since 12.8 that gives kernels and variables the visibility of host code, which is
/// the default before [`FIRST_MAJOR`]. References are hidden, too, without it.
pub const OPTION: &str = "--device-entity-has-hidden-visibility=false";

/// First major of toolkits whose nvcc hides kernels and variables.
pub const FIRST_MAJOR: u32 = 13;

/// The option for the sources of a library, if images share its kernels and variables, or those of a
/// library that it requires. `required`: these libraries, itself included. No static library is a part
/// of a shared one and visible to others (`duplicate-device-objects`).
pub(super) fn option(nvcc: &Nvcc, required: &[&DeviceLibrary]) -> Option<&'static str> {
    let is_shared = required
        .iter()
        .any(|library| library.library_type == LibraryType::Shared);
    let (flag, _) = OPTION.split_once('=')?;
    // nvcc warns of two values.
    let is_set = required
        .iter()
        .flat_map(|library| &library.compile_options)
        .any(|option| option.contains(flag.trim_start_matches('-')));
    (is_shared && !is_set && hides(nvcc)).then_some(OPTION)
}

/// Whether nvcc hides kernels and variables by default. False for an unknown version.
fn hides(nvcc: &Nvcc) -> bool {
    let output = nvcc.link().arg("--version").output();
    output.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout);
        major(&text).is_some_and(|major| major >= FIRST_MAJOR)
    })
}

/// Major in the output of `nvcc --version`: `Cuda compilation tools, release 13.5, V13.5.37`.
fn major(text: &str) -> Option<u32> {
    let (_, release) = text.split_once(", release ")?;
    release.split('.').next()?.parse().ok()
}

/// Next step after an error of the linker of a shared library.
pub(super) fn help(nvcc: &Nvcc, error: &str) -> Option<String> {
    // GNU ld: "hidden symbol `x' isn't defined"; lld: "undefined hidden symbol: x".
    if !error.contains("hidden symbol") {
        return None;
    }
    // nvcc uses NVCC_APPEND_FLAGS after the options of tables.
    let hiding = nvcc.flags.iter().find(|(_, value)| is_hiding(value));
    Some(match hiding {
        Some((name, value)) => format!(
            "the variable {name} is `{value}`, and nvcc hides kernels and variables from host code of other shared \
             libraries: remove that option from {name}"
        ),
        None => format!(
            "nvcc hides kernels and variables from host code of other shared libraries since \
             {FIRST_MAJOR}.0: write `compile-options = [\"{OPTION}\"]` into the [device-link] table of the \
             library that defines the symbol, or compile its `prebuilt` archive with that option"
        ),
    })
}

/// Whether options of nvcc hide kernels and variables.
fn is_hiding(options: &str) -> bool {
    let name = OPTION.split('=').next().unwrap_or_default();
    let Some((_, rest)) = options.rsplit_once(name.trim_start_matches('-')) else {
        return false;
    };
    !rest.trim_start_matches(['=', ' ']).starts_with("false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hiding_options_are_recognized() {
        for (options, expected) in [
            ("-device-entity-has-hidden-visibility=true", true),
            ("-g --device-entity-has-hidden-visibility true -O1", true),
            ("--device-entity-has-hidden-visibility=false", false),
            ("-device-entity-has-hidden-visibility false", false),
            ("-O1", false),
        ] {
            assert_eq!(is_hiding(options), expected, "{options}");
        }
    }

    #[test]
    fn majors_are_read_from_nvccs_version() {
        for (text, expected) in [
            (
                "nvcc: NVIDIA (R) Cuda compiler driver\nBuilt on Mon\nCuda compilation tools, release 13.5, V13.5.37\n",
                Some(13),
            ),
            ("Cuda compilation tools, release 9.0, V9.0.176\n", Some(9)),
            ("clang version 19.1.0\n", None),
            (", release x.y", None),
            ("", None),
        ] {
            assert_eq!(major(text), expected, "{text}");
        }
    }
}
