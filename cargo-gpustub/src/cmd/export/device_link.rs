//! `cargo gpustub export device-link`: RDC libraries of a package, for builds without cargo.
//!
//! ```text
//! DIR/lib                      shared libraries, which find each other by $ORIGIN, and archives
//! DIR/include/<library>        headers
//! DIR/lib/cmake/<package>      files for find_package(<package>), and a list of all files
//! ```

mod cmake;
mod installed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Message, Package};
use gpustub_engine::device_link::metadata::{DeviceLibrary, parse};
use gpustub_engine::device_link::{HIP_SOURCES, check_loadable};
use gpustub_engine::toolchain::shared::link_file;
use gpustub_workspace::cargo;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::edit::templates;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::{Depth, Workspace};
use serde_json::json;

use super::install::install;
use crate::cli;
use crate::compile::engine_error;
use installed::{all_stubs, file_name, has_code, static_name};

/// Maximum number of headers: with more, `include-dirs` probably names a system directory.
const MAX_HEADERS: usize = 5000;

/// Functions of CMake, which do not depend on the package.
const FUNCTIONS: [&str; 5] = [
    "gpustub-device-link.cmake",
    "gpustub-device-archs.cmake",
    "gpustub-device-graph.cmake",
    "gpustub-device-hip.cmake",
    "gpustub-check-image.cmake",
];

/// Files below the prefix, with the source or the text of each.
type Files = BTreeMap<String, Content>;

enum Content {
    Copy(PathBuf),
    Text(String),
}

/// Runs the command.
pub fn run(options: &cli::ExportDeviceLink, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let package = workspace.selected_package(|package: &Package| {
        let declared = Declared::read(&workspace, package);
        declared.is_ok_and(|declared| declared.is_some_and(|declared| declared.has_rdc()))
    })?;
    let libraries = build_libraries(options, package)?;
    let files = files(package, &libraries)?;
    let Some(prefix) = options.prefix.as_ref().filter(|_| !options.list) else {
        shell.data(
            files
                .keys()
                .map(|path| format!("{path}\n"))
                .collect::<String>(),
        )?;
        return Ok(true);
    };
    // CMake resolves a relative directory below the project that uses it.
    let root = std::path::absolute(prefix).map_err(|e| Error::io("find", prefix, &e))?;
    let stale = stale_files(&root, package, &files);
    let mut operations = Vec::new();
    for (name, content) in files {
        let path = root.join(name);
        let display_path = slashes(&path);
        operations.push(match content {
            Content::Copy(source) => Operation::write(path, display_path, read(&source)?)?,
            Content::Text(text) => Operation::write(path, display_path, text)?,
        });
    }
    install(operations, &root, shell)?;
    check_installed(&libraries, &root.join("lib"))?;
    if !stale.is_empty() {
        shell.note(format!(
            "stale files from an earlier export: {}",
            stale.join(", ")
        ));
    }
    shell.note(format!(
        "next: `find_package({})` with -DCMAKE_PREFIX_PATH=\"{}\"",
        package.name,
        slashes(&root)
    ));
    Ok(true)
}

