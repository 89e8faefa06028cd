//! Compiles the layers, each function from a file of its own, and packs them.

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

/// Compiles each file of a folder to an object file of its name.
fn compile(sources: &Path, objects: &Path) {
    fs::create_dir_all(objects).expect("OUT_DIR can be written");
    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    for source in fs::read_dir(sources).expect("the folder is part of the package") {
        let source = source.expect("the folder can be read").path();
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
