//! Functions of a program's device link that objects in shared libraries call.
//!
//! Linkers export them from a program, but rustc's version script hides all symbols of a cdylib except
//! functions of Rust code without mangling. A finalizer crate therefore defines such functions, which call
//! those of the device link under other names. For a package's own cdylib its build script can pass a
//! second version script, which lld, mold and gold combine with rustc's, and GNU ld rejects.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gpustub_core::device_link::NodePlan;
use gpustub_core::ids::Id;

use super::metadata::DeviceLibrary;
use super::nvlink;
use crate::error::Error;
use crate::files;

/// File that a finalizer crate includes, in `OUT_DIR/gpustub`.
const RUST: &str = "exports.rs";

/// Functions are called with four pointers (`crt/link.stub` of CUDA 11.8 to 13.5).
const MACRO: &str = r#"macro_rules! export {
    ($function:ident, $exported:literal, $linked:literal) => {
        #[export_name = $exported]
        unsafe extern "C" fn $function(a: *const u8, b: *const u8, c: *const u8, d: *const u8) {
            extern "C" {
                #[link_name = $linked]
                fn linked(a: *const u8, b: *const u8, c: *const u8, d: *const u8);
            }
            linked(a, b, c, d)
        }
    };
}
"#;

/// Ids of the objects in shared libraries whose functions a device link defines.
pub(super) fn ids(link: &NodePlan, closure: &[DeviceLibrary]) -> Result<Vec<String>, Error> {
    let mut ids = Vec::new();
    for node in &link.exports {
        ids.extend(nvlink::objects(&closure[node.index()])?);
    }
    Ok(ids)
}

/// Writes the Rust code of a finalizer crate.
pub(super) fn write_rust(out: &Path, ids: &[String]) -> Result<(), Error> {
    let mut code = String::new();
    if !ids.is_empty() {
        code.push_str(MACRO);
    }
    for (number, id) in ids.iter().enumerate() {
        let (exported, linked) = names(id);
        let _ = writeln!(code, "export!(export_{number}, {exported:?}, {linked:?});");
    }
    files::write_if_changed(&out.join(RUST), code.as_bytes())
}

/// Writes a C header that renames the functions of a device link.
pub(super) fn write_header(dir: &Path, ids: &[String]) -> Result<PathBuf, Error> {
    let mut text = String::new();
    for id in ids {
        let (exported, linked) = names(id);
        let _ = writeln!(text, "#define {exported} {linked}");
    }
    let path = dir.join("renamed.h");
    files::write_if_changed(&path, text.as_bytes())?;
    Ok(path)
}

/// Writes the version script of a package's own programs.
pub(super) fn write_version_script(dir: &Path, ids: &[String]) -> Result<PathBuf, Error> {
    let mut text = String::from("{ global:\n");
    for id in ids {
        let (exported, _) = names(id);
        let _ = writeln!(text, "    {exported};");
    }
    text.push_str("};\n");
    let path = dir.join("exports.map");
    files::write_if_changed(&path, text.as_bytes())?;
    Ok(path)
}

/// Name of a function for other images, and its name in the device link.
fn names(id: &str) -> (String, String) {
    (
        format!("__cudaRegisterLinkedBinary{id}"),
        format!("gpustub_register{id}"),
    )
}
