//! The RDC libraries of a package: checked, compiled, archived, linked and announced to dependents.

use std::path::Path;

use gpustub_core::by_name::ByName;
use gpustub_core::device_link::{plan, shared_launches};
use gpustub_core::diag::{IO_ERROR, has_errors};
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::manifest::{CudaCompiler, DeviceCode, DeviceLink, DeviceModule, LibraryType};
use gpustub_core::text::join;

use super::beside;
use super::closure::{inherited, upstream};
use super::compile::{self, Unit};
use super::compiler::Compilers;
use super::context::{BuildContext, Context};
use super::cuda_clang::CudaClang;
use super::describe::{archive_name, describe_all};
use super::final_link::toolkit;
use super::hip::Clang;
use super::jobs::Tokens;
use super::metadata::{self, DeviceLibrary};
use super::nvcc::Nvcc;
use super::{external, graph, modules, shared, sources};
use crate::error::Error;
use crate::files;
use crate::toolchain::Index;

/// Builds the RDC libraries and modules of a package. Returns its libraries and all of its
/// dependencies.
pub(super) fn build_all(
    context: &Context,
    tables: &[&DeviceLink],
    modules: &[&DeviceModule],
    directives: &mut Vec<Directive>,
) -> Result<Vec<DeviceLibrary>, Error> {
    let dependencies = upstream(context.env)?;
    if tables.is_empty() && modules.is_empty() {
        return Ok(dependencies);
    }
    let dir = context.out.join("device-link");
    let lib = dir.join("lib");
    std::fs::create_dir_all(&lib).map_err(|e| Error::io("create the directory", &lib, &e))?;

    let mut libraries = describe_all(context, tables, modules, &dependencies, &dir)?;
    build_or_omit(
        context,
        (tables, modules),
        &mut libraries,
        &dependencies,
        &dir,
        directives,
    )?;
    for library in libraries.iter().filter(|library| library.built) {
        directives.push(cfg(&library.name));
    }
    // Programs and dependents are not linked with modules.
    libraries.truncate(tables.len());
    link_package(context, tables, &libraries, &lib, directives)?;

    // Dependents learn the closure from their direct dependencies only.
    let mut closure = libraries;
    closure.reverse();
    for library in dependencies {
        if !closure.contains(&library) {
            closure.push(library);
        }
    }
    let path = dir.join("libraries");
    files::write_if_changed(&path, metadata::render(&closure)?.as_bytes())?;
    if context.env.get("CARGO_MANIFEST_LINKS").is_some() {
        let key = metadata::KEY.to_owned();
        directives.push(Directive::Metadata(key, files::text(&path)?));
    }
    Ok(closure)
}

/// Condition of code that uses a library or module.
pub(super) fn cfg(name: &str) -> Directive {
    Directive::Cfg(format!("gpustub_device_link={name:?}"))
}

/// Builds the libraries and modules. Without a compiler optional ones are left out.
fn build_or_omit(
    context: &Context,
    (tables, modules): (&[&DeviceLink], &[&DeviceModule]),
    libraries: &mut [DeviceLibrary],
    dependencies: &[DeviceLibrary],
    dir: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let unsupported = context.env.target()?.check_device_link(!tables.is_empty());
    // Tables that must be compiled, if there is a compiler; elsewhere none is of use.
    let mut compiled: Vec<&DeviceLink> = Vec::new();
    for table in tables {
        match table.code {
            DeviceCode::Sources(_) => compiled.push(table),
            DeviceCode::External { .. } if unsupported.is_some() => compiled.push(table),
            DeviceCode::External { .. } | DeviceCode::Headers => {}
        }
    }
    if compiled.is_empty() && modules.is_empty() {
        return Ok(());
    }
    let compilers = match unsupported {
        Some(diagnostic) => Err(Error::from(diagnostic)),
        None => find_compilers(context, &compiled, modules),
    };
    let error = match compilers {
        Ok(compilers) => {
            return build(
                context,
                &compilers,
                (&compiled, modules),
                libraries,
                dependencies,
                dir,
                directives,
            );
        }
        Err(error) => error,
    };
    compiled.extend(modules.iter().map(|module| &module.library));
    if compiled.iter().any(|table| !table.optional) {
        return Err(error);
    }
    let names: Vec<_> = compiled.iter().map(|t| t.name.value.as_str()).collect();
    for library in libraries {
        if names.contains(&library.name.as_str()) {
            library.built = false;
        }
    }
    let text = format!("device-link.{} is left out: {error}", join(&names, ", "));
    directives.extend(text.lines().map(|line| Directive::Warning(line.to_owned())));
    Ok(())
}

