//! One device link: clang over the objects of some libraries, which runs lld for each architecture.
//!
//! Each object of clang's older driver has a constructor that registers the object's kernels in the code object at
//! `__hip_fatbin<id>`, whose handle is in `__hip_gpubin_handle<id>`. The object leaves the first undefined, and if it has an
//! id (LLVM 19, not 15) the second as well. All ids of a device link are one address here, so that its code is registered once.
//! Objects in other images get the handle by functions ([`super::register`]).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::diag::{DEVICE_LINK_ERROR, IO_ERROR};
use gpustub_core::gpu_arch::Arch;

use super::super::metadata::DeviceLibrary;
use super::super::nvcc_report::{printed, shell};
use super::super::symbol_index;
use super::Clang;
use super::clang::device_library_help;
use super::prebuilt::is_relocatable;
use super::register::{self, FATBIN, HANDLE, ids};
use crate::error::Error;
use crate::files;
use crate::fingerprint;
use crate::store::Store;
use crate::toolchain::Toolchain;

/// Inputs of a device link.
pub(in crate::device_link) struct LinkInputs<'a> {
    pub(in crate::device_link) clang: &'a Clang,
    pub(in crate::device_link) store: Option<&'a Store>,
    pub(in crate::device_link) archs: &'a [Arch],
    pub(in crate::device_link) members: &'a [&'a DeviceLibrary],
    /// Functions that objects in other images call; empty if there are none.
    pub(in crate::device_link) functions: &'a [String],
    /// `OPT_LEVEL` of cargo: the device code is optimised here.
    pub(in crate::device_link) opt_level: &'a str,
    /// Directory of outputs.
    pub(in crate::device_link) dir: &'a Path,
}

/// Makes the objects of a device link, unless they are up to date. `tools` compiles them for the host.
pub(in crate::device_link) fn link(
    inputs: &LinkInputs,
    tools: &dyn Fn() -> Result<Toolchain, Error>,
) -> Result<Vec<PathBuf>, Error> {
    let mut objects = vec![code_object(inputs, tools)?];
    if !inputs.functions.is_empty() {
        objects.push(register::link_object(inputs.functions, inputs.dir, tools)?);
    }
    Ok(objects)
}

/// Makes the object with the code.
fn code_object(
    inputs: &LinkInputs,
    tools: &dyn Fn() -> Result<Toolchain, Error>,
) -> Result<PathBuf, Error> {
    let object = inputs.dir.join("hip_link.o");
    run(inputs, CODE, &object, &|archives| {
        write_source(inputs.dir, &ids(archives)?)?;
        let new = files::sibling(&object);
        let name = new.file_name().unwrap_or_default().to_string_lossy();
        tools()?.object(inputs.dir, &[], SOURCE.0, &name)?;
        files::rename(&new, &object)
    })?;
    Ok(object)
}

/// File of a module in its directory. The name differs from that of a program's code, so that the store has two steps.
pub(in crate::device_link) const MODULE: &str = "module.hipfb";

/// Makes a module's file, [`MODULE`] in the directory of outputs, unless it is up to date: an offload bundle with a code
/// object for each architecture.
pub(in crate::device_link) fn link_module(inputs: &LinkInputs, file: &Path) -> Result<(), Error> {
    run(inputs, MODULE, file, &|_| Ok(()))
}

/// Links the code of the archives to the file `code` in the directory of outputs, and lets `finish` make `output` of it,
/// unless that is up to date.
fn run(
    inputs: &LinkInputs,
    code: &str,
    output: &Path,
    finish: &dyn Fn(&[PathBuf]) -> Result<(), Error>,
) -> Result<(), Error> {
    let dir = inputs.dir;
    fs::create_dir_all(dir).map_err(|e| Error::io("create the directory", dir, &e))?;
    let archives: Vec<PathBuf> = inputs.members.iter().map(|m| m.archive.clone()).collect();
    let mut command = inputs.clang.command();
    command.current_dir(dir);
    command.args(["--hip-link", "--cuda-device-only", "-o", code]);
    command.arg(optimisation(inputs.opt_level));
    for arch in inputs.archs {
        command.arg(format!("--offload-arch={arch}"));
    }
    let key = archives
        .iter()
        .fold(inputs.clang.key(&command), |key, archive| {
            format!("{key} {archive:?}")
        });
    if fingerprint::fresh(output, &key).is_some() {
        return Ok(());
    }
    fingerprint::invalidate(output)?;
    let before = fingerprint::InputStates::read(&archives);
    let mut step = (inputs.store).map(|store| store.step(&command, &key, &archives));
    let fetched = step.as_mut().and_then(|step| step.fetch(&[output]));
    if fetched.is_some() {
        return fingerprint::record_known(output, &key, &archives, &before);
    }
    // It may be a file of the store, into which clang would write.
    files::remove(output)?;
    for (number, member) in inputs.members.iter().enumerate() {
        for (index, bytes) in objects(&member.archive)?.iter().enumerate() {
            let name = format!("{number}-{index}.o");
            let path = dir.join(&name);
            fs::write(&path, bytes).map_err(|e| Error::io("write", &path, &e))?;
            command.arg(name);
        }
    }
    let result = command.output().map_err(|e| inputs.clang.cannot_run(&e))?;
    if !result.status.success() {
        return Err(link_error(&command, &printed(&result)));
    }
    finish(&archives)?;
    fingerprint::record_known(output, &key, &archives, &before)?;
    if let (Some(step), true) = (step, fingerprint::fresh(output, &key).is_some()) {
        step.keep(&archives, &[output], "");
    }
    Ok(())
}

