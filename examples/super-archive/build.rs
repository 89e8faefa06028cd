//! Compiles the layers, each function from a separate file, and packs them.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for layer in ["common", "gfx9", "gfx11"] {
        compile(&Path::new("clc").join(layer), &Path::new(&out).join(layer));
    }
    println!("cargo::rerun-if-changed=clc");
    gpustub_build::build();
}

/// Compiles each file of a directory to an object file of the same name.
fn compile(sources: &Path, objects: &Path) {
    fs::create_dir_all(objects).expect("OUT_DIR is writable");
    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    for source in fs::read_dir(sources).expect("the directory is part of the package") {
        let source = source.expect("the directory is readable").path();
        let name = source.file_stem().unwrap_or_default();
        let mut command = compiler.to_command();
        command.arg("-c").arg(&source);
        command
            .arg("-o")
            .arg(objects.join(name).with_extension("o"));
        let status = command.status().expect("the compiler runs");
        assert!(status.success(), "{command:?}");
    }
}
