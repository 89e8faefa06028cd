//! The device link of a program: over every RDC library in it, once.

use std::path::{Path, PathBuf};

use gpustub_core::arch::{Arch, ArchKind};
use gpustub_core::by_name::ByName;
use gpustub_core::device_link::{Graph, Kind, Link, Node, NodeForm, Planned, plan};
use gpustub_core::diag::{
    BAD_GRAPH, DEVICE_LINK_FAILED, Diagnostic, FILE_ERROR, Level, PRELINKED_ARCHIVE, has_errors,
};
use gpustub_core::manifest::{Cudart, Form};

use super::index::Unfit;
use super::nvcc::Nvcc;
use super::published::{self, Library};
use super::stamp::{self, Started};
use super::{Context, compile, index};
use crate::toolchain::Index;
use crate::{Directive, Error, files};

/// How a device link gets into programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// As link arguments of the package's own programs, tests, examples and C libraries.
    LinkArgs,
    /// In this package's library, for whichever program uses it.
    Crate,
}

/// Links the device code of `closure`, dependents first, and says how programs take it in.
/// `stubbed`: the CUDA runtime is a stub, which some package of the program provides.
pub(crate) fn link(
    context: &Context,
    closure: &[Library],
    stubbed: bool,
    carrier: Carrier,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let program = context.env.cargo_text("CARGO_PKG_NAME")?;
    distinct(closure)?;
    let (link, found) = planned(&program, closure);
    let none = ByName::default();
    if has_errors(&found) {
        return Err(Error::diagnostics(&found, &none));
    }
    for warning in found.iter().filter(|d| d.level == Level::Warning) {
        let text = warning.to_string();
        directives.extend(text.lines().map(|line| Directive::Warning(line.to_owned())));
    }
    let members: Vec<&Library> = link.inputs.iter().map(|&at| &closure[at]).collect();
    if members.is_empty() {
        return Ok(());
    }
    // Not those that this run has just made: they are newer than its start, which cargo compares with.
    let made = |member: &&&Library| member.archive.starts_with(context.out);
    for member in members.iter().filter(|member| !made(member)) {
        directives.push(Directive::RerunIfChanged(published::text(&member.archive)?));
    }
    let target = context.env.cargo_text("TARGET")?;
    let host = context.env.cargo_text("HOST")?;
    let nvcc = Nvcc::find(context.env, &target, &host)?;
    let dir = context.out.join("device-link").join("link");
    let object = dir.join("device_link.o");
    run(&nvcc, &link, &members, &dir, &object)?;

    // All are of one kind, or the plan has an error.
    let runtime = match members.iter().map(|member| cudart(member)).next() {
        Some(kind) if kind != Cudart::None && !stubbed => runtime(context, &nvcc, kind, &dir)?,
        _ => Runtime::default(),
    };
    match carrier {
        Carrier::Crate => {
            let package = context.env.cargo_text("CARGO_PKG_NAME")?;
            let name = format!("gpustub_link_{}", package.replace('-', "_"));
            let archive = dir.join(format!("lib{name}.a"));
            compile::archive(&(context.tools)()?, &archive, &[object], Index::Omit)?;
            directives.push(Directive::LinkSearch(published::text(&dir)?));
            for dir in &runtime.dirs {
                directives.push(Directive::LinkSearch(published::text(dir)?));
            }
            let whole = "static:+whole-archive".to_owned();
            directives.push(Directive::LinkLib(whole, name));
            for (kind, name) in runtime.libraries {
                directives.push(Directive::LinkLib(kind.to_owned(), name.to_owned()));
            }
            directives.push(Directive::LinkLib("dylib".to_owned(), "stdc++".to_owned()));
        }
        Carrier::LinkArgs => {
            let mut arg = |text: String| directives.push(Directive::LinkArg(text));
            arg(published::text(&object)?);
            // Once more after the object, which needs members that nothing before it did.
            for member in &members {
                arg(published::text(&member.archive)?);
            }
            for dir in &runtime.dirs {
                arg(format!("-L{}", published::text(dir)?));
            }
            // These arguments are the last of the command line, behind rustc's own C libraries.
            let names = runtime.libraries.iter().map(|(_, name)| *name);
            for name in names.chain(["stdc++", "c", "gcc_s"]) {
                arg(format!("-l{name}"));
            }
        }
    }
    Ok(())
}

