//! `type = "shared"`: a library in two files, so that others can link it like any library.
//!
//! `lib<name>.so`, the *middle*, has the objects and is incomplete: the functions that register
//! them are defined by a device link, which a process can contain only once. `lib<name>_final.so`,
//! the *final*, contains the device link for programs of which this library is the top: over the
//! library and all that it requires. Both find their neighbours by `$ORIGIN`, so that their
//! directory can be copied.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::exports::Function;
use super::hip::{self, Clang};
use super::loadable::check_loadable;
use super::metadata::{DeviceLibrary, Stubs};
use super::nvcc::Nvcc;
use super::runtime::Runtime;
use super::{exports, nvlink, runtime, visibility};
use crate::error::Error;
use crate::files;
use crate::fingerprint::{self, InputStates};
use crate::toolchain;
use gpustub_core::device_link::{LinkItem, NodeId, NodePlan, hidden_stubs, static_runtime};
use gpustub_core::diag::{INVALID_VALUE, IO_ERROR};
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::ids::Id;
use gpustub_core::library::Library as GpuLibrary;
use gpustub_core::manifest::{Cudart, DeviceCode, DeviceLink, LibraryType};

/// Libraries that every C++ program is linked with.
const SYSTEM: [&str; 6] = ["c", "dl", "m", "pthread", "rt", "stdc++"];

/// Rejects libraries that cannot be shared.
pub(super) fn check(library: &DeviceLink) -> Result<(), Error> {
    let name = &library.name.value;
    if library.library_type != LibraryType::Shared {
        return Ok(());
    }
    if library.cudart == Cudart::Static {
        return Err(static_runtime(name).into());
    }
    let is_taken = SYSTEM.contains(&name.as_str())
        || GpuLibrary::builtin_ids()
            .filter_map(GpuLibrary::builtin)
            .any(|builtin| builtin.link_names.contains(name));
    if is_taken && matches!(library.code, DeviceCode::Sources(_)) {
        return Err(Error::new(
            &INVALID_VALUE,
            format!("device-link.{name}: lib{name}.so is the name of another library"),
        )
        .help("rename the table: its name is also the file's"));
    }
    Ok(())
}

/// Linker arguments of a library, and the files that they name.
#[derive(Default)]
struct LinkerArgs {
    args: Vec<OsString>,
    inputs: Vec<PathBuf>,
}

impl LinkerArgs {
    fn file(&mut self, path: &Path) {
        self.args.push(path.into());
        self.inputs.push(path.to_owned());
    }

    /// A shared library in `dir` by its file name, so that its path gets into no file.
    fn library(&mut self, dir: &Path, file: &Path) {
        let mut name = OsString::from("-l:");
        name.push(file.file_name().unwrap_or_default());
        self.args.extend(["-L".into(), dir.into(), name]);
        self.inputs.push(file.to_owned());
    }
}

/// The shared libraries of a package, while they are built.
pub(super) struct SharedBuild<'a> {
    pub(super) context: &'a Context<'a>,
    /// If one of the libraries has code for NVIDIA.
    pub(super) nvcc: Option<&'a Nvcc>,
    /// If one has code for AMD.
    pub(super) clang: Option<&'a Clang>,
    /// `OUT_DIR/gpustub/device-link`.
    pub(super) dir: &'a Path,
    /// All visible libraries. Those that this package builds are archived.
    pub(super) visible: &'a [DeviceLibrary],
}

