//! Views of a library of HIP: members, symbols and sizes, and the code that lld links from them.

use std::collections::BTreeMap;
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_core::offload::{Model, containers};
use gpustub_image::offload::unpack;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;

use crate::library::{ARCHS, DRIVERS, Library, llvm};

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_views_are_linked_to_the_code_that_clang_links() -> Result<()> {
    for driver in DRIVERS {
        let library = Library::new(driver)?;
        library.archive("build -q -o all.a --unpack libfat.a")?;
        let linked = linked_by_clang(&library)?;
        for arch in ARCHS {
            library.archive(&format!("extract -q all.a --view {arch} -o {arch}.a"))?;
            // The command line of clang's driver (`clang -### --hip-link`), with an archive in place of objects.
            let words = format!(
                "-flavor gnu -m elf64_amdgpu --no-undefined -shared -plugin-opt=-amdgpu-internalize-symbols \
                 -plugin-opt=mcpu={arch} --whole-archive {arch}.a --no-whole-archive -o {arch}.co"
            );
            library.run(&llvm("lld"), &words)?;
            std::fs::write(library.path("clang.co"), &linked[arch])?;
            let kernels = library.run(&llvm("llvm-nm"), &format!("-j {arch}.co"))?;
            assert_eq!(kernels, library.run(&llvm("llvm-nm"), "-j clang.co")?);
            for kernel in ["_Z7squaresPf.kd", "_Z5cubesPf.kd"] {
                assert!(
                    kernels.lines().any(|name| name == kernel),
                    "{driver} {kernels}"
                );
            }
            // `clang-linker-wrapper` of the newer driver calls clang, which optimizes in other steps.
            if driver == DRIVERS[0] {
                let view = library.read(&format!("{arch}.co"))?;
                assert!(view == linked[arch], "{driver} {arch}");
            }
        }
    }
    Ok(())
}

/// Code of each family in the library that clang links from the fat archive.
fn linked_by_clang(library: &Library) -> Result<BTreeMap<String, Vec<u8>>> {
    std::fs::write(library.path("empty.c"), "")?;
    library.run("cc", "-shared empty.c -o libamdhip64.so")?;
    let words = "--hip-link -shared -L. -o all.so apply.o cube.o square.o";
    succeed(&mut library.clang(words)?)?;
    let file = library.read("all.so")?;
    let mut linked = BTreeMap::new();
    for container in containers(&file) {
        let bundle = match container.compression {
            Some(_) => unpack(&container, 1 << 20).map_err(|error| error.to_string())?,
            None => container.data.to_vec(),
        };
        for container in containers(&bundle) {
            let codes = container
                .entries
                .iter()
                .filter(|entry| entry.model != Model::Host);
            for entry in codes {
                let code = container.code(entry).ok_or("a damaged bundle")?;
                linked.insert(entry.arch.clone(), code.to_vec());
            }
        }
    }
    assert!(linked.keys().eq(ARCHS), "{:?}", linked.keys());
    Ok(linked)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_views_have_all_symbols_and_each_code_once() -> Result<()> {
    for driver in DRIVERS {
        let library = Library::new(driver)?;
        library.archive("build -q -o all.a --unpack libfat.a")?;
        let (fat, file) = (library.read("libfat.a")?, library.read("all.a")?);
        let archive = SuperArchive::parse(&file)?;
        archive.verify()?;
        let names: Vec<_> = archive
            .views()
            .map(|view| view.map(|view| view.name()))
            .collect::<Result<_, _>>()?;
        let names: Vec<_> = names.into_iter().map(String::from_utf8_lossy).collect();
        assert_eq!(names, ["host", "gfx1030", "gfx1100", "gfx90a"]);
        let default = archive.default_view()?.ok_or("no default view")?;
        assert_eq!(default.name(), b"host");
        assert!(default.find_symbol("_Z3runPf")?.is_some());
        for arch in ARCHS {
            let view = archive
                .best_view(format!("{arch}:xnack-"))?
                .ok_or("no view")?;
            assert_eq!(view.name(), arch.as_bytes());
            for (symbol, member) in [
                ("_Z7squaresPf", "apply.o"),
                ("_Z4cubef", "cube.o"),
                ("_Z6squaref", "square.o"),
            ] {
                let definition = view.find_symbol(symbol)?.ok_or(symbol)?;
                assert_eq!(definition.name(), member.as_bytes());
                assert!(definition.data()?.starts_with(b"BC\xC0\xDE"));
            }
            // An extracted view is an ordinary archive: other tools read the same symbols.
            library.archive(&format!("extract -q all.a --view {arch} -o {arch}.a"))?;
            let listed = library.run("ar", &format!("t {arch}.a"))?;
            assert_eq!(listed, "apply.o\ncube.o\nsquare.o\n");
            let index = library.run("nm", &format!("-s {arch}.a"))?;
            let count = index.lines().filter(|line| line.contains(" in ")).count();
            assert_eq!(count, view.symbols().count(), "{index}");
        }
        // No code is in the file twice: it has the members of the fat library, and tables.
        let codes: u64 = archive
            .contents()
            .map(|code| code.map(|code| code.size()))
            .sum::<Result<_, _>>()?;
        assert!(codes < fat.len() as u64, "{codes} {}", fat.len());
        println!(
            "{driver}: {} bytes, fat library {}, contents {codes}",
            file.len(),
            fat.len()
        );
    }
    Ok(())
}

/// A linked library of clang contains the code that host objects keep: the runtime loads it from there.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_linked_and_compressed_code_is_unpacked_and_stays() -> Result<()> {
    let library = Library::new(DRIVERS[0])?;
    std::fs::write(
        library.path("one.hip"),
        "#include \"hip.h\"\n__global__ void one(float *x) { *x = 1; }\nvoid run(float *x) { one<<<1, 1>>>(x); }\n",
    )?;
    let words = "-c -x hip -nogpuinc -nogpulib one.hip -o one.o --offload-compress -fno-gpu-rdc";
    succeed(&mut library.clang(words)?)?;
    library.run("ar", "rcs libone.a one.o")?;
    library.archive("build -q -o one.a --unpack libone.a")?;
    let (object, file) = (library.read("one.o")?, library.read("one.a")?);
    let archive = SuperArchive::parse(&file)?;
    let host = archive.view("host")?.ok_or("no view")?;
    let member = host.find_symbol("_Z3runPf")?.ok_or("no member")?;
    assert!(member.data()? == object, "the host object is as it was");
    for arch in ARCHS {
        let view = archive.view(arch)?.ok_or("no view")?;
        let member = view.members().next().ok_or("no member")??;
        std::fs::write(library.path("one.co"), member.data()?)?;
        let names = Command::new(llvm("llvm-nm"))
            .arg("-j")
            .arg(library.path("one.co"))
            .output()?;
        let names = String::from_utf8_lossy(&names.stdout).into_owned();
        assert!(names.contains("_Z3onePf.kd\n"), "{names}");
    }
    Ok(())
}
