//! Workspaces with relocatable CUDA code, which is never compiled.

use std::fs;
use std::path::Path;

use super::{ends, package, write};

/// Creates a workspace whose members are its directories, and a helper that links nothing.
pub fn workspace(directory: &Path) {
    let root = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\nexclude = [\"others\"]\n\
                [workspace.dependencies]\ngpustub-build = { path = \"helper\" }\n";
    write(directory, "Cargo.toml", root);
    let helper = directory.join("helper");
    package(&helper, "gpustub-build", "[features]\ndevice-link = []\n");
    let code = "pub fn build() {}\npub fn finalize() {}\npub fn build_finalizer() {\n    \
                let directory = std::env::var(\"OUT_DIR\").unwrap() + \"/gpustub\";\n    \
                std::fs::create_dir_all(&directory).unwrap();\n    \
                std::fs::write(directory + \"/exports.rs\", \"\").unwrap();\n}\n";
    write(&helper, "src/lib.rs", code);
}

/// Adds a crate without CUDA code; `more` ends its Cargo.toml.
pub fn plain(directory: &Path, name: &str, more: &str) {
    package(&directory.join(name), name, more);
}

/// Adds a crate with a program.
pub fn program(directory: &Path, name: &str, more: &str) {
    let directory = directory.join(name);
    package(&directory, name, more);
    fs::remove_file(directory.join("src/lib.rs")).unwrap();
    write(&directory, "src/main.rs", "fn main() {}\n");
}

/// Adds a crate with an RDC library of its name, and the lines that `sync` would add.
pub fn rdc(directory: &Path, name: &str, cargo: &str, table: &str) {
    let links = format!(
        "links = \"gpustub-{name}\"\n{cargo}\n[build-dependencies]\n\
         gpustub-build = {{ workspace = true, features = [\"device-link\"] }}\n"
    );
    let dir = directory.join(name);
    package(&dir, name, &links);
    write(
        &dir,
        "build.rs",
        "fn main() {\n    gpustub_build::build();\n}\n",
    );
    let text = format!(
        "schema = 1\n[device-link.{name}]\nsources = [\"*.cu\"]\narchs = [\"sm_80\"]\n{table}"
    );
    write(&dir, "GpuStub.toml", &text);
    write(&dir, &format!("{name}.cu"), "");
}

/// `[dependencies]` on neighbouring crates.
pub fn dependencies_on(names: &[&str]) -> String {
    let lines: String = names
        .iter()
        .map(|name| format!("{name} = {{ path = \"../{name}\" }}\n"))
        .collect();
    format!("[dependencies]\n{lines}")
}

/// base ◀ left, right ◀ app.
pub fn diamond(directory: &Path) {
    workspace(directory);
    rdc(directory, "base", "", "");
    for name in ["left", "right"] {
        rdc(
            directory,
            name,
            &dependencies_on(&["base"]),
            "requires = [\"base\"]\n",
        );
    }
    program(directory, "app", &dependencies_on(&["left", "right"]));
}

/// [`diamond`], in sync, and a package `unit` with these dependencies, whose tests alone have CUDA code.
pub fn synced(directory: &Path, unit: &str) {
    diamond(directory);
    plain(directory, "unit", unit);
    write(directory, "unit/tests/it.rs", "#[test]\nfn it() {}\n");
    ends(0, directory, &["sync", "--workspace"]);
}
