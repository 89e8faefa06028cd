//! Host objects without their device code: host linkers and tools read them like the originals.

use std::fs;

use gpustub_core::offload::{containers, without_device_code};
use gpustub_tests::Result;
use gpustub_tests::scratch::scratch;

use crate::library::{DRIVERS, Library, llvm};

const LINKERS: [&str; 4] = ["ld.bfd", "ld.gold", "ld.lld-19", "mold"];

#[test]
#[ignore = "needs clang 19, gold, lld 19 and mold: ./tests/run"]
fn linkers_give_the_same_program() -> Result<()> {
    for driver in DRIVERS {
        let library = Library::new(driver)?;
        let object = library.read("apply.o")?;
        let rest = without_device_code(&object).ok_or("no device code")?;
        assert!(containers(&rest).next().is_none());
        // Sections of one file name are in one place of the program.
        fs::create_dir(library.path("host"))?;
        fs::write(library.path("host/apply.o"), &rest)?;
        // What clang's linker adds.
        let mut handles = String::new();
        for line in library.run("nm", "-u apply.o")?.lines() {
            let name = line.trim().trim_start_matches("U ");
            if name.starts_with("__hip_fatbin_") || name.starts_with("__hip_gpubin_handle_") {
                handles += &format!("char {name}[8];\n");
            }
        }
        fs::write(library.path("handles.c"), handles)?;
        library.run("cc", "-c -fPIC handles.c -o handles.o")?;
        for linker in LINKERS {
            let link = |object: &str, output: &str| -> Result<Vec<u8>> {
                library.run(
                    linker,
                    &format!("-shared --build-id=none {object} handles.o -o {output}"),
                )?;
                library.read(output)
            };
            let (fat, host) = (link("apply.o", "fat.so")?, link("host/apply.o", "host.so")?);
            assert!(fat == host, "{driver} {linker}");
        }
        for tool in [
            "objcopy",
            &llvm("llvm-objcopy"),
            "strip",
            &llvm("llvm-strip"),
        ] {
            let words = if tool.contains("strip") {
                "-g -o"
            } else {
                "-S"
            };
            let words = match words {
                "-S" => "-S host/apply.o changed.o".to_owned(),
                words => format!("{words} changed.o host/apply.o"),
            };
            library.run(tool, &words)?;
        }
        for words in ["-W -r -s", "-W -S"] {
            library.run("readelf", &format!("{words} host/apply.o"))?;
        }
        let symbols = |object: &str| library.run("nm", object);
        assert_eq!(symbols("apply.o")?, symbols("host/apply.o")?);
    }
    Ok(())
}

/// Without clang: sections as its older driver adds them, with `objcopy`, and a bundle as a file.
#[test]
fn added_sections_are_removed() -> Result<()> {
    let directory = scratch()?;
    let library = Plain(directory.path());
    fs::write(directory.path().join("f.c"), "int f(void) { return 1; }")?;
    library.run("cc", "-c -O1 f.c -o f.o")?;
    for size in [1, 8, 15, 16, 4097] {
        fs::write(directory.path().join("code"), vec![7; size])?;
        let section = "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a";
        library.run(
            "objcopy",
            &format!("--add-section {section}=code --set-section-flags {section}=readonly,exclude f.o fat.o"),
        )?;
        let fat = fs::read(directory.path().join("fat.o"))?;
        assert_eq!(containers(&fat).count(), 1);
        let rest = without_device_code(&fat).ok_or("nothing was removed")?;
        assert!(
            rest.len() <= fat.len() && fat.len() - rest.len() + 16 > size,
            "{size}"
        );
        fs::write(directory.path().join("rest.o"), &rest)?;
        for object in ["fat.o", "rest.o"] {
            library.run(
                "cc",
                &format!("-shared -Wl,--build-id=none {object} -o {object}.so"),
            )?;
        }
        let [fat, rest] =
            ["fat.o.so", "rest.o.so"].map(|name| fs::read(directory.path().join(name)));
        assert!(fat? == rest?, "{size}");
    }
    // The runtime loads this section.
    library.run(
        "objcopy",
        "--add-section .hip_fatbin=code --set-section-flags .hip_fatbin=alloc f.o kept.o",
    )?;
    assert!(without_device_code(&fs::read(directory.path().join("kept.o"))?).is_none());
    assert!(without_device_code(&fs::read(directory.path().join("f.o"))?).is_none());
    Ok(())
}

struct Plain<'d>(&'d std::path::Path);

impl Plain<'_> {
    fn run(&self, tool: &str, words: &str) -> Result<()> {
        let mut command = std::process::Command::new(tool);
        gpustub_tests::command::succeed(command.current_dir(self.0).args(words.split(' ')))?;
        Ok(())
    }
}
