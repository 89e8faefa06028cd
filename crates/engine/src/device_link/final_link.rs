//! The device link of a program: over every RDC library in it, once. Either made here, or the one
//! of a shared library.

use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::device_link::{LinkItem, NodeId, Planned, Role, plan};
use gpustub_core::diag::{DUPLICATE_DEVICE_SYMBOL, INVALID_VALUE, Level, has_errors};
use gpustub_core::directives::Directive;
use gpustub_core::ids::Id;
use gpustub_core::manifest::Cudart;

use super::context::Context;
use super::metadata::{Library, Stubs};
use super::nvcc::Nvcc;
use super::runtime::{self, Runtime};
use super::{compile, exports, graph, nvlink, shared};
use crate::error::Error;
use crate::files;
use crate::toolchain::Index;

/// Delivery of a device link to programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As link arguments of the package's own programs, tests, examples and C libraries.
    LinkArgs,
    /// Part of this package's library, for every program that uses it.
    Crate,
}

/// Parts that a program links, in this order.
#[derive(Default)]
struct Parts {
    object: PathBuf,
    /// Archives of objects, for the link object: no earlier object refers to their members.
    archives: Vec<PathBuf>,
    /// Shared libraries, by their names for `-l`, and their directory.
    shared: Vec<String>,
    lib: PathBuf,
    runtime: Runtime,
    /// Version script, if other images call the device link.
    exports: Option<PathBuf>,
}

/// Links the device code of `closure`, dependents first, and returns directives for programs.
pub(super) fn link(
    context: &Context,
    closure: &[Library],
    delivery: Delivery,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let program = context.env.cargo_text("CARGO_PKG_NAME")?;
    distinct(closure)?;
    let graph = graph::with_program(&program, closure);
    let (plan, found) = plan(&graph);
    if has_errors(&found) {
        return Err(Error::from_diagnostics(&found, &ByName::default()));
    }
    for warning in found.iter().filter(|d| d.level == Level::Warning) {
        let text = warning.to_string();
        directives.extend(text.lines().map(|line| Directive::Warning(line.to_owned())));
    }
    let link = plan.planned(NodeId::from_index(closure.len()));
    let dir = context.out.join("device-link").join("link");
    std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
    let ids = exports::ids(&link, closure)?;
    let (mut renamed, mut script) = (None, None);
    match delivery {
        Delivery::Crate => {
            exports::write_rust(context.out, &ids)?;
            if !ids.is_empty() {
                renamed = Some(exports::write_header(&dir, &ids)?);
            }
        }
        Delivery::LinkArgs if ids.is_empty() => {}
        Delivery::LinkArgs => script = Some(exports::write_version_script(&dir, &ids)?),
    }
    let members = match link.role {
        Role::OwnLink(_) => link.inputs.clone(),
        Role::UseFinal(top) => plan.inputs(top),
        _ => return Ok(()),
    };
    let members: Vec<&Library> = members.into_iter().map(|at| &closure[at.index()]).collect();
    // Without this run's archives: they are newer than its start, which cargo compares with.
    let made = |member: &&&Library| member.archive.starts_with(context.out_dir());
    for member in members.iter().filter(|member| !made(member)) {
        directives.push(Directive::RerunIfChanged(files::text(&member.archive)?));
    }
    let stubbed = context.stubs != Stubs::None || closure.iter().any(|l| l.stubs != Stubs::None);
    let object = match link.role {
        Role::UseFinal(_) => use_final(context, &members, &dir)?,
        _ => {
            reachable(context, closure, &members, stubbed)?;
            let object = dir.join("device_link.o");
            let nvcc = toolkit(context)?;
            directives.extend(nvcc.watched()?);
            // Warnings that compiling the package's own sources has printed are not repeated.
            let new = nvcc.warnings().filter(|said| !directives.contains(said));
            let new: Vec<_> = new.collect();
            directives.extend(new);
            let said = nvlink::link(&nvcc, &link, &members, &dir, &object, renamed.as_deref())?;
            directives.extend(said.into_iter().map(Directive::Warning));
            object
        }
    };
    let mut parts = Parts {
        object,
        exports: script,
        ..parts(context, closure, &link, stubbed, &dir)?
    };
    if matches!(link.role, Role::OwnLink(_)) && nvlink::has_devrt(&members) {
        // In a directory of its own: the toolkit's has libraries that stubs replace.
        let devrt = runtime::cudadevrt(&toolkit(context)?)?;
        let only = dir.join("cudadevrt");
        std::fs::create_dir_all(&only).map_err(|e| Error::io("create the directory", &only, &e))?;
        files::link(&devrt, &only.join("libcudadevrt.a"))?;
        parts.runtime.dirs.insert(0, only);
        let library = ("static:-bundle", "cudadevrt");
        parts.runtime.libraries.insert(0, library);
    }
    match delivery {
        Delivery::Crate => in_crate(context, parts, &dir, directives),
        Delivery::LinkArgs => as_arguments(parts, directives),
    }
}

