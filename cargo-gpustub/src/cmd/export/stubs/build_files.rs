//! Files for other build systems, below `--out-dir`:
//!
//! ```text
//! cmake/gpustub-config.cmake     find_package(gpustub)
//! cmake/gpustub-cuda.cmake       makes find_package(CUDAToolkit) and find_package(CUDA) return stubs
//! pkgconfig/gpustub*.pc          pkg-config (not with --sources-only: it compiles nothing)
//! meson.build                    a subproject, which compiles the sources
//! BUILD.bazel                    a package, which compiles the sources
//! ```
//!
//! Paths in these files are relative to the directory, which can be moved.

use gpustub_core::plan::Plan;
use gpustub_core::sources::SourceSet;
use gpustub_core::target::Target;
use gpustub_edit::templates;
use gpustub_engine::toolchain::{REQUIRED, protection};
use serde_json::{Value, json};

use super::ARCHIVE;

/// The files in `cmake`, each a template of the same name. CMake searches modules by exactly these
/// names, so the directory can be used as CMAKE_MODULE_PATH.
const CMAKE: [&str; 7] = [
    "FindCUDA.cmake",
    "FindCUDAToolkit.cmake",
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
    let template =
        |name: &str, data: &Value| templates::render(&format!("export/stubs/{name}"), data);
    let mut files = vec![
        ("BUILD.bazel".to_owned(), template("BUILD.bazel", &data)),
        ("meson.build".to_owned(), template("meson.build", &data)),
    ];
    for name in CMAKE {
        files.push((format!("cmake/{name}"), template(name, &data)));
    }
    if !sources_only {
        let all = template("gpustub.pc", &data);
        files.push(("pkgconfig/gpustub.pc".to_owned(), all));
        for library in plan.libraries.iter().filter(|library| library.stubbed) {
            let (id, title) = (&library.manifest.id, &library.manifest.title);
            let data = json!({ "id": id, "title": title, "version": env!("CARGO_PKG_VERSION") });
            let path = format!("pkgconfig/gpustub-{id}.pc");
            files.push((path, template("library.pc", &data)));
        }
    }
    files
}

/// Data of the templates.
fn data(
    plan: &Plan,
    sources: &SourceSet,
    target: &Target,
    shared: Option<&str>,
    sources_only: bool,
) -> Value {
    let stubbed = || plan.libraries.iter().filter(|library| library.stubbed);
    let libraries: Vec<_> = stubbed()
        .map(|library| json!({ "id": library.manifest.id }))
        .collect();
    // Libraries of one toolkit share their headers.
    let of_cuda = stubbed()
        .filter(|library| library.manifest.family == "cuda" && !library.manifest.independent_major);
    let header = of_cuda.filter_map(|library| library.header_version).next();
    // Build systems have separate settings for these two.
    let standard = REQUIRED.iter().find_map(|flag| flag.strip_prefix("-std="));
    let own = |flag: &&&str| !flag.starts_with("-std=") && **flag != "-fPIC";
    let flags: Vec<_> = REQUIRED.iter().filter(own).collect();
    let compiled = ["runtime.c", "stubs.S"];
    let included = sources.iter().map(|(path, _)| path.as_ref());
    let included: Vec<&str> = included.filter(|path| !compiled.contains(path)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": shared.unwrap_or(ARCHIVE),
        "shared": shared.is_some(),
        "kind": if shared.is_some() { "SHARED" } else { "STATIC" },
        "compiled": !sources_only,
        "dl": target.os == "linux",
        "libraries": libraries,
        "header": header.map(|header| header.to_string()).unwrap_or_default(),
        "standard": standard,
        "flags": flags,
        "protection": protection(target),
        "included": included,
    })
}
