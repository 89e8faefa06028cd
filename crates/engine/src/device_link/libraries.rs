//! The RDC libraries of a package: checked, compiled, archived, linked and announced to dependents.

use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::device_link::{plan, shared_launches};
use gpustub_core::diag::{IO_ERROR, UNKNOWN_DEVICE_LIBRARY, has_errors};
use gpustub_core::directives::Directive;
use gpustub_core::manifest::{DeviceCode, DeviceLink, DeviceModule, LibraryType};
use gpustub_core::suggest::nearest;
use gpustub_core::text::join;

use super::closure::{inherited, upstream};
use super::compile::{Made, Unit};
use super::context::{BuildContext, Context};
use super::jobs::Tokens;
use super::metadata::{self, Library, Object, Stubs};
use super::nvcc::Nvcc;
use super::sources::{self, is_generated};
use super::{compile, disabled, graph, modules, shared};
use crate::error::Error;
use crate::files;
use crate::toolchain::Index;

/// Builds the RDC libraries and modules of a package. Returns its libraries and all of its
/// dependencies.
pub(super) fn build_all(
    context: &Context,
    declared: &[&DeviceLink],
    modules: &[&DeviceModule],
    directives: &mut Vec<Directive>,
) -> Result<Vec<Library>, Error> {
    let foreign = upstream(context.env)?;
    if declared.is_empty() && modules.is_empty() {
        return Ok(foreign);
    }
    let dir = context.out.join("device-link");
    let lib = dir.join("lib");
    std::fs::create_dir_all(&lib).map_err(|e| Error::io("create the directory", &lib, &e))?;

    let mut own: Vec<Library> = Vec::new();
    for library in declared {
        shared::check(library)?;
        included(context, library)?;
        own.push(describe(context, library, &foreign, &lib)?);
    }
    let tables_of_modules = || modules.iter().map(|module| &module.library);
    for library in declared.iter().copied().chain(tables_of_modules()) {
        require(context, library, &own, &foreign)?;
    }
    for module in tables_of_modules() {
        included(context, module)?;
        own.push(describe(context, module, &foreign, &dir.join("modules"))?);
    }

    // Tables that must be compiled, if there is a compiler; elsewhere none is of use.
    let unsupported = context.env.target()?.check_device_link();
    let is_supported = unsupported.is_none();
    let compiled = |library: &&DeviceLink| match library.code {
        DeviceCode::Sources(_) => true,
        DeviceCode::External { .. } => !is_supported,
        DeviceCode::Headers => false,
    };
    let mut wanted: Vec<&DeviceLink> = declared.iter().copied().filter(compiled).collect();
    wanted.extend(tables_of_modules());
    if !wanted.is_empty() {
        let target = context.env.cargo_text("TARGET")?;
        let host = context.env.cargo_text("HOST")?;
        let found = match unsupported {
            Some(error) => Err(Error::from(error)),
            None => Nvcc::find(context.env, &target, &host),
        };
        match found {
            Ok(nvcc) => {
                let libraries = &wanted[..wanted.len() - modules.len()];
                let tables = (libraries, modules);
                build(context, &nvcc, tables, &mut own, &foreign, &dir, directives)?;
            }
            Err(missing) if wanted.iter().all(|library| library.optional) => {
                let names: Vec<_> = wanted.iter().map(|l| l.name.value.as_str()).collect();
                for library in own.iter_mut().filter(|l| names.contains(&&*l.name)) {
                    library.built = false;
                }
                let text = format!("device-link.{} is left out: {missing}", join(&names, ", "));
                directives.extend(text.lines().map(|line| Directive::Warning(line.to_owned())));
            }
            Err(missing) => return Err(missing),
        }
    }

    for library in own.iter().filter(|library| library.built) {
        directives.push(Directive::Cfg(format!(
            "gpustub_device_link={:?}",
            library.name
        )));
    }
    // Programs and dependents are not linked with modules.
    own.truncate(declared.len());
    let mut link_names = Vec::new();
    for (library, declared) in own.iter().zip(declared) {
        if !library.built {
            continue;
        }
        if let DeviceCode::External { .. } = declared.code {
            let files = [&library.middle, &library.r#final].into_iter().flatten();
            let files = files.chain([&library.archive]);
            // The script's own files are newer than its start, which cargo compares with.
            for file in files.filter(|file| !file.starts_with(context.out_dir())) {
                directives.push(Directive::RerunIfChanged(files::text(file)?));
            }
        }
        if library.archive.as_os_str().is_empty() {
            continue;
        }
        link_names.push(match &library.middle {
            Some(middle) => {
                shared::link_into(library, &lib)?;
                ("dylib", shared::link_name(middle, &library.name, &lib)?)
            }
            None => ("static", link_name(library, &lib)?),
        });
    }
    if !link_names.is_empty() {
        directives.push(Directive::LinkSearch(files::text(&lib)?));
        for (kind, name) in link_names {
            directives.push(Directive::LinkLib(kind.to_owned(), name));
        }
        // nvcc's host code is C++. Linkers that resolve from left to right need libstdc++ after it.
        directives.push(Directive::LinkLib("dylib".to_owned(), "stdc++".to_owned()));
    }

    // Dependents learn the closure from their direct dependencies only.
    let mut all = own;
    all.reverse();
    for library in foreign {
        if !all.contains(&library) {
            all.push(library);
        }
    }
    let path = dir.join("libraries");
    files::write_if_changed(&path, metadata::render(&all)?.as_bytes())?;
    if context.env.get("CARGO_MANIFEST_LINKS").is_some() {
        let key = metadata::KEY.to_owned();
        directives.push(Directive::Metadata(key, files::text(&path)?));
    }
    Ok(all)
}

/// A library before it is built.
fn describe(
    context: &Context,
    declared: &DeviceLink,
    foreign: &[Library],
    lib: &Path,
) -> Result<Library, Error> {
    let name = &declared.name.value;
    let under = |path: &str| context.directories().resolve(path).unwrap_or_default();
    let package = context.env.cargo_text("CARGO_PKG_NAME")?;
    let version = context.env.cargo_text("CARGO_PKG_VERSION")?;
    let archive = match &declared.code {
        DeviceCode::Headers => PathBuf::new(),
        DeviceCode::Sources(_) => lib.join(format!("lib{}.a", unique(&package, name))),
        DeviceCode::External { prebuilt, .. } => under(&prebuilt.value),
    };
    let (middle, r#final) = match &declared.code {
        DeviceCode::External {
            prebuilt_shared, ..
        } => (
            prebuilt_shared
                .as_ref()
                .map(|files| under(&files.middle.value)),
            prebuilt_shared
                .as_ref()
                .map(|files| under(&files.r#final.value)),
        ),
        DeviceCode::Sources(_) if declared.library_type == LibraryType::Shared => (
            Some(lib.join(format!("lib{name}.so"))),
            Some(lib.join(format!("lib{name}_final.so"))),
        ),
        _ => (None, None),
    };
    if let DeviceCode::External {
        prebuilt: named, ..
    } = &declared.code
    {
        if !archive.is_file() {
            return Err(Error::new(
                &IO_ERROR,
                format!("device-link.{name}: {} does not exist", archive.display()),
            )
            .with_location(context.manifest.location(&named.span))
            .help("`prebuilt` names the output of another build; run that build first"));
        }
    }
    Ok(Library {
        name: name.clone(),
        package: format!("{package} {version}"),
        built: true,
        archive,
        sources: Vec::new(),
        archs: declared.archs.iter().map(|a| a.value).collect(),
        cudart: declared.cudart,
        cudadevrt: declared.cudadevrt,
        stubs: stubs(context, declared, foreign),
        library_type: declared.library_type,
        middle,
        r#final,
        include_dirs: declared
            .include_dirs
            .iter()
            .filter_map(|dir| context.directories().resolve(&dir.value))
            .collect(),
        defines: declared
            .defines
            .iter()
            .map(|(name, value)| {
                if value.value.is_empty() {
                    name.clone()
                } else {
                    format!("{name}={}", value.value)
                }
            })
            .collect(),
        compile_options: declared
            .compile_options
            .iter()
            .map(|f| f.value.clone())
            .collect(),
        requires: declared.requires.iter().map(|r| r.value.clone()).collect(),
    })
}

/// Stubs of the CUDA runtime that a library calls: without own ones, the shared stubs of a dependency.
/// Files that were built elsewhere may need the toolkit's runtime.
fn stubs(context: &Context, declared: &DeviceLink, foreign: &[Library]) -> Stubs {
    let is_shared = |library: &Library| matches!(library.stubs, Stubs::Shared(_));
    match declared.code {
        DeviceCode::Sources(_) if context.stubs == Stubs::None && foreign.iter().any(is_shared) => {
            Stubs::External
        }
        _ => context.stubs.clone(),
    }
}

/// Rejects missing header directories here: otherwise the error would appear in another package
/// that includes a header. Directories of the build script may be created later.
fn included(context: &Context, library: &DeviceLink) -> Result<(), Error> {
    for dir in &library.include_dirs {
        if is_generated(&dir.value) || context.package.join(&dir.value).is_dir() {
            continue;
        }
        let text = format!(
            "`include-dirs` of device-link.{}: directory `{}` does not exist",
            library.name.value, dir.value
        );
        return Err(Error::new(&IO_ERROR, text)
            .with_location(context.manifest.location(&dir.span))
            .help(format!(
                "the path is relative to {}; `$OUT_DIR/…` is a directory of the build script",
                context.package.display()
            )));
    }
    Ok(())
}

/// Rejects a library that requires one which no visible package declares.
fn require(
    context: &Context,
    library: &DeviceLink,
    own: &[Library],
    foreign: &[Library],
) -> Result<(), Error> {
    for name in &library.requires {
        let known = |all: &[Library]| all.iter().any(|other| other.name == name.value);
        if known(own) || known(foreign) {
            continue;
        }
        let others = own.iter().chain(foreign).map(|other| other.name.clone());
        let mut names: Vec<_> = others
            .filter(|other| *other != library.name.value)
            .collect();
        names.sort();
        names.dedup();
        let feature = disabled::feature_of(&name.value, context.env, context.disabled);
        let help = if let Some(feature) = feature {
            format!(
                "the library requires the cargo feature `{feature}` of its package, which is off"
            )
        } else if let Some(meant) = nearest(&name.value, names.iter().map(String::as_str)) {
            format!("did you mean `{meant}`?")
        } else {
            let visible = if names.is_empty() {
                "no library is visible".to_owned()
            } else {
                format!("visible libraries: {}", join(&names, ", "))
            };
            format!(
                "add the package that declares it to [dependencies], not to [dev-dependencies]; run \
                 `cargo gpustub sync` to add the `links` key; {visible}"
            )
        };
        return Err(Error::new(
            &UNKNOWN_DEVICE_LIBRARY,
            format!(
                "device-link.{} requires `{}`, which neither this package nor a direct dependency declares",
                library.name.value, name.value
            ),
        )
        .with_location(context.manifest.location(&name.span))
        .help(help));
    }
    Ok(())
}

/// Compiles and archives, and links what is not linked with programs.
fn build(
    context: &Context,
    nvcc: &Nvcc,
    (wanted, modules): (&[&DeviceLink], &[&DeviceModule]),
    own: &mut [Library],
    foreign: &[Library],
    dir: &Path,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let opt_level = context.env.cargo_text("OPT_LEVEL")?;
    let step = BuildContext {
        context,
        own,
        modules,
        foreign,
        out: dir,
        nvcc,
        opt_level: &opt_level,
        debug: context.env.cargo_text("DEBUG")? == "true",
    };
    let mut units = Vec::new();
    let mut objects = Vec::new();
    let mut sources = Vec::new();
    for library in wanted {
        let DeviceCode::Sources(patterns) = &library.code else {
            continue;
        };
        let inherited = inherited(&library.name.value, own, foreign);
        let new = compile::units(&step, library, patterns, &inherited, Made::Object)?;
        objects.push(
            new.iter()
                .map(|unit| unit.object.clone())
                .collect::<Vec<_>>(),
        );
        sources.push(new.iter().map(Unit::names).collect::<Vec<_>>());
        units.extend(new);
    }
    let mut outputs = Vec::new();
    for module in modules {
        let new = modules::units(&step, module)?;
        outputs.push(new.iter().map(Unit::output).collect::<Vec<_>>());
        units.extend(new);
    }
    let tables = wanted
        .iter()
        .copied()
        .chain(modules.iter().map(|m| &m.library));
    for library in tables {
        if let DeviceCode::Sources(patterns) = &library.code {
            let watched = sources::watched(patterns.iter().map(|pattern| pattern.value.as_str()));
            directives.extend(watched.into_iter().map(Directive::RerunIfChanged));
        }
    }
    let jobs = context.env.cargo_text("NUM_JOBS")?.parse().unwrap_or(1);
    let tokens = Tokens::new(jobs)
        .map_err(|e| Error::new(&IO_ERROR, format!("cargo's jobserver cannot be used: {e}")))?;
    let compiled = compile::run(&step, units, tokens)?;
    let said = compiled
        .said
        .into_iter()
        .filter(|line| !line.trim().is_empty());
    directives.extend(said.map(Directive::Warning));
    let committed = |path: &PathBuf| !path.starts_with(context.out_dir());
    for path in compiled.read.into_iter().filter(committed) {
        // Files of the package are named as in GpuStub.toml, so that the directory can be moved.
        let path = path.strip_prefix(context.package).unwrap_or(&path);
        directives.push(Directive::RerunIfChanged(files::text(path)?));
    }
    directives.extend(nvcc.watched()?);
    directives.extend(nvcc.warnings());
    let tools = (context.tools)()?;
    for ((library, objects), sources) in wanted.iter().zip(&objects).zip(sources) {
        let found = own.iter_mut().find(|l| l.name == library.name.value);
        if let Some(built) = found {
            compile::archive(&tools, &built.archive, objects, Index::Write)?;
            let object = |(member, source)| Object {
                member,
                source: context.package.join(source),
            };
            built.sources = sources.into_iter().map(object).collect();
        }
    }
    for (module, outputs) in modules.iter().zip(outputs) {
        let step = modules::ModuleBuild {
            context,
            nvcc,
            dir,
            foreign,
            tools: &tools,
        };
        step.build(module, outputs, own, directives)?;
    }
    let shared = wanted.iter().zip(&objects);
    let mut shared: Vec<_> = shared
        .filter(|(l, _)| l.library_type == LibraryType::Shared)
        .collect();
    if shared.is_empty() {
        return Ok(());
    }
    // A required library has fewer libraries below it than a library that requires it.
    shared.sort_by_key(|(library, _)| inherited(&library.name.value, own, foreign).len());
    let mut all = own.to_vec();
    all.extend(foreign.iter().cloned());
    let graph = graph::from_libraries(&all);
    let (plan, found) = plan(&graph);
    if has_errors(&found) {
        return Err(Error::from_diagnostics(&found, &ByName::default()));
    }
    let shared_build = shared::SharedBuild {
        context,
        nvcc,
        dir,
        all: &all,
    };
    for (library, objects) in shared {
        let required = inherited(&library.name.value, own, foreign);
        if let Some(devrt) = required.iter().find(|required| required.cudadevrt) {
            let refused = shared_launches(&library.name.value, &devrt.name);
            let location = context.manifest.location(&library.name.span);
            return Err(Error::from(Box::new(refused)).with_location(location));
        }
        if let Some(at) = graph.find(&library.name.value) {
            shared_build.build(&plan.planned(at), objects, directives)?;
        }
    }
    Ok(())
}

/// Name for `-l` of a library's archive. An archive built elsewhere gets a link in `lib`.
fn link_name(library: &Library, lib: &Path) -> Result<String, Error> {
    let package = library.package.split(' ').next().unwrap_or_default();
    let name = unique(package, &library.name);
    let path = lib.join(format!("lib{name}.a"));
    if path != library.archive {
        files::link(&library.archive, &path)?;
    }
    Ok(name)
}

/// rustc unpacks the archives of all crates into one directory by their names, so no two may share one.
fn unique(package: &str, library: &str) -> String {
    format!("gpustub_rdc_{package}_{library}").replace('-', "_")
}