/// Finds the compilers that the tables need.
fn find_compilers(
    context: &Context,
    tables: &[&DeviceLink],
    modules: &[&DeviceModule],
) -> Result<Compilers, Error> {
    let has_vendor = |vendor| {
        let tables = tables.iter().copied();
        let mut all = tables.chain(modules.iter().map(|module| &module.library));
        all.any(|table| compile::has_vendor(table, vendor))
    };
    let target = context.env.cargo_text("TARGET")?;
    let host = context.env.cargo_text("HOST")?;
    let mut compilers = Compilers {
        nvcc: None,
        cuda_clang: None,
        clang: None,
    };
    if has_vendor(Vendor::Nvidia) {
        let nvcc = Nvcc::find(context.env, &target, &host)?;
        let mut tables = tables.iter();
        if tables.any(|table| table.compiler == CudaCompiler::Clang) {
            compilers.cuda_clang = Some(CudaClang::find(context.env, &nvcc)?);
        }
        compilers.nvcc = Some(nvcc);
    }
    if has_vendor(Vendor::Amd) {
        compilers.clang = Some(Clang::find(context.env, &target)?);
    }
    Ok(compilers)
}

/// Adds the directives that link the package with its libraries.
fn link_package(
    context: &Context,
    tables: &[&DeviceLink],
    libraries: &[DeviceLibrary],
    lib: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let mut link_names = Vec::new();
    for (library, table) in libraries.iter().zip(tables) {
        if !library.built {
            continue;
        }
        if let DeviceCode::External { prebuilt, .. } = &table.code {
            if !library.archive.as_os_str().is_empty() {
                // rustc, which bundles the archive, does not say what is wrong with it.
                external::check_archive(table, &library.archive).map_err(|diagnostic| {
                    Error::from(diagnostic).with_location(context.manifest.location(&prebuilt.span))
                })?;
            }
            let shared = [&library.middle, &library.r#final].into_iter().flatten();
            for file in shared.chain([&library.archive]) {
                // The script's own files are newer than its start, which cargo compares with.
                if !file.starts_with(context.out_dir()) {
                    directives.push(Directive::RerunIfChanged(files::text(file)?));
                }
            }
        }
        if library.archive.as_os_str().is_empty() {
            continue;
        }
        link_names.push(match &library.middle {
            Some(middle) => {
                shared::link_into(library, lib)?;
                beside::link(context.out_dir(), &shared::files_in(library, lib));
                ("dylib", shared::link_name(middle, &library.name, lib)?)
            }
            None => ("static", link_name(library, lib)?),
        });
    }
    if link_names.is_empty() {
        return Ok(());
    }
    directives.push(Directive::LinkSearch(files::text(lib)?));
    for (kind, name) in link_names {
        directives.push(Directive::LinkLib(kind.to_owned(), name));
    }
    // Host code is C++. Linkers that resolve from left to right need libstdc++ after it.
    directives.push(Directive::LinkLib("dylib".to_owned(), "stdc++".to_owned()));
    Ok(())
}

/// Compiles and archives, and links what is not linked with programs.
fn build(
    context: &Context,
    compilers: &Compilers,
    (tables, modules): (&[&DeviceLink], &[&DeviceModule]),
    libraries: &mut [DeviceLibrary],
    dependencies: &[DeviceLibrary],
    dir: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let opt_level = context.env.cargo_text("OPT_LEVEL")?;
    let build = BuildContext {
        context,
        libraries,
        modules,
        dependencies,
        out: dir,
        opt_level: &opt_level,
        debug: context.env.cargo_text("DEBUG")? == "true",
    };
    let units = compile_all(&build, compilers, (tables, modules), directives)?;
    let (table_units, module_units) = units.split_at(units.len() - modules.len());
    if let Some(nvcc) = &compilers.nvcc {
        directives.extend(nvcc.watched()?);
        directives.extend(nvcc.warnings());
    }
    if let Some(clang) = &compilers.cuda_clang {
        directives.extend(clang.watched()?);
    }
    if let Some(clang) = &compilers.clang {
        directives.extend(clang.watched()?);
    }

    let tools = (context.tools)()?;
    for (table, units) in tables.iter().zip(table_units) {
        for library in libraries.iter_mut() {
            if library.name == table.name.value {
                let objects = compile::objects(units);
                compile::archive(&tools, &library.archive, &objects, Index::Write)?;
                library.sources = units.iter().map(|unit| unit.member(context)).collect();
                break;
            }
        }
    }
    let module_build = modules::ModuleBuild {
        context,
        compilers,
        opt_level: &opt_level,
        dir,
        dependencies,
        tools: &tools,
    };
    for (module, units) in modules.iter().zip(module_units) {
        module_build.build(module, units, libraries, directives)?;
    }
    let mut shared = Vec::new();
    for (table, units) in tables.iter().zip(table_units) {
        if table.library_type == LibraryType::Shared {
            shared.push((*table, units.as_slice()));
        }
    }
    link_shared(
        context,
        compilers,
        shared,
        libraries,
        dependencies,
        dir,
        directives,
    )
}

/// Compiles the sources of tables and modules, and returns the units of each: first those of the tables.
fn compile_all<'a>(
    build: &BuildContext,
    compilers: &'a Compilers,
    (tables, modules): (&[&'a DeviceLink], &[&'a DeviceModule]),
    directives: &mut Vec<Directive>,
) -> Result<Vec<Vec<Unit<'a>>>, Error> {
    let mut units = Vec::new();
    for table in tables {
        let DeviceCode::Sources(patterns) = &table.code else {
            continue;
        };
        let inherited = inherited(&table.name.value, build.libraries, build.dependencies);
        let mut table_units = Vec::new();
        for compiler in compile::compilers(compilers, table) {
            let of_compiler = compile::units(build, compiler, table, patterns, &inherited, None)?;
            table_units.extend(of_compiler);
        }
        units.push(table_units);
    }
    for module in modules {
        units.push(modules::units(build, compilers, module)?);
    }
    for table in tables {
        watch_directories(table, directives);
    }
    for module in modules {
        watch_directories(&module.library, directives);
    }
    let jobs = build.context.env.cargo_text("NUM_JOBS")?;
    let tokens = Tokens::new(jobs.parse().unwrap_or(1))
        .map_err(|e| Error::new(&IO_ERROR, format!("cargo's jobserver cannot be used: {e}")))?;
    compile::run(
        build,
        units.iter_mut().flatten().collect(),
        tokens,
        directives,
    )?;
    Ok(units)
}

