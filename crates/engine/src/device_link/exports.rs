//! Functions of a device link that objects in other images call, one for each object.
//!
//! Linkers export them from a program, but rustc's version script hides all symbols of a cdylib except
//! functions of Rust code without mangling. A finalizer crate therefore defines such functions, which call
//! those of the device link under other names. For a package's own cdylib its build script can pass a
//! second version script, which lld, mold and gold combine with rustc's, and GNU ld rejects.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gpustub_core::gpu_arch::Vendor;

use super::metadata::DeviceLibrary;
use super::{hip, nvlink};
use crate::error::Error;
use crate::files;

/// File that a finalizer crate includes, in `OUT_DIR/gpustub`.
const RUST: &str = "exports.rs";

/// Functions of nvlink are called with four pointers (`crt/link.stub` of CUDA 11.8 to 13.5).
const MACRO: &str = r#"macro_rules! export {
    ($function:ident, $exported:literal, $linked:literal, ($($pointer:ident)*) $(-> $result:ty)?) => {
        #[export_name = $exported]
        unsafe extern "C" fn $function($($pointer: *const u8),*) $(-> $result)? {
            extern "C" {
                #[link_name = $linked]
                fn linked($($pointer: *const u8),*) $(-> $result)?;
            }
            linked($($pointer),*)
        }
    };
}
"#;

/// A function for one object, or for all objects of a library that have no ids.
pub(super) struct Function {
    pub(super) vendor: Vendor,
    suffix: String,
}

/// Prefix of the functions of nvlink's device links.
const CUDA: &str = "__cudaRegisterLinkedBinary";

/// Prefix of the functions of device links of HIP (`hip/register.c`).
const HIP: &str = "gpustub_hip_code";

/// Prefixes of the names in [`Function::name`].
pub(super) const PREFIXES: [&str; 2] = [CUDA, HIP];

impl Function {
    /// Name that objects call.
    pub(super) fn name(&self) -> String {
        let prefix = match self.vendor {
            Vendor::Nvidia => CUDA,
            Vendor::Amd => HIP,
        };
        format!("{prefix}{}", self.suffix)
    }

    /// Its name in a device link whose functions are called by Rust code.
    pub(super) fn linked_name(&self) -> String {
        let prefix = match self.vendor {
            Vendor::Nvidia => "gpustub_register",
            Vendor::Amd => "gpustub_hip_linked",
        };
        format!("{prefix}{}", self.suffix)
    }
}

/// Functions for the objects of a library.
pub(super) fn functions(library: &DeviceLibrary) -> Result<Vec<Function>, Error> {
    let mut functions = Vec::new();
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        let suffixes = match vendor {
            _ if !library.has_code(vendor) => continue,
            Vendor::Nvidia => nvlink::objects(library)?,
            Vendor::Amd => hip::suffixes(library)?,
        };
        functions.extend(
            suffixes
                .into_iter()
                .map(|suffix| Function { vendor, suffix }),
        );
    }
    Ok(functions)
}

/// Writes the Rust code of a finalizer crate.
pub(super) fn write_rust(out: &Path, functions: &[Function]) -> Result<(), Error> {
    let mut code = String::new();
    if !functions.is_empty() {
        code.push_str(MACRO);
    }
    for (number, function) in functions.iter().enumerate() {
        let signature = match function.vendor {
            Vendor::Nvidia => "(a b c d)",
            Vendor::Amd => "() -> *const u8",
        };
        let (exported, linked) = (function.name(), function.linked_name());
        let _ = writeln!(
            code,
            "export!(export_{number}, {exported:?}, {linked:?}, {signature});"
        );
    }
    files::write_if_changed(&out.join(RUST), code.as_bytes())
}

/// Writes a C header that renames the functions of a device link.
pub(super) fn write_header(dir: &Path, functions: &[Function]) -> Result<PathBuf, Error> {
    let mut text = String::new();
    for function in functions {
        let _ = writeln!(
            text,
            "#define {} {}",
            function.name(),
            function.linked_name()
        );
    }
    let path = dir.join("renamed.h");
    files::write_if_changed(&path, text.as_bytes())?;
    Ok(path)
}

/// Writes the version script of a package's own programs.
pub(super) fn write_version_script(dir: &Path, functions: &[Function]) -> Result<PathBuf, Error> {
    let mut text = String::from("{ global:\n");
    for function in functions {
        let _ = writeln!(text, "    {};", function.name());
    }
    text.push_str("};\n");
    let path = dir.join("exports.map");
    files::write_if_changed(&path, text.as_bytes())?;
    Ok(path)
}
