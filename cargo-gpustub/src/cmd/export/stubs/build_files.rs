//! Files for other build systems, below `--out-dir`:
//!
//! ```text
//! cmake/gpustub-config.cmake     find_package(gpustub)
//! cmake/gpustub-cuda.cmake       makes find_package(CUDAToolkit), (CUDA), (OpenCL), (hip) return stubs
//! pkgconfig/gpustub*.pc          pkg-config (not with --sources-only: it compiles nothing)
//! meson.build                    a subproject, which compiles the sources
//! BUILD.bazel                    a package, which compiles the sources
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
    let template =
        |name: &str, data: &Value| templates::render(&format!("export/stubs/{name}"), data);
    let mut files = vec![
        ("BUILD.bazel".to_owned(), template("BUILD.bazel", &data)),
        ("meson.build".to_owned(), template("meson.build", &data)),
    ];
    let modules = packages(plan)
        .into_iter()
        .map(|package| format!("Find{package}.cmake"));
    for name in CMAKE.iter().map(|name| (*name).to_owned()).chain(modules) {
        files.push((format!("cmake/{name}"), template(&name, &data)));
    }
    if !sources_only {
        let all = template("gpustub.pc", &data);
        files.push(("pkgconfig/gpustub.pc".to_owned(), all));
        for library in plan.libraries.iter().filter(|library| library.stubbed) {
            let id = &library.library.id;
            let mut data = data.clone();
            data["id"] = json!(id);
            data["title"] = json!(library.library.title);
            data["link_name"] = json!(link_name(library));
            let path = format!("pkgconfig/gpustub-{id}.pc");
            files.push((path, template("library.pc", &data)));
        }
    }
    files
}

/// CMake's packages with stubs. Each has a module, which CMake searches by exactly its name, so that the
/// directory can be used as CMAKE_MODULE_PATH.
fn packages(plan: &Plan) -> Vec<&'static str> {
    let has = |id: &str| {
        plan.libraries
            .iter()
            .any(|one| one.stubbed && one.library.id == id)
    };
    let mut packages = vec!["CUDA", "CUDAToolkit"];
    packages.extend(has("opencl").then_some("OpenCL"));
    packages.extend(has("hip").then_some("hip"));
    packages
}

/// Name after `-l` of a library's archive. A declaration has at least one.
fn link_name(library: &LibraryPlan) -> &str {
    library
        .library
        .link_names
        .first()
        .map_or("", String::as_str)
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
        .map(|library| json!({ "id": library.library.id, "link_name": link_name(library) }))
        .collect();
    // Libraries of one toolkit share their headers.
    let of_cuda = stubbed()
        .filter(|library| library.library.family == "cuda" && !library.library.independent_major);
    let header = of_cuda.filter_map(|library| library.header_version).next();
    // Build systems have separate settings for these two.
    let standard = REQUIRED.iter().find_map(|flag| flag.strip_prefix("-std="));
    let own = |flag: &&&str| !flag.starts_with("-std=") && **flag != "-fPIC";
    let flags: Vec<_> = REQUIRED.iter().filter(own).collect();
    let compiled = ["client.c", "runtime.c", "stubs.S"];
    let included = sources.iter().map(|(path, _)| path.as_ref());
    let included: Vec<&str> = included.filter(|path| !compiled.contains(path)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": shared.unwrap_or("gpustub_stubs"),
        "export": shared.map(export_name),
        "shared": shared.is_some(),
        "kind": if shared.is_some() { "SHARED" } else { "STATIC" },
        "compiled": !sources_only,
        "archives": !sources_only && shared.is_none(),
        "dl": target.os == "linux",
        "libraries": libraries,
        "packages": packages(plan),
        "header": header.map(|header| header.to_string()).unwrap_or_default(),
        "standard": standard,
        "flags": flags,
        "protection": protection(target),
        "included": included,
    })
}