/// Makes cargo watch the directories in which a new source could match.
fn watch_directories(table: &DeviceLink, directives: &mut Vec<Directive>) {
    if let DeviceCode::Sources(patterns) = &table.code {
        let dirs = sources::watched(patterns.iter().map(|pattern| pattern.value.as_str()));
        directives.extend(dirs.into_iter().map(Directive::RerunIfChanged));
    }
}

/// Links the shared libraries of the package, each with the units of its objects.
fn link_shared(
    context: &Context,
    compilers: &Compilers,
    mut shared: Vec<(&DeviceLink, &[Unit])>,
    libraries: &[DeviceLibrary],
    dependencies: &[DeviceLibrary],
    dir: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    if shared.is_empty() {
        return Ok(());
    }
    // A required library has fewer libraries below it than a library that requires it.
    shared.sort_by_key(|(table, _)| inherited(&table.name.value, libraries, dependencies).len());
    let mut visible = libraries.to_vec();
    visible.extend(dependencies.iter().cloned());
    let graph = graph::from_libraries(&visible);
    let (plan, diagnostics) = plan(&graph);
    if has_errors(&diagnostics) {
        return Err(Error::from_diagnostics(&diagnostics, &ByName::default()));
    }
    let links = |vendor| {
        let mut tables = shared.iter().map(|(table, _)| &table.name.value);
        tables.any(|name| {
            let mut members = inherited(name, libraries, dependencies).into_iter();
            members.any(|library| library.has_code(vendor))
        })
    };
    // A required library may have code for another vendor than those of this package.
    let nvcc = match &compilers.nvcc {
        None if links(Vendor::Nvidia) => Some(toolkit(context)?),
        nvcc => nvcc.clone(),
    };
    let clang = match &compilers.clang {
        None if links(Vendor::Amd) => {
            let triple = context.env.cargo_text("TARGET")?;
            Some(Clang::find(context.env, &triple)?)
        }
        clang => clang.clone(),
    };
    let shared_build = shared::SharedBuild {
        context,
        nvcc: nvcc.as_ref(),
        clang: clang.as_ref(),
        dir,
        visible: &visible,
    };
    for (table, units) in shared {
        let name = &table.name.value;
        let required = inherited(name, libraries, dependencies);
        if let Some(launching) = required.iter().find(|library| library.cudadevrt) {
            let diagnostic = shared_launches(name, &launching.name);
            let location = context.manifest.location(&table.name.span);
            return Err(Error::from(diagnostic).with_location(location));
        }
        if let Some(node) = graph.find(name) {
            let objects = compile::objects(units);
            shared_build.build(&plan.node_plan(node), &objects, directives)?;
        }
    }
    Ok(())
}

/// Name for `-l` of a library's archive. An archive built elsewhere gets a link in `lib`.
fn link_name(library: &DeviceLibrary, lib: &Path) -> Result<String, Error> {
    let package = library.package.split(' ').next().unwrap_or_default();
    let name = archive_name(package, &library.name);
    let path = lib.join(format!("lib{name}.a"));
    if path != library.archive {
        files::link(&library.archive, &path)?;
    }
    Ok(name)
}
