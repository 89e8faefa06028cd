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
use super::metadata::{Library, Stubs};
use super::nvcc::Nvcc;
use super::{nvlink, runtime};
use crate::error::Error;
use crate::files;
use crate::fingerprint::{self, Inputs};
use crate::toolchain;
use gpustub_core::device_link::{LinkItem, Planned, hidden_stubs, static_runtime};
use gpustub_core::diag::{INVALID_VALUE, IO_ERROR};
use gpustub_core::directives::Directive;
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
    let mut shipped = GpuLibrary::builtin_ids().filter_map(GpuLibrary::builtin);
    let taken = SYSTEM.contains(&&**name) || shipped.any(|other| other.link_names.contains(name));
    if taken && matches!(library.code, DeviceCode::Sources(_)) {
        return Err(Error::new(
            &INVALID_VALUE,
            format!("device-link.{name}: lib{name}.so is the name of another library"),
        )
        .help("rename the table: its name is also the file's"));
    }
    Ok(())
}

/// Linker arguments of a library.
#[derive(Default)]
struct Line {
    args: Vec<OsString>,
    inputs: Vec<PathBuf>,
}

impl Line {
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
    pub(super) nvcc: &'a Nvcc,
    /// `OUT_DIR/gpustub/device-link`.
    pub(super) dir: &'a Path,
    /// All visible libraries. Those that this package builds are archived.
    pub(super) all: &'a [Library],
}

