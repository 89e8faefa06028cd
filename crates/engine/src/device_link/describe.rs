//! The RDC libraries of a package as its tables declare them, before they are built.

use std::path::{Path, PathBuf};

use gpustub_core::diag::{IO_ERROR, UNKNOWN_DEVICE_LIBRARY};
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::manifest::{DeviceCode, DeviceLink, DeviceModule, LibraryType, Spanned};
use gpustub_core::suggest::nearest;
use gpustub_core::text::join;

use super::context::Context;
use super::metadata::{DeviceLibrary, Stubs};
use super::sources::is_generated;
use super::{disabled, shared};
use crate::error::Error;

/// The libraries of a package, and its modules behind them, before they are built.
pub(super) fn describe_all(
    context: &Context,
    tables: &[&DeviceLink],
    modules: &[&DeviceModule],
    dependencies: &[DeviceLibrary],
    dir: &Path,
) -> Result<Vec<DeviceLibrary>, Error> {
    let mut libraries = Vec::new();
    for table in tables {
        shared::check(table)?;
        check_include_dirs(context, table)?;
        libraries.push(describe(context, table, dependencies, &dir.join("lib"))?);
    }
    for table in tables {
        check_requires(context, table, &libraries, dependencies)?;
    }
    for module in modules {
        check_requires(context, &module.library, &libraries, dependencies)?;
    }
    for module in modules {
        let table = &module.library;
        check_include_dirs(context, table)?;
        libraries.push(describe(
            context,
            table,
            dependencies,
            &dir.join("modules"),
        )?);
    }
    Ok(libraries)
}