/// Reads the installed libraries again, as a program loads them: a final, with all that it requires.
fn check_installed(libraries: &[DeviceLibrary], lib: &Path) -> Result<()> {
    for library in libraries {
        let Some(r#final) = &library.r#final else {
            continue;
        };
        let mut process = vec![lib.join(file_name(r#final))];
        for required in required(library, libraries) {
            let stubs = all_stubs(required, libraries);
            for file in required.middle.as_deref().into_iter().chain(stubs) {
                process.push(lib.join(file_name(file)));
            }
        }
        check_loadable(&process, library.built).map_err(engine_error)?;
    }
    Ok(())
}

/// A library, and all that it requires.
fn required<'a>(
    library: &'a DeviceLibrary,
    libraries: &'a [DeviceLibrary],
) -> Vec<&'a DeviceLibrary> {
    let mut closure = vec![library];
    let mut index = 0;
    while let Some(library) = closure.get(index).copied() {
        for name in &library.requires {
            let required = libraries.iter().find(|library| library.name == *name);
            if let Some(required) = required.filter(|required| !closure.contains(required)) {
                closure.push(required);
            }
        }
        index += 1;
    }
    closure
}

/// Existing files of an earlier export that `files` does not contain. These are not removed, as other
/// packages may have installed the same file.
fn stale_files(root: &Path, package: &Package, files: &Files) -> Vec<String> {
    fs::read_to_string(root.join(list_name(package)))
        .unwrap_or_default()
        .lines()
        .filter(|name| !files.contains_key(*name) && root.join(name).is_file())
        .map(str::to_owned)
        .collect()
}

/// Path of the list of all files, below the prefix.
fn list_name(package: &Package) -> String {
    format!("lib/cmake/{0}/{0}-files.txt", package.name)
}

/// Runs the build scripts with cargo, and reads the output of the package's.
fn build_libraries(
    options: &cli::ExportDeviceLink,
    package: &Package,
) -> Result<Vec<DeviceLibrary>> {
    // No Rust code is installed.
    let mut command = cargo::check(package.manifest_path.as_std_path());
    options.cargo.add_features(&mut command);
    command.args(options.cargo.cargo_arguments());
    command.args(options.release.then_some("--release"));
    for (flag, value) in [
        ("--profile", &options.profile),
        ("--target", &options.target),
    ] {
        if let Some(value) = value {
            command.args([flag, value]);
        }
    }
    let output = cargo::output(&mut command)?;
    if !output.status.success() {
        return Err(Error::new(format!("could not build `{}`", package.name))
            .help("see the errors of cargo above"));
    }
    let list = Message::parse_stream(output.stdout.as_slice())
        .filter_map(|message| match message {
            Ok(Message::BuildScriptExecuted(script)) if script.package_id == package.id => {
                let out_dir = script.out_dir.into_std_path_buf();
                Some(out_dir.join("gpustub/device-link/libraries"))
            }
            _ => None,
        })
        .filter(|list| list.is_file())
        .last();
    let Some(list) = list else {
        return Err(Error::new(format!(
            "the build script of `{}` built no [device-link.*] library",
            package.name
        ))
        .help("name a package that declares some with `-p`"));
    };
    let text = fs::read_to_string(&list).map_err(|e| Error::io("read", &list, &e))?;
    let libraries = parse(&list, &text).map_err(engine_error)?;
    if let Some(left_out) = libraries.iter().find(|library| !library.built) {
        return Err(Error::new(format!(
            "device-link.{} was left out: a compiler for its `archs` is missing",
            left_out.name
        ))
        .help("install the CUDA toolkit, or set CUDA_HOME; for AMD ROCm, or ROCM_PATH"));
    }
    Ok(libraries)
}

fn files(package: &Package, libraries: &[DeviceLibrary]) -> Result<Files> {
    let mut files = Files::new();
    for library in libraries {
        if has_code(library) {
            add_file(&mut files, static_name(library), &library.archive)?;
        }
        let mut shared: Vec<PathBuf> = Vec::new();
        shared.extend(library.middle.clone());
        shared.extend(library.r#final.clone());
        for stubs in all_stubs(library, libraries) {
            shared.push(stubs.to_owned());
            shared.push(link_file(stubs));
        }
        for path in shared {
            add_file(&mut files, format!("lib/{}", file_name(&path)), &path)?;
        }
        for dir in &library.include_dirs {
            add_headers(&mut files, &library.name, dir)?;
        }
    }
    add_cmake_files(&mut files, package, libraries)?;
    let list = list_name(package);
    let mut lines: Vec<String> = files
        .keys()
        .chain([&list])
        .map(|name| format!("{name}\n"))
        .collect();
    lines.sort();
    files.insert(list, Content::Text(lines.concat()));
    Ok(files)
}

/// Adds the files for `find_package`.
fn add_cmake_files(
    files: &mut Files,
    package: &Package,
    libraries: &[DeviceLibrary],
) -> Result<()> {
    let data = cmake::package_data(package, libraries)?;
    let config = templates::render("export/device-link/config.cmake", &data);
    let prefix = format!("lib/cmake/{0}/{0}", package.name);
    files.insert(format!("{prefix}-config.cmake"), Content::Text(config));
    for name in FUNCTIONS {
        let text = templates::render(&format!("export/device-link/{name}"), &json!({}));
        let path = format!("lib/cmake/{}/{name}", package.name);
        files.insert(path, Content::Text(text));
    }
    // Of several packages, one has the functions for all.
    for (name, text) in HIP_SOURCES {
        let path = format!("lib/cmake/{}/{name}", package.name);
        files.insert(path, Content::Text(text.to_owned()));
    }
    let version = &package.version;
    let compatible = match (version.major, version.minor) {
        (0, 0) => version.to_string(),
        (0, minor) => format!("0.{minor}"),
        (major, _) => major.to_string(),
    };
    let data = json!({ "version": version.to_string(), "compatible": compatible });
    let text = templates::render("export/device-link/config-version.cmake", &data);
    let path = format!("{prefix}-config-version.cmake");
    files.insert(path, Content::Text(text));
    Ok(())
}

/// Adds a file. Two different files of one name are an error.
fn add_file(files: &mut Files, name: String, source: &Path) -> Result<()> {
    let previous = files.insert(name.clone(), Content::Copy(source.to_owned()));
    let Some(Content::Copy(previous)) = previous else {
        return Ok(());
    };
    if previous == source || read(&previous)? == read(source)? {
        return Ok(());
    }
    Err(Error::new(format!(
        "`{name}` would be two files: {} and {}",
        slashes(&previous),
        slashes(source)
    ))
    .help("give one of them another name"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| Error::io("read", path, &e))
}

/// Adds all files below `dir`, without following links to directories.
fn add_headers(files: &mut Files, library: &str, dir: &Path) -> Result<()> {
    let mut directories = vec![dir.to_owned()];
    let mut count = 0;
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).map_err(|e| Error::io("read", &directory, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("read", &directory, &e))?;
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
                continue;
            }
            count += 1;
            if count > MAX_HEADERS {
                return Err(Error::new(format!(
                    "device-link.{library}: more than {MAX_HEADERS} files in {}",
                    slashes(dir)
                ))
                .help("name only directories of the library's own headers in `include-dirs`"));
            }
            if path.is_file() {
                let header = slashes(path.strip_prefix(dir).unwrap_or(&path));
                add_file(files, format!("include/{library}/{header}"), &path)?;
            }
        }
    }
    Ok(())
}