/// Rejects two libraries of one name, which the rules could not distinguish.
fn distinct(closure: &[Library]) -> Result<(), Error> {
    for (at, library) in closure.iter().enumerate() {
        let mut before = closure[..at].iter();
        if let Some(other) = before.find(|other| other.name == library.name) {
            let message = format!(
                "device-link.{} is declared by {} and by {}",
                library.name, other.package, library.package
            );
            let is_one_package =
                other.package.split(' ').next() == library.package.split(' ').next();
            let help = if is_one_package {
                "the program has two versions of one package: `cargo tree -d` lists their dependents"
            } else {
                "give each library of a program a name of its own"
            };
            return Err(Error::new(&DUPLICATE_DEVICE_SYMBOL, message).help(help));
        }
    }
    Ok(())
}

fn toolkit(context: &Context) -> Result<Nvcc, Error> {
    let target = context.env.cargo_text("TARGET")?;
    let host = context.env.cargo_text("HOST")?;
    Nvcc::find(context.env, &target, &host)
}

/// Parts of the host link other than the link object.
fn parts(
    context: &Context,
    closure: &[Library],
    link: &Planned,
    stubbed: bool,
    dir: &Path,
) -> Result<Parts, Error> {
    let mut parts = Parts {
        lib: dir.join("lib"),
        ..Parts::default()
    };
    let lib = parts.lib.clone();
    std::fs::create_dir_all(&lib).map_err(|e| Error::io("create the directory", &lib, &e))?;
    let shared = |at: NodeId, is_final: bool| {
        let library = &closure[at.index()];
        shared::link_into(library, &lib)?;
        let (file, name) = if is_final {
            (&library.r#final, format!("{}_final", library.name))
        } else {
            (&library.middle, library.name.clone())
        };
        let file = file.as_deref().unwrap_or(Path::new(""));
        shared::link_name(file, &name, &lib)
    };
    for item in &link.line {
        match *item {
            LinkItem::Objects | LinkItem::LinkObject => {}
            LinkItem::Archive(at) | LinkItem::WholeArchive(at) => {
                parts.archives.push(closure[at.index()].archive.clone());
            }
            LinkItem::Final(at) => parts.shared.push(shared(at, true)?),
            LinkItem::Middle(at) => parts.shared.push(shared(at, false)?),
            // All images have one kind of runtime, or the plan has an error.
            LinkItem::Cudart(kind) if kind != Cudart::None && !stubbed => {
                let found = toolkit(context);
                let found = found.and_then(|nvcc| runtime::find(context, &nvcc, kind, dir));
                parts.runtime = match link.role {
                    // A final brings its own runtime, which bfd searches at link time: optional here.
                    Role::UseFinal(_) => found.unwrap_or_default(),
                    _ => found?,
                };
            }
            // Cargo links the libraries of a crate only if some code names the crate.
            LinkItem::Cudart(_) => {
                let stubs = closure.iter().find_map(|library| match &library.stubs {
                    Stubs::Shared(path) => Some(path),
                    _ => None,
                });
                if let Some(path) = stubs {
                    let linked = shared::link_stubs(path, &parts.lib)?;
                    parts
                        .shared
                        .push(shared::link_name(&linked, "stubs", &parts.lib)?);
                }
            }
        }
    }
    Ok(parts)
}

fn in_crate(
    context: &Context,
    parts: Parts,
    dir: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let package = context.env.cargo_text("CARGO_PKG_NAME")?;
    let name = format!("gpustub_link_{}", package.replace('-', "_"));
    let archive = dir.join(format!("lib{name}.a"));
    compile::archive(&(context.tools)()?, &archive, &[parts.object], Index::Omit)?;
    let mut search = |dir: &Path| {
        directives.push(Directive::LinkSearch(files::text(dir)?));
        Ok::<_, Error>(())
    };
    search(dir)?;
    if !parts.shared.is_empty() {
        search(&parts.lib)?;
    }
    parts.runtime.dirs.iter().try_for_each(|dir| search(dir))?;
    let whole = "static:+whole-archive".to_owned();
    directives.push(Directive::LinkLib(whole, name));
    for name in parts.shared {
        directives.push(Directive::LinkLib("dylib".to_owned(), name));
    }
    for (kind, name) in parts.runtime.libraries {
        directives.push(Directive::LinkLib(kind.to_owned(), name.to_owned()));
    }
    directives.push(Directive::LinkLib("dylib".to_owned(), "stdc++".to_owned()));
    Ok(())
}

fn as_arguments(parts: Parts, directives: &mut Vec<Directive>) -> Result<(), Error> {
    let mut dirs = parts.runtime.dirs;
    if !parts.shared.is_empty() {
        // Also read by cargo, which sets the loader's search path.
        directives.push(Directive::LinkSearch(files::text(&parts.lib)?));
        dirs.push(parts.lib);
    }
    let mut arg = |text: String| directives.push(Directive::LinkArg(text));
    arg(files::text(&parts.object)?);
    for archive in &parts.archives {
        arg(files::text(archive)?);
    }
    for dir in &dirs {
        arg(format!("-L{}", files::text(dir)?));
    }
    if let Some(script) = &parts.exports {
        arg(format!("-Wl,--version-script={}", files::text(script)?));
    }
    let shared = parts.shared.iter().map(String::as_str);
    let names = shared.chain(parts.runtime.libraries.iter().map(|(_, name)| *name));
    // These arguments end the command line, after rustc's own C libraries.
    for name in names.chain(["stdc++", "c", "gcc_s"]) {
        arg(format!("-l{name}"));
    }
    Ok(())
}

/// An object for which the linker keeps a final over these libraries.
fn use_final(context: &Context, members: &[&Library], dir: &Path) -> Result<PathBuf, Error> {
    let mut list = String::new();
    for member in members {
        for id in nvlink::objects(member)? {
            list += &format!("FINAL({id})\n");
        }
    }
    let object = dir.join("final.o");
    let new = files::sibling(&object);
    let texts = [
        ("gpustub_final.c", include_str!("final.c")),
        ("gpustub_final.inc", list.as_str()),
    ];
    let same = |(name, text): &(&str, &str)| {
        std::fs::read_to_string(dir.join(name)).is_ok_and(|old| old == *text)
    };
    if object.exists() && texts.iter().all(same) {
        return Ok(object);
    }
    files::remove(&object)?;
    for (name, text) in texts {
        files::write_if_changed(&dir.join(name), text.as_bytes())?;
    }
    (context.tools)()?.object(dir, &[], "gpustub_final.c", "final.o.new")?;
    files::rename(&new, &object)?;
    Ok(object)
}

/// Rejects a device link that the shared libraries of the program would not see: kernels registered
/// with one runtime are unknown to another, and stubs store registrations until the first call.
fn reachable(
    context: &Context,
    closure: &[Library],
    members: &[&Library],
    stubbed: bool,
) -> Result<(), Error> {
    let shared = |library: &&&Library| library.middle.is_some();
    let Some(first) = members.iter().find(shared) else {
        return Ok(());
    };
    let hidden = context.stubs == Stubs::Static || closure.iter().any(|l| l.stubs == Stubs::Static);
    let direct = members
        .iter()
        .filter(shared)
        .find(|l| l.stubs == Stubs::None);
    let problem = match direct {
        Some(direct) if stubbed => format!(
            "device-link.{} is shared and calls the CUDA runtime itself; the program's device link \
             calls the stub of it",
            direct.name
        ),
        _ if hidden => format!(
            "device-link.{} is shared and cannot call the stubs of the CUDA runtime, which are hidden \
             in the program",
            first.name
        ),
        _ => return Ok(()),
    };
    Err(Error::new(&INVALID_VALUE, problem).help(
        "let one package that all of them depend on provide [stub.cudart] with type = \"shared\", and \
         set `provide = false` in the others; or use no stub of cudart here",
    ))
}
