//! `cargo gpustub export device-link`: RDC libraries of a package, for builds without cargo.
//!
//! ```text
//! DIR/lib                      shared libraries, which find each other by $ORIGIN, and archives
//! DIR/include/<library>        headers
//! DIR/lib/cmake/<package>      files for find_package(<package>), and a list of all files
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Message, Package};
use gpustub_core::gpu_arch::{Arch, ArchKind};
use gpustub_core::manifest::Cudart;
use gpustub_engine::device_link::metadata::{Library, Stubs, parse};
use gpustub_engine::toolchain;
use gpustub_workspace::cargo;
use gpustub_workspace::edit::templates;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::{Depth, Workspace};
use serde_json::{Value, json};

use super::install::install;
use crate::cli;
use crate::compile::engine_error;

/// Maximum number of headers: with more, `include-dirs` probably names a system directory.
const MAX_HEADERS: usize = 5000;

/// Functions of CMake, which do not depend on the package.
const FUNCTIONS: [&str; 2] = ["gpustub-device-link.cmake", "gpustub-device-graph.cmake"];

/// Files below the prefix, with the source or the text of each.
type Files = BTreeMap<String, Content>;

enum Content {
    Copy(PathBuf),
    Text(String),
}

/// Runs the command.
pub fn run(options: &cli::ExportDeviceLink, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let has_libraries = |package: &Package| {
        Declared::read(&workspace, package).is_ok_and(|one| one.is_some_and(|one| one.has_rdc()))
    };
    let package = workspace.selected_one(has_libraries)?;
    let libraries = built(options, package)?;
    let files = files(package, &libraries)?;
    let Some(prefix) = options.prefix.as_ref().filter(|_| !options.list) else {
        let lines = files.keys().map(|path| format!("{path}\n"));
        shell.data(lines.collect::<String>())?;
        return Ok(true);
    };
    // CMake resolves a relative directory below the project that uses it.
    let root = std::path::absolute(prefix).map_err(|e| Error::io("find", prefix, &e))?;
    let stale = stale(&root, package, &files);
    let mut operations = Vec::new();
    for (path, content) in files {
        let path = root.join(path);
        let shown = path.display().to_string();
        operations.push(match content {
            Content::Copy(from) => {
                let bytes = fs::read(&from).map_err(|e| Error::io("read", &from, &e))?;
                Operation::write(path, shown, bytes)?
            }
            Content::Text(text) => Operation::write(path, shown, text)?,
        });
    }
    install(operations, &root, shell)?;
    if !stale.is_empty() {
        shell.note(format!(
            "stale files from an earlier export: {}",
            stale.join(", ")
        ));
    }
    shell.note(format!(
        "next: `find_package({})` with -DCMAKE_PREFIX_PATH=\"{}\"",
        package.name,
        root.display()
    ));
    Ok(true)
}

/// Existing files of an earlier export that `files` does not contain. These are not removed, as other
/// packages may have installed the same file.
fn stale(root: &Path, package: &Package, files: &Files) -> Vec<String> {
    let list = root.join(list_name(package));
    let old = fs::read_to_string(list).unwrap_or_default();
    old.lines()
        .filter(|name| !files.contains_key(*name) && root.join(name).is_file())
        .map(str::to_owned)
        .collect()
}

/// Path of the list of all files, below the prefix.
fn list_name(package: &Package) -> String {
    format!("lib/cmake/{0}/{0}-files.txt", package.name)
}

/// Runs the build scripts with cargo, and reads the output of the package's.
fn built(options: &cli::ExportDeviceLink, package: &Package) -> Result<Vec<Library>> {
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
    let messages = Message::parse_stream(output.stdout.as_slice()).filter_map(|m| m.ok());
    let list = messages.filter_map(|message| match message {
        Message::BuildScriptExecuted(ran) if ran.package_id == package.id => {
            let dir = ran.out_dir.into_std_path_buf();
            Some(dir.join("gpustub/device-link/libraries")).filter(|list| list.is_file())
        }
        _ => None,
    });
    let Some(list) = list.last() else {
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
            "device-link.{} was left out: no nvcc found",
            left_out.name
        ))
        .help("install the CUDA toolkit, or set CUDA_HOME"));
    }
    Ok(libraries)
}