impl SharedBuild<'_> {
    /// Builds middle and final of a library, unless they are up to date. Its required libraries
    /// must have been built.
    pub(super) fn build(
        &self,
        planned: &Planned,
        objects: &[PathBuf],
        directives: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        let library = &self.all[planned.node.index()];
        let (Some(middle), Some(r#final)) = (&library.middle, &library.r#final) else {
            return Ok(());
        };
        let lib = self.dir.join("lib");
        for item in &planned.final_line {
            if let LinkItem::Middle(at) = item {
                link_into(&self.all[at.index()], &lib)?;
            }
        }
        let members: Vec<&Library> = planned
            .inputs
            .iter()
            .map(|&at| &self.all[at.index()])
            .collect();
        let link_dir = self.dir.join("finals").join(&library.name);
        let object = link_dir.join("device_link.o");
        let said = nvlink::link(self.nvcc, planned, &members, &link_dir, &object, None)?;
        directives.extend(said.into_iter().map(Directive::Warning));

        let line = self.line(planned, &planned.line, objects, &object, directives)?;
        self.link(middle, line)?;
        let mut line = self.line(planned, &planned.final_line, objects, &object, directives)?;
        if library.cudart != Cudart::None {
            line.args.push("-Wl,-z,defs".into());
        }
        self.link(r#final, line)
    }

    fn line(
        &self,
        planned: &Planned,
        items: &[LinkItem],
        objects: &[PathBuf],
        link_object: &Path,
        directives: &mut Vec<Directive>,
    ) -> Result<Line, Error> {
        let lib = self.dir.join("lib");
        let mut line = Line::default();
        for item in items {
            match *item {
                LinkItem::Objects => objects.iter().for_each(|object| line.file(object)),
                LinkItem::LinkObject => line.file(link_object),
                LinkItem::Archive(at) => line.file(&self.all[at.index()].archive),
                LinkItem::WholeArchive(at) => {
                    line.args.push("-Wl,--whole-archive".into());
                    line.file(&self.all[at.index()].archive);
                    line.args.push("-Wl,--no-whole-archive".into());
                }
                LinkItem::Middle(at) => {
                    let file = self.all[at.index()]
                        .middle
                        .as_deref()
                        .unwrap_or(Path::new(""));
                    line.library(&lib, file);
                }
                LinkItem::Final(at) => {
                    let file = self.all[at.index()]
                        .r#final
                        .as_deref()
                        .unwrap_or(Path::new(""));
                    line.library(&lib, file);
                }
                LinkItem::Cudart(kind) => self.runtime(planned, kind, &mut line, directives)?,
            }
        }
        Ok(line)
    }

    /// Runtime that the library's own code calls: no part of any program.
    fn runtime(
        &self,
        planned: &Planned,
        kind: Cudart,
        line: &mut Line,
        directives: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        let library = &self.all[planned.node.index()];
        let of_others = || {
            let members = planned.inputs.iter().map(|&at| &self.all[at.index()]);
            let mut all = members.chain(self.all);
            all.find_map(|library| match &library.stubs {
                Stubs::Shared(path) => Some(path),
                _ => None,
            })
        };
        let stubs = match &library.stubs {
            _ if kind == Cudart::None => return Ok(()),
            Stubs::None => {
                let found = runtime::find(self.context, self.nvcc, kind, self.dir)?;
                for dir in found.dirs {
                    // Also read by cargo, which sets the loader's search path.
                    directives.push(Directive::LinkSearch(files::text(&dir)?));
                    line.args.extend(["-L".into(), dir.into()]);
                }
                let names = found.libraries.iter();
                line.args
                    .extend(names.map(|(_, name)| format!("-l{name}").into()));
                return Ok(());
            }
            Stubs::Shared(path) => Some(path),
            Stubs::External => of_others(),
            Stubs::Static => None,
        };
        let stubs = stubs.ok_or_else(|| hidden_stubs(&library.name))?;
        let lib = self.dir.join("lib");
        let linked = link_stubs(stubs, &lib)?;
        line.library(&lib, &linked);
        Ok(())
    }

    fn link(&self, output: &Path, line: Line) -> Result<(), Error> {
        let linker = (self.context.linker)()?;
        let mut soname = OsString::from("-Wl,-soname,");
        soname.push(output.file_name().unwrap_or_default());
        let new = files::sibling(output);
        let mut command = linker.command(self.dir);
        command.args(["-shared", "-fPIC"]).arg(soname);
        command.args(["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]);
        // The library must be loaded for its device code even if no code calls its host functions.
        command.arg("-Wl,--no-as-needed");
        command.arg("-o").arg(&new).args(&line.args);
        let text = fingerprint::command_line(&command);
        if fingerprint::fresh(output, &text).is_some() {
            return Ok(());
        }
        fingerprint::invalidate(output)?;
        let before = Inputs::read(&line.inputs);
        linker.run(&mut command)?;
        files::rename(&new, output)?;
        fingerprint::record_known(output, &text, &line.inputs, &before)
    }
}

/// Links shared stubs into `dir`, for the loader and for linkers. Returns the file for linkers.
pub(super) fn link_stubs(stubs: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let mut linked = stubs.to_owned();
    for file in [stubs.to_owned(), toolchain::shared::link_file(stubs)] {
        // The build of a prebuilt library may have linked the runtime of a toolkit.
        if let (Some(name), true) = (file.file_name(), file.is_file()) {
            files::link(&file, &dir.join(name))?;
            linked = file;
        }
    }
    Ok(linked)
}

/// Libraries that are installed next to an RDC library for it: stubs, and the runtime.
const COMPANIONS: [&str; 2] = ["libgpustub_", "libcudart.so"];

/// Links middle and final of a library into `dir` under their names, unless they are built there.
/// Cargo adds only directories below its own to the loader's search path.
pub(super) fn link_into(library: &Library, dir: &Path) -> Result<(), Error> {
    let files = [&library.middle, &library.r#final].into_iter().flatten();
    for file in files {
        let from = file.parent().unwrap_or(Path::new(""));
        if from == dir {
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
        let Ok(entries) = std::fs::read_dir(from) else {
            continue;
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let companion = |name: &OsString| {
            let name = name.to_string_lossy();
            name.contains(".so")
                && !name.ends_with(fingerprint::SUFFIX)
                && COMPANIONS.iter().any(|start| name.starts_with(start))
        };
        let own = file.file_name().map(OsString::from);
        for name in names.filter(companion).chain(own) {
            files::link(&from.join(&name), &dir.join(&name))?;
        }
    }
    Ok(())
}

/// Name for `-l` of a middle or final in `dir`: a file with another name gets a second name.
pub(super) fn link_name(file: &Path, wanted: &str, dir: &Path) -> Result<String, Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if let Some(name) = name.strip_prefix("lib").and_then(|n| n.strip_suffix(".so")) {
        return Ok(name.to_owned());
    }
    files::link(file, &dir.join(format!("lib{wanted}.so")))?;
    Ok(wanted.to_owned())
}