/// Level of the link, whose code generator fails at `-O0` (LLVM 19.1.7), and which has no levels `s` and `z`.
fn optimisation(level: &str) -> &'static str {
    match level {
        "0" | "1" => "-O1",
        "3" => "-O3",
        _ => "-O2",
    }
}

/// The linked code.
const CODE: &str = "device.hipfb";

/// The source that includes it, and the file with the symbols of objects, which that includes.
pub(super) const SOURCE: (&str, &str) = ("gpustub_hip_link.S", include_str!("link.S"));
const LIST: &str = "gpustub_hip_link.inc";

/// Lines of [`LIST`]: what the objects with these ids leave undefined.
pub(super) fn symbols(ids: &BTreeSet<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for id in ids {
        lines.extend([
            format!("CODE({FATBIN}{id})"),
            format!("HANDLE({HANDLE}{id})"),
        ]);
    }
    lines
}

/// Writes the source and the file that it includes.
fn write_source(dir: &Path, ids: &BTreeSet<String>) -> Result<(), Error> {
    let (name, text) = SOURCE;
    files::write_if_changed(&dir.join(name), text.as_bytes())?;
    let lines = symbols(ids).join("\n") + "\n";
    files::write_if_changed(&dir.join(LIST), lines.as_bytes())
}

/// Members of an archive that have relocatable code of HIP, in their order.
fn objects(archive: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let mut objects = Vec::new();
    symbol_index::visit_members(archive, u64::MAX, &mut |_, member| {
        if is_relocatable(member) {
            objects.push(member.to_vec());
        }
        true
    })
    .map_err(|e| files::unread(archive, &e))?;
    if objects.is_empty() {
        let message = format!("{} has no relocatable code of HIP", archive.display());
        return Err(Error::new(&IO_ERROR, message).help("clang -fgpu-rdc compiles such code"));
    }
    Ok(objects)
}

fn link_error(command: &Command, text: &str) -> Error {
    let error = Error::new(
        &DEVICE_LINK_ERROR,
        "clang cannot link the device code for AMD",
    )
    .output(text.as_bytes());
    let error = if let Some(help) = device_library_help(text) {
        error.help(help)
    } else if text.contains("error: undefined") {
        error.help(
            "the library that defines it belongs into `requires` of the one that calls it; its definition has to be \
             a `__device__` one, in a source of a table with the same `archs`",
        )
    } else if text.contains("Opaque pointers") || text.contains("Invalid record") {
        error.help("lld is of another release of LLVM than clang: install that of clang (Debian: lld-15 for clang-15)")
    } else if text.contains("(Producer: ") {
        // Of LLVM's reader of bitcode, after the fault.
        error.help(
            "a later LLVM compiled one of the objects: set HIPCXX to a clang that is as new as that of each `prebuilt` archive, \
             with its own lld",
        )
    } else if text.contains("duplicate symbol") {
        error.help("make it `inline` or `static`, or take one of the two sources out of `sources`")
    } else {
        error
    };
    error.command(&shell(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path, words: &[&str]) {
        let mut command = Command::new(words[0]);
        let status = command.args(&words[1..]).current_dir(dir).status().unwrap();
        assert!(status.success(), "{words:?}");
    }

    /// Objects of LLVM 15 share a name, in all archives of a device link.
    #[test]
    fn ids_of_several_archives_are_defined_once() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join(CODE), b"code").unwrap();
        let mut archives = Vec::new();
        for (name, symbol) in [("a", HANDLE), ("b", HANDLE), ("c", "__hip_cuid_1")] {
            let text = format!(".data\n.globl {symbol}\n{symbol}: .byte 0\n");
            fs::write(dir.join("x.s"), text).unwrap();
            let archive = format!("{name}.a");
            run(dir, &["cc", "-c", "x.s", "-o", "x.o"]);
            run(dir, &["ar", "crs", &archive, "x.o"]);
            archives.push(dir.join(archive));
        }
        let ids = ids(&archives).unwrap();
        assert_eq!(Vec::from_iter(&ids), ["", "_1"]);
        for (archive, suffix) in archives
            .iter()
            .zip(["_library_my_lib", "_library_my_lib", "_1"])
        {
            let library = DeviceLibrary {
                name: "my-lib".to_owned(),
                archive: archive.clone(),
                ..DeviceLibrary::default()
            };
            assert_eq!(register::suffixes(&library).unwrap(), [suffix]);
        }
        write_source(dir, &ids).unwrap();
        run(dir, &["cc", "-c", SOURCE.0]);
        let names = Command::new("nm")
            .arg(dir.join("gpustub_hip_link.o"))
            .output()
            .unwrap();
        let names = String::from_utf8(names.stdout).unwrap();
        let names: Vec<&str> = names
            .lines()
            .filter_map(|line| line.rsplit(' ').next())
            .collect();
        assert_eq!(
            names,
            [
                "__hip_fatbin",
                "__hip_fatbin_1",
                "__hip_gpubin_handle",
                "__hip_gpubin_handle_1",
                "gpustub_hip_code",
                "gpustub_hip_handle",
            ]
        );
    }
}
