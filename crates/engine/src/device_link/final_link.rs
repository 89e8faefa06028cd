//! The device link of a program: over every RDC library in it, once. Either made here, or the one
//! of a shared library.

use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::device_link::{LinkItem, LinkRole, NodeId, NodePlan, plan, runtime_names};
use gpustub_core::diag::{DUPLICATE_DEVICE_SYMBOL, INVALID_VALUE, Level, has_errors};
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::ids::Id;
use gpustub_core::manifest::Cudart;

use super::context::Context;
use super::exports::Function;
use super::hip::Clang;
use super::metadata::{DeviceLibrary, Stubs};
use super::nvcc::Nvcc;
use super::runtime::{self, Runtime};
use super::{compile, exports, generated, graph, hip, nvlink, shared};
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

/// Files that a program links, in this order.
#[derive(Default)]
struct HostLink {
    /// Objects of the device links.
    objects: Vec<PathBuf>,
    /// Archives of objects, for the link objects: no earlier object refers to their members.
    archives: Vec<PathBuf>,
    /// Shared libraries, by their names for `-l`, and their directory.
    shared: Vec<String>,
    lib: PathBuf,
    runtime: Runtime,
    /// Version script, if other images call the device link.
    version_script: Option<PathBuf>,
}

/// Links the device code of `closure`, dependents first, and returns directives for programs.
pub(super) fn link(
    context: &Context,
    closure: &[DeviceLibrary],
    delivery: Delivery,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let program = context.env.cargo_text("CARGO_PKG_NAME")?;
    check_distinct_names(closure)?;
    let graph = graph::with_program(&program, closure, context.link_archs);
    let (plan, diagnostics) = plan(&graph);
    if has_errors(&diagnostics) {
        return Err(Error::from_diagnostics(&diagnostics, &ByName::default()));
    }
    for warning in diagnostics.iter().filter(|d| d.level == Level::Warning) {
        let text = warning.to_string();
        directives.extend(text.lines().map(|line| Directive::Warning(line.to_owned())));
    }
    let link = plan.node_plan(NodeId::from_index(closure.len()));
    let dir = context.out.join("device-link").join("link");
    std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
    let mut exported = Vec::new();
    for node in &link.exports {
        exported.extend(exports::functions(&closure[node.index()])?);
    }
    let (mut renames, mut version_script) = (None, None);
    if delivery == Delivery::Crate {
        exports::write_rust(context.out, &exported)?;
    }
    if !exported.is_empty() {
        match delivery {
            Delivery::Crate => renames = Some(exports::write_header(&dir, &exported)?),
            Delivery::LinkArgs => {
                version_script = Some(exports::write_version_script(&dir, &exported)?);
            }
        }
    }
    let nodes = match link.role {
        LinkRole::OwnLink(_) => link.inputs.clone(),
        LinkRole::UseFinal(top) => plan.inputs(top),
        _ => return Ok(()),
    };
    let members: Vec<_> = nodes.iter().map(|node| &closure[node.index()]).collect();
    for member in &members {
        // Without this run's archives: they are newer than its start, which cargo compares with.
        if !member.archive.starts_with(context.out_dir()) {
            directives.push(Directive::RerunIfChanged(files::text(&member.archive)?));
        }
    }
    let stubbed = is_stubbed(context, closure, Vendor::Nvidia);
    let members_with_code = |vendor| {
        let with_code = members.iter().filter(|member| member.has_code(vendor));
        Vec::from_iter(with_code.copied())
    };
    let hip_members = members_with_code(Vendor::Amd);
    let cuda_members = members_with_code(Vendor::Nvidia);
    let mut objects = Vec::new();
    match link.role {
        LinkRole::UseFinal(_) => objects.push(keep_final(context, &members, &dir)?),
        _ if cuda_members.is_empty() => {}
        _ => {
            check_reachable(context, closure, &cuda_members, Vendor::Nvidia)?;
            objects.push(link_device_code(
                context,
                &link,
                &cuda_members,
                &dir,
                renames.as_deref(),
                directives,
            )?);
        }
    }
    let mut host_link = HostLink {
        version_script,
        ..host_link(context, closure, &link, stubbed, &dir)?
    };
    if !hip_members.is_empty() {
        let clang = Clang::find(context.env, &context.env.cargo_text("TARGET")?);
        if matches!(link.role, LinkRole::OwnLink(_)) {
            check_reachable(context, closure, &hip_members, Vendor::Amd)?;
            let clang = clang.clone()?;
            directives.extend(clang.watched()?);
            let mut functions = exported;
            functions.retain(|function| function.vendor == Vendor::Amd);
            let name = match renames {
                Some(_) => Function::linked_name,
                None => Function::name,
            };
            let names = Vec::from_iter(functions.iter().map(name));
            objects.extend(link_hip_code(
                context,
                &clang,
                &link,
                &names,
                &hip_members,
                &dir,
            )?);
        }
        if let Some(stubs) = shared_stubs(closure, Vendor::Amd) {
            host_link.add_stubs(stubs)?;
        } else if let (Ok(clang), false) = (clang, is_stubbed(context, closure, Vendor::Amd)) {
            // A final brings its own runtime, which bfd searches at link time: optional there.
            host_link.runtime.add_hip(&clang);
        }
    }
    host_link.objects = objects;
    if matches!(link.role, LinkRole::OwnLink(_)) && nvlink::has_devrt(&members) {
        host_link.runtime.add_cudadevrt(&toolkit(context)?, &dir)?;
    }
    match delivery {
        Delivery::Crate => deliver_in_crate(context, host_link, &dir, directives),
        Delivery::LinkArgs => deliver_as_link_args(host_link, directives),
    }
}