fn files(package: &Package, libraries: &[Library]) -> Result<Files> {
    let mut files = Files::new();
    for library in libraries {
        if !library.archive.as_os_str().is_empty() {
            add(&mut files, static_name(library), &library.archive)?;
        }
        let mut shared: Vec<&Path> = Vec::new();
        shared.extend(library.middle.as_deref());
        shared.extend(library.r#final.as_deref());
        let link_file = stubs_of(library, libraries).map(toolchain::shared::link_file);
        if let Some(stubs) = stubs_of(library, libraries) {
            shared.push(stubs);
        }
        shared.extend(link_file.as_deref());
        for path in shared {
            add(&mut files, format!("lib/{}", file_name(path)), path)?;
        }
        for dir in &library.include_dirs {
            headers(&mut files, &library.name, dir)?;
        }
    }
    let cmake = format!("lib/cmake/{0}/{0}", package.name);
    let config = templates::render("export/device-link/config.cmake", &data(package, libraries));
    files.insert(format!("{cmake}-config.cmake"), Content::Text(config));
    for name in FUNCTIONS {
        let text = templates::render(&format!("export/device-link/{name}"), &json!({}));
        let path = format!("lib/cmake/{}/{name}", package.name);
        files.insert(path, Content::Text(text));
    }
    let version = &package.version;
    let compatible = match (version.major, version.minor) {
        (0, 0) => version.to_string(),
        (0, minor) => format!("0.{minor}"),
        (major, _) => major.to_string(),
    };
    let version = json!({ "version": version.to_string(), "compatible": compatible });
    let version = templates::render("export/device-link/config-version.cmake", &version);
    let name = format!("{cmake}-config-version.cmake");
    files.insert(name, Content::Text(version));
    let list = list_name(package);
    let names = files.keys().chain([&list]);
    let mut names: Vec<String> = names.map(|name| format!("{name}\n")).collect();
    names.sort();
    files.insert(list, Content::Text(names.concat()));
    Ok(files)
}

/// Adds a file. Two different files of one name are an error.
fn add(files: &mut Files, name: String, from: &Path) -> Result<()> {
    let old = files.insert(name.clone(), Content::Copy(from.to_owned()));
    let Some(Content::Copy(old)) =
        old.filter(|old| !matches!(old, Content::Copy(old) if old == from))
    else {
        return Ok(());
    };
    let read = |path: &Path| fs::read(path).map_err(|e| Error::io("read", path, &e));
    if read(&old)? == read(from)? {
        return Ok(());
    }
    Err(Error::new(format!(
        "`{name}` would be two files: {} and {}",
        old.display(),
        from.display()
    ))
    .help("give one of them another name"))
}

/// Adds all files below `dir`, without following links to directories.
fn headers(files: &mut Files, library: &str, dir: &Path) -> Result<()> {
    let mut waiting = vec![dir.to_owned()];
    let mut count = 0;
    while let Some(directory) = waiting.pop() {
        let entries = fs::read_dir(&directory).map_err(|e| Error::io("read", &directory, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("read", &directory, &e))?;
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
                continue;
            }
            count += 1;
            if count > MAX_HEADERS {
                return Err(Error::new(format!(
                    "device-link.{library}: more than {MAX_HEADERS} files in {}",
                    dir.display()
                ))
                .help("name only directories of the library's own headers in `include-dirs`"));
            }
            if path.is_file() {
                let below = path
                    .strip_prefix(dir)
                    .unwrap_or(&path)
                    .display()
                    .to_string();
                add(files, format!("include/{library}/{below}"), &path)?;
            }
        }
    }
    Ok(())
}

/// Data of the CMake template.
fn data(package: &Package, libraries: &[Library]) -> Value {
    let all: Vec<Value> = libraries
        .iter()
        .map(|library| {
            let include = if library.include_dirs.is_empty() {
                String::new()
            } else {
                format!("${{_gpustub_prefix}}/include/{}", library.name)
            };
            let flag = |flag: &String| format!("$<$<COMPILE_LANGUAGE:CUDA>:{}>", escaped(flag));
            json!({
                "name": library.name,
                "include": include,
                "defines": list(library.defines.iter().map(|define| escaped(define))),
                "flags": list(library.compile_options.iter().map(flag)),
                "targets": targets(package, library, libraries),
            })
        })
        .collect();
    let mut archs: Vec<Arch> = libraries.iter().flat_map(|l| l.archs.clone()).collect();
    archs.sort_unstable();
    archs.dedup();
    let mut stubs: Vec<&Path> = libraries
        .iter()
        .filter_map(|library| stubs_of(library, libraries))
        .collect();
    stubs.sort_unstable();
    stubs.dedup();
    let stubs = stubs.into_iter().map(|path| {
        json!({
            "target": stubs_target(package, path),
            "file": file_name(&toolchain::shared::link_file(path)),
            "soname": file_name(path),
        })
    });
    json!({
        "package": package.name,
        "runtime": libraries.iter().any(needs_toolkit),
        "archs": cmake_archs(&archs),
        "stubs": stubs.collect::<Vec<_>>(),
        "libraries": all,
    })
}

