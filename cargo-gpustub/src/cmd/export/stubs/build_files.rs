//! Files for other build systems, below `--out-dir`:
//!
//! ```text
//! cmake/gpustub-config.cmake     find_package(gpustub)
//! cmake/gpustub-cuda.cmake       makes find_package(CUDAToolkit), (CUDA), (OpenCL), (hip) return stubs
//! pkgconfig/gpustub*.pc          pkg-config (not with --sources-only: it compiles nothing)
//! meson.build                    a subproject, which compiles the sources
//! BUILD.bazel                    a package, which compiles the sources (not for MSVC)
//! ```
//!
//! Paths in these files are relative to the directory, which can be moved.

use gpustub_core::plan::{LibraryPlan, Plan};
use gpustub_core::sources::SourceSet;
use gpustub_core::target::Target;
use gpustub_engine::toolchain::shared::export_name;
use gpustub_engine::toolchain::{REQUIRED, protection};
use gpustub_workspace::edit::templates;
use serde_json::{Value, json};

use super::files::archive_name;

/// The files in `cmake`, beside the modules, each a template of the same name.
const CMAKE: [&str; 5] = [
    "gpustub-config-version.cmake",
    "gpustub-config.cmake",
    "gpustub-cuda.cmake",
    "gpustub-cuda-targets.cmake",
    "gpustub-targets.cmake",
];

/// Paths below `--out-dir`, and texts. `shared` is the name of the shared library, if it is one.
pub fn render(
    plan: &Plan,
    sources: &SourceSet,
    target: &Target,
    shared: Option<&str>,
    sources_only: bool,
) -> Vec<(String, String)> {
    let data = data(plan, sources, target, shared, sources_only);
    let mut files = Vec::new();
    for name in ["BUILD.bazel", "meson.build"] {
        // Bazel's rules have no condition for the compiler's options.
        if name == "BUILD.bazel" && target.env == "msvc" {
            continue;
        }
        files.push((name.to_owned(), render_template(name, &data)));
    }
    for name in CMAKE {
        files.push((format!("cmake/{name}"), render_template(name, &data)));
    }
    for package in packages(plan) {
        let name = format!("Find{package}.cmake");
        files.push((format!("cmake/{name}"), render_template(&name, &data)));
    }
    if !sources_only {
        let text = render_template("gpustub.pc", &data);
        files.push(("pkgconfig/gpustub.pc".to_owned(), text));
        for library in plan.libraries.iter().filter(|library| library.stubbed) {
            let id = &library.library.id;
            let mut data = data.clone();
            data["id"] = json!(id);
            data["title"] = json!(library.library.title);
            data["archive"] = json!(archive(library, target));
            let path = format!("pkgconfig/gpustub-{id}.pc");
            files.push((path, render_template("library.pc", &data)));
        }
    }
    files
}

fn render_template(name: &str, data: &Value) -> String {
    templates::render(&format!("export/stubs/{name}"), data)
}

/// CMake's packages with stubs. Each has a module, which CMake searches by exactly its name, so that the
/// directory can be used as CMAKE_MODULE_PATH.
fn packages(plan: &Plan) -> Vec<&'static str> {
    let mut packages = vec!["CUDA", "CUDAToolkit"];
    for (id, package) in [("opencl", "OpenCL"), ("hip", "hip")] {
        let mut libraries = plan.libraries.iter();
        if libraries.any(|library| library.stubbed && library.library.id == id) {
            packages.push(package);
        }
    }
    packages
}

/// File name of a library's archive. A declaration has at least one `-l` name.
fn archive(library: &LibraryPlan, target: &Target) -> String {
    let link_name = library.library.link_names.first();
    archive_name(target, link_name.map_or("", String::as_str))
}

/// Data of the templates.
fn data(
    plan: &Plan,
    sources: &SourceSet,
    target: &Target,
    shared: Option<&str>,
    sources_only: bool,
) -> Value {
    let stubbed: Vec<&LibraryPlan> = plan
        .libraries
        .iter()
        .filter(|library| library.stubbed)
        .collect();
    let libraries: Vec<Value> = stubbed
        .iter()
        .map(|library| json!({ "id": library.library.id, "archive": archive(library, target) }))
        .collect();
    // Libraries of one toolkit share their headers.
    let header = stubbed
        .iter()
        .filter(|library| library.library.toolkit_family() == Some("cuda"))
        .find_map(|library| library.header_version);
    // Build systems have separate settings for these two.
    let standard = REQUIRED.iter().find_map(|flag| flag.strip_prefix("-std="));
    let flags: Vec<&&str> = REQUIRED
        .iter()
        .filter(|flag| !flag.starts_with("-std=") && **flag != "-fPIC")
        .collect();
    let stubs = match (target.os.as_str(), target.env.as_str()) {
        ("windows", "msvc") => "stubs.obj",
        ("windows", _) => "stubs.s",
        _ => "stubs.S",
    };
    let included: Vec<&str> = sources
        .iter()
        .map(|(path, _)| path.as_ref())
        .filter(|path| !["client.c", "runtime.c", "stubs.rs", "stubs.s", "stubs.S"].contains(path))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": shared.unwrap_or("gpustub_stubs"),
        "export": shared.map(export_name),
        "shared": shared.is_some(),
        "kind": if shared.is_some() { "SHARED" } else { "STATIC" },
        "compiled": !sources_only,
        "archives": !sources_only && shared.is_none(),
        "dl": target.os == "linux",
        "triple": target.triple,
        "gnu": target.os == "windows" && target.env != "msvc",
        "msvc": target.env == "msvc",
        "stubs": stubs,
        "libraries": libraries,
        "packages": packages(plan),
        "header": header.map(|header| header.to_string()).unwrap_or_default(),
        "standard": standard,
        "flags": flags,
        "protection": protection(target),
        "included": included,
    })
}

#[cfg(test)]
mod tests {
    use gpustub_core::library::Library;

    use super::*;

    /// Without a row, `find_package(CUDAToolkit)` would define no target of the library.
    #[test]
    fn libraries_of_cuda_have_names_in_cmake() {
        let text = render_template("gpustub-cuda-targets.cmake", &json!({ "header": "" }));
        for library in Library::builtin_ids().filter_map(Library::builtin) {
            let row = format!("\"{}|", library.id);
            // No toolkit of NVIDIA has these.
            let is_elsewhere = library.family == "rocm" || library.id == "level-zero";
            assert!(is_elsewhere || text.contains(&row), "no row {row}");
        }
    }
}