/// Makes the object of the program's own device link.
fn link_device_code(
    context: &Context,
    link: &NodePlan,
    members: &[&DeviceLibrary],
    dir: &Path,
    renames: Option<&Path>,
    directives: &mut Vec<Directive>,
) -> Result<PathBuf, Error> {
    let nvcc = toolkit(context)?;
    directives.extend(nvcc.watched()?);
    for warning in nvcc.warnings() {
        // Those that compiling the package's own sources has printed are not repeated.
        if !directives.contains(&warning) {
            directives.push(warning);
        }
    }
    let object = dir.join("device_link.o");
    let compiler = (&nvcc, context.store.as_ref());
    let warnings = nvlink::link(compiler, link, members, dir, &object, renames)?;
    directives.extend(warnings.into_iter().map(Directive::Warning));
    Ok(object)
}

/// Makes the objects of the program's device link for AMD, with these functions for objects in other images.
fn link_hip_code(
    context: &Context,
    clang: &Clang,
    link: &NodePlan,
    functions: &[String],
    members: &[&DeviceLibrary],
    dir: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let inputs = hip::LinkInputs {
        clang,
        store: context.store.as_ref(),
        archs: &Vendor::Amd.select(link.archs.iter().copied()),
        members,
        functions,
        opt_level: &context.env.cargo_text("OPT_LEVEL")?,
        dir: &dir.join("hip"),
    };
    hip::link(&inputs, context.tools)
}

/// Rejects two libraries of one name, which the rules could not distinguish.
fn check_distinct_names(closure: &[DeviceLibrary]) -> Result<(), Error> {
    for (index, library) in closure.iter().enumerate() {
        let Some(namesake) = closure[..index]
            .iter()
            .find(|earlier| earlier.name == library.name)
        else {
            continue;
        };
        let message = format!(
            "device-link.{} is declared by {} and by {}",
            library.name, namesake.package, library.package
        );
        let is_one_package =
            namesake.package.split(' ').next() == library.package.split(' ').next();
        let help = if is_one_package {
            "the program has two versions of one package: `cargo tree -d` lists their dependents"
        } else {
            "give each library of a program a name of its own"
        };
        return Err(Error::new(&DUPLICATE_DEVICE_SYMBOL, message).help(help));
    }
    Ok(())
}