/// Refuses two libraries of one name, which the rules could not tell apart.
fn distinct(closure: &[Library]) -> Result<(), Error> {
    for (at, library) in closure.iter().enumerate() {
        let mut before = closure[..at].iter();
        if let Some(other) = before.find(|other| other.name == library.name) {
            return Err(Error::new(
                &BAD_GRAPH,
                format!(
                    "device-link.{} is declared by {} and by {}",
                    library.name, other.package, library.package
                ),
            )
            .help(match other.package.split(' ').next() == library.package.split(' ').next() {
                true => "the program has two versions of one package: `cargo tree -d` shows who asks for them",
                false => "give each library of a program a name of its own",
            }));
        }
    }
    Ok(())
}

/// What the rules say of a program with these libraries. Inputs are indices of `closure`.
fn planned(program: &str, closure: &[Library]) -> (Planned, Vec<Diagnostic>) {
    let mut nodes: Vec<Node> = closure.iter().map(node).collect();
    // No library's name has a space in it.
    let name = format!("package {program}");
    let mut last = Node::new(name, Kind::Plain, NodeForm::Bin);
    last.links = closure
        .iter()
        .filter(|library| library.built)
        .map(|library| to(&library.name))
        .collect();
    nodes.push(last);
    let graph = Graph { nodes };
    let (plan, found) = plan(&graph);
    (plan.planned(closure.len()), found)
}

fn node(library: &Library) -> Node {
    // One that was left out, as there is no nvcc, has nothing to link.
    let kind = match library.built && !library.archive.as_os_str().is_empty() {
        true => Kind::Rdc,
        false => Kind::Interface,
    };
    let form = match library.form == Form::Shared.word() {
        true => NodeForm::Shared,
        false => NodeForm::Static,
    };
    let mut node = Node::new(&library.name, kind, form);
    node.archs = library
        .archs
        .iter()
        .filter_map(|name| Arch::parse(name))
        .collect();
    node.cudart = (kind == Kind::Rdc).then_some(cudart(library));
    node.links = library.requires.iter().map(|name| to(name)).collect();
    node
}

fn to(name: &str) -> Link {
    Link {
        to: name.to_owned(),
        private: false,
    }
}

fn cudart(library: &Library) -> Cudart {
    let kinds = [Cudart::Shared, Cudart::Static, Cudart::None];
    let named = kinds.into_iter().find(|kind| kind.word() == library.cudart);
    named.unwrap_or_default()
}

/// Runs nvcc, unless the object is what it would make.
fn run(
    nvcc: &Nvcc,
    link: &Planned,
    members: &[&Library],
    dir: &Path,
    object: &Path,
) -> Result<(), Error> {
    let keep = dir.join("kept");
    std::fs::create_dir_all(&keep).map_err(|e| Error::io("create the folder", &keep, &e))?;
    let archives: Vec<PathBuf> = members.iter().map(|m| m.archive.clone()).collect();
    let mut expected = Vec::new();
    for member in members {
        expected.extend(objects(member)?);
    }
    expected.sort();
    let mut command = nvcc.link();
    command.current_dir(dir);
    command.args(["-dlink", "-Xcompiler", "-fPIC"]);
    // Code that is missing for an architecture is a mere warning otherwise, and a kernel that
    // cannot be launched.
    command.args(["-Xnvlink", "-Werror"]);
    // For the list of what is registered.
    command.arg("--keep").arg("--keep-dir").arg(&keep);
    for arch in &link.archs {
        let real = arch.as_kind(ArchKind::Real);
        command.arg("-gencode").arg(compile::gencode(real));
    }
    if link.lto {
        command.arg("-dlto");
    }
    command.args(&archives).arg("-o").arg(object);
    let line = stamp::line(&command);
    if stamp::fresh(object, &line).is_some() {
        return Ok(());
    }
    stamp::forget(object)?;
    let started = Started::now(dir)?;
    let output = command
        .output()
        .map_err(|e| Error::io("run", Path::new(command.get_program()), &e))?;
    if !output.status.success() {
        let mut printed = output.stdout.clone();
        printed.extend(&output.stderr);
        return Err(Error::new(
            &DEVICE_LINK_FAILED,
            format!(
                "nvcc cannot link the device code ({}): {line}",
                output.status
            ),
        )
        .output(&printed));
    }
    let list = keep.join("device_link.reg.c");
    let text = std::fs::read_to_string(&list).map_err(|e| Error::io("read", &list, &e))?;
    let registered = index::registered(&text);
    if registered != expected {
        let missing: Vec<_> = expected
            .iter()
            .filter(|id| !registered.contains(id))
            .map(String::as_str)
            .collect();
        return Err(Error::new(
            &DEVICE_LINK_FAILED,
            format!(
                "the device link registers {} objects of {}; not {}",
                registered.len(),
                expected.len(),
                missing.join(", ")
            ),
        ));
    }
    stamp::write(object, &line, &archives, started)
}