fn targets(package: &Package, library: &Library, all: &[Library]) -> Vec<Value> {
    let target = |name: &str, ending: &str| format!("{}::{name}{ending}", package.name);
    let has = |name: &String, wanted: &dyn Fn(&Library) -> bool| {
        all.iter().any(|other| other.name == *name && wanted(other))
    };
    let requires = |ending: &str, wanted: &dyn Fn(&Library) -> bool| {
        let names = library.requires.iter();
        let linked = names.map(|name| {
            if has(name, wanted) {
                target(name, ending)
            } else if has(name, &|other| other.archive.as_os_str().is_empty()) {
                target(name, "")
            } else {
                target(name, "_static")
            }
        });
        list(linked)
    };
    let is_code = |other: &Library| !other.archive.as_os_str().is_empty();
    let is_shared = |other: &Library| other.middle.is_some();
    let is_pair = is_shared(library) && library.r#final.is_some();
    let stubs = stubs_of(library, all);
    let runtime = match &library.stubs {
        Stubs::None if needs_toolkit(library) => "toolkit",
        Stubs::Shared(_) | Stubs::External => "stubs",
        _ => "",
    };
    let one = |ending: &str, kind: &str, file: Option<&Path>, links: String| {
        json!({
            "target": target(&library.name, ending),
            "kind": kind,
            "file": file.map(file_name).unwrap_or_default(),
            "soname": "",
            "links": links,
            "runtime": needs_toolkit(library),
            "stubs": "",
            "members": [],
            "part": "",
            "middle": target(&library.name, if is_pair { "" } else { "_static" }),
            "final": if is_pair { target(&library.name, "_final") } else { String::new() },
            "static": target(&library.name, "_static"),
            "cudart": cudart(library.cudart),
            "archs": cmake_archs(&library.archs),
            "cudadevrt": library.cudadevrt,
            "lto": library.archs.iter().any(|arch| arch.kind == ArchKind::Lto),
            "from": runtime,
            "stubs_target": stubs.map(|path| stubs_target(package, path)).unwrap_or_default(),
        })
    };
    if !is_code(library) {
        return vec![one("", "INTERFACE", None, requires("", &is_shared))];
    }
    let archive = PathBuf::from(static_name(library));
    // The archive of a shared library is for programs without shared libraries.
    let below = if is_pair {
        requires("_static", &is_code)
    } else {
        requires("", &is_shared)
    };
    let mut objects = one("_static", "STATIC", Some(&archive), below);
    objects["part"] = "Static".into();
    let mut targets = vec![objects];
    if let (Some(middle), Some(last)) = (&library.middle, &library.r#final) {
        let stubs = stubs.map(file_name).unwrap_or_default();
        let mut shared = one("", "SHARED", Some(middle), requires("", &is_shared));
        shared["soname"] = file_name(middle).into();
        shared["part"] = "Shared".into();
        shared["stubs"] = stubs.clone().into();
        let links = target(&library.name, "");
        let mut top = one("_final", "SHARED", Some(last), links);
        top["soname"] = file_name(last).into();
        top["part"] = "Final".into();
        top["stubs"] = stubs.into();
        top["members"] = members(library, all).into();
        targets.extend([shared, top]);
    }
    targets
}

/// The library and all libraries with device code that it requires.
fn members<'a>(library: &'a Library, all: &'a [Library]) -> Vec<&'a str> {
    let mut found = vec![library];
    let mut next = 0;
    while let Some(library) = found.get(next) {
        next += 1;
        let requires = |other: &&Library| library.requires.contains(&other.name);
        let new = all.iter().filter(requires);
        let new: Vec<_> = new.filter(|other| !found.contains(other)).collect();
        found.extend(new);
    }
    found.retain(|library| !library.archive.as_os_str().is_empty());
    found
        .into_iter()
        .map(|library| library.name.as_str())
        .collect()
}

/// Shared stubs that a library calls: its package's own, or those of another package.
fn stubs_of<'a>(library: &'a Library, all: &'a [Library]) -> Option<&'a Path> {
    let shared = |library: &'a Library| match &library.stubs {
        Stubs::Shared(path) => Some(path.as_path()),
        _ => None,
    };
    match library.stubs {
        Stubs::External => all.iter().find_map(shared),
        _ => shared(library),
    }
}

/// CMake target of shared stubs, for images with a device link of their own.
fn stubs_target(package: &Package, stubs: &Path) -> String {
    let name = file_name(stubs);
    let name = name.trim_start_matches("lib").trim_end_matches(".so");
    format!("{}::{name}", package.name)
}

/// Value of CMake's CUDA_RUNTIME_LIBRARY.
fn cudart(kind: Cudart) -> &'static str {
    match kind {
        Cudart::Shared => "Shared",
        Cudart::Static => "Static",
        Cudart::None => "None",
    }
}

/// Value of CMake's CUDA_ARCHITECTURES. A device link makes machine code of LTO code.
fn cmake_archs(archs: &[Arch]) -> String {
    let mut words: Vec<String> = archs
        .iter()
        .map(|arch| {
            let name = arch.as_kind(ArchKind::Real).to_string();
            let kind = match arch.kind {
                ArchKind::Virtual => "virtual",
                ArchKind::Real | ArchKind::Lto => "real",
            };
            format!("{}-{kind}", name.trim_start_matches("sm_"))
        })
        .collect();
    words.dedup();
    list(words.into_iter())
}

fn needs_toolkit(library: &Library) -> bool {
    library.stubs == Stubs::None
        && library.cudart != Cudart::None
        && !library.archive.as_os_str().is_empty()
}

/// Path of the archive, whose name differs from the shared library's: `-l` would confuse the two.
fn static_name(library: &Library) -> String {
    format!("lib/lib{}_static.a", library.name)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A CMake list.
fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(";")
}

/// Text for a quoted argument of CMake (cmake-language(7), "Escape Sequences").
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        if matches!(letter, '"' | '\\' | '$' | ';') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}