/// The CUDA toolkit of a build.
pub(super) fn toolkit(context: &Context) -> Result<Nvcc, Error> {
    let target = context.env.cargo_text("TARGET")?;
    let host = context.env.cargo_text("HOST")?;
    Nvcc::find(context.env, &target, &host)
}

/// Files of the host link other than the link object.
fn host_link(
    context: &Context,
    closure: &[DeviceLibrary],
    link: &NodePlan,
    stubbed: bool,
    dir: &Path,
) -> Result<HostLink, Error> {
    let lib = dir.join("lib");
    std::fs::create_dir_all(&lib).map_err(|e| Error::io("create the directory", &lib, &e))?;
    let mut host_link = HostLink {
        lib: lib.clone(),
        ..HostLink::default()
    };
    for item in &link.line {
        match *item {
            LinkItem::Objects | LinkItem::LinkObject => {}
            LinkItem::Archive(node) | LinkItem::WholeArchive(node) => {
                let archive = closure[node.index()].archive.clone();
                host_link.archives.push(archive);
            }
            LinkItem::Final(node) => {
                let library = &closure[node.index()];
                let name = format!("{}_final", library.name);
                let name = shared_name(library, library.r#final.as_deref(), &name, &lib)?;
                host_link.shared.push(name);
            }
            LinkItem::Middle(node) => {
                let library = &closure[node.index()];
                let middle = library.middle.as_deref();
                let name = shared_name(library, middle, &library.name, &lib)?;
                host_link.shared.push(name);
            }
            // All images have one kind of runtime, or the plan has an error.
            LinkItem::Cudart(kind) if kind != Cudart::None && !stubbed => {
                let runtime =
                    toolkit(context).and_then(|nvcc| runtime::find(context, &nvcc, kind, dir));
                host_link.runtime = match link.role {
                    // A final brings its own runtime, which bfd searches at link time: optional here.
                    LinkRole::UseFinal(_) => runtime.unwrap_or_default(),
                    _ => runtime?,
                };
            }
            // Cargo links the libraries of a crate only if some code names the crate.
            LinkItem::Cudart(_) => {
                if let Some(stubs) = shared_stubs(closure, Vendor::Nvidia) {
                    host_link.add_stubs(stubs)?;
                }
            }
        }
    }
    Ok(host_link)
}

/// Whether the program or one of its libraries calls stubs of a runtime.
fn is_stubbed(context: &Context, closure: &[DeviceLibrary], vendor: Vendor) -> bool {
    *context.stubs(vendor) != Stubs::None
        || (closure.iter()).any(|library| *library.stubs(vendor) != Stubs::None)
}

/// The shared library with stubs of a runtime.
fn shared_stubs(closure: &[DeviceLibrary], vendor: Vendor) -> Option<&Path> {
    closure
        .iter()
        .find_map(|library| library.shared_stubs(vendor))
}

impl HostLink {
    /// Adds a shared library with stubs, of one runtime or several.
    fn add_stubs(&mut self, stubs: &Path) -> Result<(), Error> {
        let stubs = shared::link_stubs(stubs, &self.lib)?;
        let name = shared::link_name(&stubs, "stubs", &self.lib)?;
        if !self.shared.contains(&name) {
            self.shared.push(name);
        }
        Ok(())
    }
}

/// Links the files of a shared library into `lib`. Returns the name for `-l` of one of them.
fn shared_name(
    library: &DeviceLibrary,
    file: Option<&Path>,
    name: &str,
    lib: &Path,
) -> Result<String, Error> {
    shared::link_into(library, lib)?;
    shared::link_name(file.unwrap_or(Path::new("")), name, lib)
}

fn deliver_in_crate(
    context: &Context,
    host_link: HostLink,
    dir: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let package = context.env.cargo_text("CARGO_PKG_NAME")?;
    let name = format!("gpustub_link_{}", package.replace('-', "_"));
    let archive = dir.join(format!("lib{name}.a"));
    compile::archive(
        &(context.tools)()?,
        &archive,
        &host_link.objects,
        Index::Omit,
    )?;
    directives.push(Directive::LinkSearch(files::text(dir)?));
    if !host_link.shared.is_empty() {
        directives.push(Directive::LinkSearch(files::text(&host_link.lib)?));
    }
    for dir in &host_link.runtime.dirs {
        directives.push(Directive::LinkSearch(files::text(dir)?));
    }
    let whole_archive = "static:+whole-archive".to_owned();
    directives.push(Directive::LinkLib(whole_archive, name));
    for name in host_link.shared {
        directives.push(Directive::LinkLib("dylib".to_owned(), name));
    }
    for (kind, name) in host_link.runtime.libraries {
        directives.push(Directive::LinkLib(kind.to_owned(), name.to_owned()));
    }
    directives.push(Directive::LinkLib("dylib".to_owned(), "stdc++".to_owned()));
    Ok(())
}

fn deliver_as_link_args(host_link: HostLink, directives: &mut Vec<Directive>) -> Result<(), Error> {
    let mut dirs = host_link.runtime.dirs;
    if !host_link.shared.is_empty() {
        // Also read by cargo, which sets the loader's search path.
        directives.push(Directive::LinkSearch(files::text(&host_link.lib)?));
        dirs.push(host_link.lib);
    }
    let mut args = Vec::new();
    for file in host_link.objects.iter().chain(&host_link.archives) {
        args.push(files::text(file)?);
    }
    for dir in &dirs {
        args.push(format!("-L{}", files::text(dir)?));
    }
    if let Some(script) = &host_link.version_script {
        args.push(format!("-Wl,--version-script={}", files::text(script)?));
    }
    for name in &host_link.shared {
        args.push(format!("-l{name}"));
    }
    for (_, name) in &host_link.runtime.libraries {
        args.push(format!("-l{name}"));
    }
    // These arguments end the command line, after rustc's own C libraries.
    args.extend(["-lstdc++", "-lc", "-lgcc_s"].map(str::to_owned));
    directives.extend(args.into_iter().map(Directive::LinkArg));
    Ok(())
}

/// Compiles an object for which the linker keeps a final over these libraries.
fn keep_final(context: &Context, members: &[&DeviceLibrary], dir: &Path) -> Result<PathBuf, Error> {
    let mut list = String::new();
    for member in members {
        for function in exports::functions(member)? {
            list += &format!("FINAL({})\n", function.name());
        }
    }
    let sources = [
        ("gpustub_final.c", include_str!("final.c")),
        ("gpustub_final.inc", list.as_str()),
    ];
    generated::object(dir, sources, "final.o", context.tools)
}

/// Rejects a device link that the shared libraries of the program would not see: kernels registered
/// with one runtime are unknown to another, and stubs store registrations until the first call.
fn check_reachable(
    context: &Context,
    closure: &[DeviceLibrary],
    members: &[&DeviceLibrary],
    vendor: Vendor,
) -> Result<(), Error> {
    let shared: Vec<_> = members.iter().filter(|m| m.middle.is_some()).collect();
    let Some(first) = shared.first() else {
        return Ok(());
    };
    let hidden = *context.stubs(vendor) == Stubs::Static
        || (closure.iter()).any(|library| *library.stubs(vendor) == Stubs::Static);
    let unstubbed = (shared.iter()).find(|library| *library.stubs(vendor) == Stubs::None);
    let (runtime, stub) = runtime_names(vendor);
    let message = match unstubbed {
        Some(library) if is_stubbed(context, closure, vendor) => format!(
            "device-link.{} is shared and calls the {runtime} runtime itself; the program's device link \
             calls the stub of it",
            library.name
        ),
        _ if hidden => format!(
            "device-link.{} is shared and cannot call the stubs of the {runtime} runtime, which are hidden \
             in the program",
            first.name
        ),
        _ => return Ok(()),
    };
    Err(Error::new(&INVALID_VALUE, message).help(format!(
        "let one package that all of them depend on provide [stub.{stub}] with type = \"shared\", and \
         set `provide = false` in the others; or use no stub of {stub} here",
    )))
}