/// The ids of a library's objects.
fn objects(member: &Library) -> Result<Vec<String>, Error> {
    let path = &member.archive;
    let found = index::modules(path).map_err(|e| Error::io("read", path, &e))?;
    let modules = found.map_err(|why| {
        let (what, help) = match why {
            Unfit::NoArchive => (
                "is no archive",
                "`archive` names the .a file of objects that nvcc compiled with -rdc=true"
                    .to_owned(),
            ),
            Unfit::Thin => (
                "is a thin archive, which only names its objects",
                "`ar` without `T` puts them in".to_owned(),
            ),
            Unfit::NoIndex => (
                "has no symbol index",
                format!("`ranlib {}` writes one", path.display()),
            ),
        };
        let text = format!("device-link.{}: {} {what}", member.name, path.display());
        Error::new(&FILE_ERROR, text).help(help)
    })?;
    if !modules.linked.is_empty() {
        return Err(Error::new(
            &PRELINKED_ARCHIVE,
            format!(
                "device-link.{}: {} was archived with a device link; nvlink would skip all of it",
                member.name,
                path.display()
            ),
        )
        .help(
            "build it without: CUDA_RESOLVE_DEVICE_SYMBOLS OFF with CMake; the cc crate cannot, \
             `[device-link.*]` with `sources` does it in its place",
        ));
    }
    Ok(modules.objects)
}

/// What the CUDA runtime of the toolkit needs on a command line.
#[derive(Debug, Default)]
struct Runtime {
    dirs: Vec<PathBuf>,
    libraries: Vec<(&'static str, &'static str)>,
}

fn runtime(context: &Context, nvcc: &Nvcc, kind: Cudart, dir: &Path) -> Result<Runtime, Error> {
    let arch = context.env.cargo_text("CARGO_CFG_TARGET_ARCH")?;
    let dirs = nvcc.library_dirs(&arch);
    let having = |name: &str| dirs.iter().find(|dir| dir.join(name).exists());
    let missing = |name: &str| {
        Error::new(
            &FILE_ERROR,
            format!("the CUDA toolkit at {} has no {name}", nvcc.root.display()),
        )
        .help(
            "install its runtime (wheels: nvidia-cuda-runtime), or declare [stub.cudart], which \
             needs none and starts without CUDA too",
        )
    };
    if kind == Cudart::Static {
        let found = having("libcudart_static.a").ok_or_else(|| missing("libcudart_static.a"))?;
        let libraries = ["rt", "pthread", "dl"].map(|name| ("dylib", name));
        return Ok(Runtime {
            dirs: vec![found.clone()],
            libraries: [("static:-bundle", "cudart_static")]
                .into_iter()
                .chain(libraries)
                .collect(),
        });
    }
    let libraries = vec![("dylib", "cudart")];
    if let Some(found) = having("libcudart.so") {
        return Ok(Runtime {
            dirs: vec![found.clone()],
            libraries,
        });
    }
    // Wheels have the name that programs need, not the one that linkers look for.
    let versioned = dirs.iter().find_map(|dir| {
        let mut names: Vec<_> = std::fs::read_dir(dir)
            .ok()?
            .flatten()
            .map(|e| e.path())
            .collect();
        names.sort();
        names.into_iter().find(|path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with("libcudart.so."))
        })
    });
    let versioned = versioned.ok_or_else(|| missing("libcudart.so"))?;
    let names = dir.join("runtime");
    std::fs::create_dir_all(&names).map_err(|e| Error::io("create the folder", &names, &e))?;
    files::link(&versioned, &names.join("libcudart.so"))?;
    // Cargo puts this folder into LD_LIBRARY_PATH for `cargo run` and `cargo test`.
    if let Some(name) = versioned.file_name() {
        files::link(&versioned, &names.join(name))?;
    }
    Ok(Runtime {
        dirs: vec![names],
        libraries,
    })
}