impl SharedBuild<'_> {
    /// Builds middle and final of a library, unless they are up to date. Its required libraries
    /// must have been built.
    pub(super) fn build(
        &self,
        planned: &NodePlan,
        objects: &[PathBuf],
        directives: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        let library = self.library(planned.node);
        let (Some(middle), Some(r#final)) = (&library.middle, &library.r#final) else {
            return Ok(());
        };
        let lib = self.dir.join("lib");
        for item in &planned.final_line {
            if let LinkItem::Middle(node) = item {
                link_into(self.library(*node), &lib)?;
            }
        }
        let members: Vec<_> = planned
            .inputs
            .iter()
            .map(|node| self.library(*node))
            .collect();
        let link_dir = self.dir.join("finals").join(&library.name);
        let mut link_objects = Vec::new();
        let with_code = |vendor| {
            let with_code = members.iter().filter(|member| member.has_code(vendor));
            Vec::from_iter(with_code.copied())
        };
        let cuda_members = with_code(Vendor::Nvidia);
        if let (Some(nvcc), false) = (self.nvcc, cuda_members.is_empty()) {
            let object = link_dir.join("device_link.o");
            let compiler = (nvcc, self.context.store.as_ref());
            let warnings =
                nvlink::link(compiler, planned, &cuda_members, &link_dir, &object, None)?;
            directives.extend(warnings.into_iter().map(Directive::Warning));
            link_objects.push(object);
        }
        let hip_members = with_code(Vendor::Amd);
        if let (Some(clang), false) = (self.clang, hip_members.is_empty()) {
            link_objects.extend(self.link_hip_code(planned, clang, &hip_members, &link_dir)?);
        }

        let mut args = self.linker_args(planned, &planned.line, objects, &[], directives)?;
        if let Some(object) = self.hip_middle(planned, &link_dir)? {
            args.file(&object);
        }
        self.link(middle, args)?;
        let line = &planned.final_line;
        let mut args = self.linker_args(planned, line, objects, &link_objects, directives)?;
        if library.cudart != Cudart::None {
            args.args.push("-Wl,-z,defs".into());
        }
        self.link(r#final, args)?;
        self.check_loadable(library, planned)
    }

    /// Makes the objects of a final's device link for AMD.
    fn link_hip_code(
        &self,
        planned: &NodePlan,
        clang: &Clang,
        members: &[&DeviceLibrary],
        link_dir: &Path,
    ) -> Result<Vec<PathBuf>, Error> {
        let inputs = hip::LinkInputs {
            clang,
            store: self.context.store.as_ref(),
            archs: &Vendor::Amd.select(planned.archs.iter().copied()),
            members,
            functions: &hip_functions(members)?,
            opt_level: &self.context.env.cargo_text("OPT_LEVEL")?,
            dir: &link_dir.join("hip"),
        };
        hip::link(&inputs, self.context.tools)
    }

    /// Makes the object by which the objects in a middle get their handles.
    fn hip_middle(&self, planned: &NodePlan, link_dir: &Path) -> Result<Option<PathBuf>, Error> {
        let mut members = Vec::new();
        for item in &planned.line {
            let node = match *item {
                LinkItem::Objects => planned.node,
                LinkItem::Archive(node) | LinkItem::WholeArchive(node) => node,
                _ => continue,
            };
            members.push(self.library(node));
        }
        members.retain(|member| member.has_code(Vendor::Amd));
        if members.is_empty() {
            return Ok(None);
        }
        let dir = link_dir.join("hip-middle");
        std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
        let functions = hip_functions(&members)?;
        hip::middle_object(&members, &functions, &dir, self.context.tools).map(Some)
    }

    /// Reads the libraries again: no linker checks what the loader needs.
    fn check_loadable(&self, library: &DeviceLibrary, planned: &NodePlan) -> Result<(), Error> {
        let lib = self.dir.join("lib");
        let mut process = files_in(library, &lib);
        for item in &planned.final_line {
            let LinkItem::Middle(node) = *item else {
                continue;
            };
            let middle = self.library(node).middle.as_deref();
            process.extend(middle.and_then(Path::file_name).map(|name| lib.join(name)));
        }
        process.sort();
        process.dedup();
        check_loadable(&process, true)
    }

    fn library(&self, node: NodeId) -> &DeviceLibrary {
        &self.visible[node.index()]
    }

    fn linker_args(
        &self,
        planned: &NodePlan,
        line: &[LinkItem],
        objects: &[PathBuf],
        link_objects: &[PathBuf],
        directives: &mut Vec<Directive>,
    ) -> Result<LinkerArgs, Error> {
        let lib = self.dir.join("lib");
        let mut args = LinkerArgs::default();
        for item in line {
            match *item {
                LinkItem::Objects => {
                    for object in objects {
                        args.file(object);
                    }
                }
                LinkItem::LinkObject => {
                    for object in link_objects {
                        args.file(object);
                    }
                }
                LinkItem::Archive(node) => args.file(&self.library(node).archive),
                LinkItem::WholeArchive(node) => {
                    args.args.push("-Wl,--whole-archive".into());
                    args.file(&self.library(node).archive);
                    args.args.push("-Wl,--no-whole-archive".into());
                }
                LinkItem::Middle(node) => {
                    let file = self.library(node).middle.as_deref();
                    args.library(&lib, file.unwrap_or(Path::new("")));
                }
                LinkItem::Final(node) => {
                    let file = self.library(node).r#final.as_deref();
                    args.library(&lib, file.unwrap_or(Path::new("")));
                }
                LinkItem::Cudart(Cudart::None) => {}
                LinkItem::Cudart(kind) => match (self.stubs(planned, Vendor::Nvidia)?, self.nvcc) {
                    (Some(stubs), _) => args.library(&lib, &link_stubs(stubs, &lib)?),
                    (None, Some(nvcc)) => {
                        let runtime = runtime::find(self.context, nvcc, kind, self.dir)?;
                        add_runtime(runtime, &mut args, directives)?;
                    }
                    (None, None) => {}
                },
            }
        }
        let has_hip = (planned.inputs.iter()).any(|node| self.library(*node).has_code(Vendor::Amd));
        if let (true, Some(clang)) = (has_hip, self.clang) {
            if let Some(stubs) = self.stubs(planned, Vendor::Amd)? {
                args.library(&lib, &link_stubs(stubs, &lib)?);
            } else {
                let mut runtime = Runtime::default();
                runtime.add_hip(clang);
                add_runtime(runtime, &mut args, directives)?;
            }
        }
        Ok(args)
    }

    /// Shared library with stubs of the runtime that the library's own code calls; `None`: the runtime itself.
    fn stubs(&self, planned: &NodePlan, vendor: Vendor) -> Result<Option<&Path>, Error> {
        let library = self.library(planned.node);
        let stubs = match library.stubs(vendor) {
            Stubs::None => return Ok(None),
            Stubs::Shared(path) => Some(path.as_path()),
            Stubs::External => planned
                .inputs
                .iter()
                .map(|node| self.library(*node))
                .chain(self.visible)
                .find_map(|library| library.shared_stubs(vendor)),
            Stubs::Static => None,
        };
        match stubs {
            None => Err(hidden_stubs(&library.name, vendor).into()),
            stubs => Ok(stubs),
        }
    }

    fn link(&self, output: &Path, args: LinkerArgs) -> Result<(), Error> {
        let linker = (self.context.linker)()?;
        let mut soname = OsString::from("-Wl,-soname,");
        soname.push(output.file_name().unwrap_or_default());
        let new = files::sibling(output);
        let mut command = linker.command(self.dir);
        command.args(["-shared", "-fPIC"]).arg(soname);
        command.args(["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]);
        // The library must be loaded for its device code even if no code calls its host functions.
        command.arg("-Wl,--no-as-needed");
        command.arg("-o").arg(&new).args(&args.args);
        let key = fingerprint::command_line(&command);
        if fingerprint::fresh(output, &key).is_some() {
            return Ok(());
        }
        fingerprint::invalidate(output)?;
        let before = InputStates::read(&args.inputs);
        linker.run(&mut command).map_err(|error| {
            let help = (self.nvcc).and_then(|nvcc| visibility::help(nvcc, &error.to_string()));
            match help {
                Some(help) => error.help(help),
                None => error,
            }
        })?;
        files::rename(&new, output)?;
        fingerprint::record_known(output, &key, &args.inputs, &before)
    }
}

/// Names of the functions that objects of these libraries call.
fn hip_functions(members: &[&DeviceLibrary]) -> Result<Vec<String>, Error> {
    let mut functions = Vec::new();
    for member in members {
        functions.extend(exports::functions(member)?);
    }
    functions.retain(|function| function.vendor == Vendor::Amd);
    Ok(functions.iter().map(Function::name).collect())
}

/// Adds a runtime, which is no part of any program.
fn add_runtime(
    runtime: Runtime,
    args: &mut LinkerArgs,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    for dir in runtime.dirs {
        // Also read by cargo, which sets the loader's search path.
        directives.push(Directive::LinkSearch(files::text(&dir)?));
        args.args.extend(["-L".into(), dir.into()]);
    }
    for (_, name) in runtime.libraries {
        args.args.push(format!("-l{name}").into());
    }
    Ok(())
}

/// Links shared stubs into `dir`, for the loader and for linkers. Returns the file for linkers.
pub(super) fn link_stubs(stubs: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let mut linker_file = stubs.to_owned();
    for file in [stubs.to_owned(), toolchain::shared::link_file(stubs)] {
        // The build of a prebuilt library may have linked the runtime of a toolkit.
        if let (Some(name), true) = (file.file_name(), file.is_file()) {
            files::link(&file, &dir.join(name))?;
            linker_file = file;
        }
    }
    Ok(linker_file)
}

/// Libraries that are installed next to an RDC library for it: stubs, and the runtime.
const COMPANIONS: [&str; 2] = ["libgpustub_", "libcudart.so"];

/// Links middle and final of a library into `dir` under their names, unless they are built there.
/// Cargo adds only directories below its own to the loader's search path.
pub(super) fn link_into(library: &DeviceLibrary, dir: &Path) -> Result<(), Error> {
    for file in [&library.middle, &library.r#final].into_iter().flatten() {
        let source_dir = file.parent().unwrap_or(Path::new(""));
        if source_dir == dir {
            continue;
        }
        if !file.is_file() {
            return Err(Error::new(
                &IO_ERROR,
                format!(
                    "device-link.{}: {} does not exist",
                    library.name,
                    file.display()
                ),
            )
            .help("`prebuilt-shared` names the output of another build; run that build first"));
        }
        let Ok(entries) = std::fs::read_dir(source_dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if is_companion(&name.to_string_lossy()) {
                files::link(&source_dir.join(&name), &dir.join(&name))?;
            }
        }
        if let Some(name) = file.file_name() {
            files::link(file, &dir.join(name))?;
        }
    }
    Ok(())
}

/// The files of a library in `dir`, and their companions there.
pub(super) fn files_in(library: &DeviceLibrary, dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in [&library.middle, &library.r#final].into_iter().flatten() {
        files.extend(file.file_name().map(|name| dir.join(name)));
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if is_companion(&entry.file_name().to_string_lossy()) {
            files.push(entry.path());
        }
    }
    files
}

fn is_companion(name: &str) -> bool {
    name.contains(".so")
        && !name.ends_with(fingerprint::SUFFIX)
        && COMPANIONS.iter().any(|prefix| name.starts_with(prefix))
}

/// Name for `-l` of a middle or final in `dir`. A file whose name does not serve gets `second_name` as well.
pub(super) fn link_name(file: &Path, second_name: &str, dir: &Path) -> Result<String, Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if let Some(name) = name.strip_prefix("lib").and_then(|n| n.strip_suffix(".so")) {
        return Ok(name.to_owned());
    }
    files::link(file, &dir.join(format!("lib{second_name}.so")))?;
    Ok(second_name.to_owned())
}