/// A library before it is built.
fn describe(
    context: &Context,
    table: &DeviceLink,
    dependencies: &[DeviceLibrary],
    lib: &Path,
) -> Result<DeviceLibrary, Error> {
    let name = &table.name.value;
    let package = context.env.cargo_text("CARGO_PKG_NAME")?;
    let version = context.env.cargo_text("CARGO_PKG_VERSION")?;
    let archive = match &table.code {
        DeviceCode::Headers => PathBuf::new(),
        DeviceCode::Sources(_) => lib.join(format!("lib{}.a", archive_name(&package, name))),
        DeviceCode::External { prebuilt, .. } => resolve(context, prebuilt),
    };
    match &table.code {
        DeviceCode::External { prebuilt, .. } if !archive.is_file() => {
            return Err(Error::new(
                &IO_ERROR,
                format!("device-link.{name}: {} does not exist", archive.display()),
            )
            .with_location(context.manifest.location(&prebuilt.span))
            .help("`prebuilt` names the output of another build; run that build first"));
        }
        _ => {}
    }
    let (middle, r#final) = shared_files(context, table, lib).unzip();
    let mut library = DeviceLibrary {
        name: name.clone(),
        package: format!("{package} {version}"),
        built: true,
        archive,
        archs: table.archs.iter().map(|arch| arch.value).collect(),
        cudart: table.cudart,
        cudadevrt: table.cudadevrt,
        stubs: stubs(context, table, dependencies, Vendor::Nvidia),
        hip_stubs: stubs(context, table, dependencies, Vendor::Amd),
        library_type: table.library_type,
        middle,
        r#final,
        ..DeviceLibrary::default()
    };
    for dir in &table.include_dirs {
        let dir = context.directories().resolve(&dir.value);
        library.include_dirs.extend(dir);
    }
    for (name, value) in &table.defines {
        library.defines.push(if value.value.is_empty() {
            name.clone()
        } else {
            format!("{name}={}", value.value)
        });
    }
    for option in &table.compile_options {
        library.compile_options.push(option.value.clone());
    }
    for required in &table.requires {
        library.requires.push(required.value.clone());
    }
    Ok(library)
}

/// A path of `GpuStub.toml` in the build script, where `OUT_DIR` is known.
fn resolve(context: &Context, path: &Spanned<String>) -> PathBuf {
    let path = context.directories().resolve(&path.value);
    path.unwrap_or_default()
}

/// Middle and final of a library that is shared.
fn shared_files(context: &Context, table: &DeviceLink, lib: &Path) -> Option<(PathBuf, PathBuf)> {
    let name = &table.name.value;
    match &table.code {
        DeviceCode::External {
            prebuilt_shared, ..
        } => {
            let files = prebuilt_shared.as_ref()?;
            Some((
                resolve(context, &files.middle),
                resolve(context, &files.r#final),
            ))
        }
        DeviceCode::Sources(_) if table.library_type == LibraryType::Shared => Some((
            lib.join(format!("lib{name}.so")),
            lib.join(format!("lib{name}_final.so")),
        )),
        _ => None,
    }
}

/// Stubs of a runtime that a library calls: without own ones, the shared stubs of a dependency.
/// Files that were built elsewhere may need the runtime itself.
fn stubs(
    context: &Context,
    table: &DeviceLink,
    dependencies: &[DeviceLibrary],
    vendor: Vendor,
) -> Stubs {
    let stubs = context.stubs(vendor);
    let mut dependencies = dependencies.iter();
    match table.code {
        DeviceCode::Sources(_)
            if *stubs == Stubs::None
                && dependencies.any(|library| library.shared_stubs(vendor).is_some()) =>
        {
            Stubs::External
        }
        _ => stubs.clone(),
    }
}

/// Rejects missing header directories here: otherwise the error would appear in another package
/// that includes a header. Directories of the build script may be created later.
fn check_include_dirs(context: &Context, table: &DeviceLink) -> Result<(), Error> {
    for dir in &table.include_dirs {
        if is_generated(&dir.value) || context.package.join(&dir.value).is_dir() {
            continue;
        }
        let text = format!(
            "`include-dirs` of device-link.{}: directory `{}` does not exist",
            table.name.value, dir.value
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
fn check_requires(
    context: &Context,
    table: &DeviceLink,
    libraries: &[DeviceLibrary],
    dependencies: &[DeviceLibrary],
) -> Result<(), Error> {
    for required in &table.requires {
        let is_visible = libraries
            .iter()
            .chain(dependencies)
            .any(|library| library.name == required.value);
        if is_visible {
            continue;
        }
        let message = format!(
            "device-link.{} requires `{}`, which neither this package nor a direct dependency declares",
            table.name.value, required.value
        );
        return Err(Error::new(&UNKNOWN_DEVICE_LIBRARY, message)
            .with_location(context.manifest.location(&required.span))
            .help(unknown_library_help(
                context,
                table,
                &required.value,
                libraries,
                dependencies,
            )));
    }
    Ok(())
}

/// Next step for a table that requires a library which is not visible.
fn unknown_library_help(
    context: &Context,
    table: &DeviceLink,
    required: &str,
    libraries: &[DeviceLibrary],
    dependencies: &[DeviceLibrary],
) -> String {
    if let Some(feature) = disabled::feature_of(required, context.env, context.disabled) {
        return format!(
            "the library requires the cargo feature `{feature}` of its package, which is off"
        );
    }
    let mut names: Vec<_> = libraries
        .iter()
        .chain(dependencies)
        .map(|library| library.name.as_str())
        .filter(|name| *name != table.name.value)
        .collect();
    names.sort();
    names.dedup();
    if let Some(name) = nearest(required, names.iter().copied()) {
        return format!("did you mean `{name}`?");
    }
    let visible = if names.is_empty() {
        "no library is visible".to_owned()
    } else {
        format!("visible libraries: {}", join(&names, ", "))
    };
    format!(
        "add the package that declares it to [dependencies], not to [dev-dependencies]; run \
         `cargo gpustub sync` to add the `links` key; {visible}"
    )
}

/// rustc unpacks the archives of all crates into one directory by their names, so no two may share one.
pub(super) fn archive_name(package: &str, library: &str) -> String {
    format!("gpustub_rdc_{package}_{library}").replace('-', "_")
}
