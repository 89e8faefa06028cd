//! Size of a stub: some bytes if it is used, none if not.

use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::{readelf, symbols};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_functions, plan_or_fail, trap_manifest};

use super::link;

/// Bytes of a stripped program with one stub: 0.65 times the 101680 of ff0ba171, whose run time was not optimised.
const MAX_ONE_STUB: u64 = 66_092;

/// A C program that calls the functions with these numbers, and has this many slots.
fn calling(numbers: &[usize], slots: usize) -> String {
    let declare = |n: &usize| format!("int trap{n:05}(int);\n");
    let call = |n: &usize| format!(" sum += trap{n:05}(1);\n");
    format!(
        "#include \"shared.h\"\n{}int main(void)\n{{\n int sum = 0;\n long slots = 0;\n{}\
         for (struct part *part = __start_gpustub1_parts; part < __stop_gpustub1_parts; part++)\n  \
         slots += part->last - part->first;\n return sum == {} && slots == {} ? 0 : 1;\n}}\n",
        numbers.iter().map(declare).collect::<String>(),
        numbers.iter().map(call).collect::<String>(),
        77 * numbers.len(),
        slots,
    )
}

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("trap{n:05}"))
}

/// The program uses 2 of 750 stubs: only these are kept, each with its slot, and the program grows
/// by under 100 bytes for each additional one.
fn unused_stubs_vanish(linker: &str) -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(numbered(750), Machine::X86_64)?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;
    let linker = format!("-fuse-ld={linker}");
    let flags = [&linker[..], "-Wl,--gc-sections"];

    let sized = |numbers: &[usize]| -> Result<u64> {
        let program = link(
            dir.path(),
            &archive,
            &calling(numbers, numbers.len()),
            &flags,
        )?;
        succeed(&mut Command::new(&program))?; // the library is absent: each call gives 77
        let rows = symbols("--symbols", &program)?;
        let kept = rows
            .iter()
            .filter(|row| row.kind == "FUNC" && row.name.starts_with("trap"));
        assert_eq!(kept.count(), numbers.len(), "{linker}");
        loaded_bytes(&program)
    };
    let two = sized(&[7, 700])?;
    let many: Vec<usize> = (0..750).collect();
    let all = sized(&many)?;
    // The program's own call is part of the growth.
    let each = (all - two) / 748;
    println!("{linker}: {each} bytes for each used stub, its call included; 0 for an unused one");
    assert!(each < 100 + 32, "{each} bytes for each stub");
    Ok(())
}

/// A program that uses one of many objects with copies of data keeps that one, and one that uses none no byte.
fn unused_data_vanishes(linker: &str) -> Result<()> {
    let dir = scratch()?;
    let mut list = String::from("@gpustub-symbols 1\n");
    for name in numbered(100) {
        list += &format!("{name} kind=object size=40 copied\n");
    }
    list += "trap_open returns=status\n";
    let lists = [("trap.symbols", list)];
    let plan = plan_or_fail(&trap_manifest(""), &lists, &Machine::X86_64.target())?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;
    let linker = format!("-fuse-ld={linker}");
    let flags = [&linker[..], "-Wl,--gc-sections"];
    let mut sizes = Vec::new();
    for (used, kept) in [("0", 0), ("trap00007[0]", 1)] {
        let source = format!(
            "int trap_open(void);\nextern volatile const char trap00007[40];\n\
             int main(void)\n{{\n return trap_open() == 0 || {used};\n}}\n"
        );
        let program = link(dir.path(), &archive, &source, &flags)?;
        succeed(&mut Command::new(&program))?;
        let rows = symbols("--symbols", &program)?;
        let objects = (rows.iter())
            .filter(|row| row.kind == "OBJECT" && row.name.starts_with("trap") && row.size == 40);
        assert_eq!(objects.count(), kept, "{linker}");
        let sections = readelf(&["--sections"], &program)?;
        assert_eq!(sections.contains(".gpustub_data"), kept > 0, "{linker}");
        sizes.push(loaded_bytes(&program)?);
    }
    // The object and its last value, two references, slot, name and relocation; symbols and code of the program.
    let bytes = sizes[1] - sizes[0];
    println!("{linker}: {bytes} bytes for an object of 40 bytes");
    assert!(bytes < 250, "{bytes} bytes");
    Ok(())
}

/// Size of the loaded sections, without padding between them.
pub fn loaded_bytes(program: &Path) -> Result<u64> {
    let table = readelf(&["--sections"], program)?;
    let sizes = table.lines().filter_map(|line| {
        // `[Nr] Name Type Address Off Size ES Flg …`
        let words: Vec<&str> = line.split_once(']')?.1.split_whitespace().collect();
        let flags = words.get(6)?;
        flags
            .contains('A')
            .then(|| u64::from_str_radix(words[4], 16).ok())
            .flatten()
    });
    Ok(sizes.sum())
}

/// A stripped program with one stub of cudart and an optimised run time.
#[test]
#[ignore = "needs lld: ./tests/run"]
fn one_stub_of_cudart_has_a_bound_with_lld() -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"13\"\n";
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &["-Os".to_owned()])?.archive()?;
    let source = "int cudaGetDeviceCount(int *);\n\
                  int main(void) { int n; return cudaGetDeviceCount(&n) == 0; }\n";
    let flags = ["-fuse-ld=lld", "-Wl,--gc-sections", "-s"];
    let program = link(dir.path(), &archive, source, &flags)?;
    let bytes = std::fs::metadata(&program)?.len();
    println!("{bytes} bytes");
    assert!(bytes <= MAX_ONE_STUB, "{bytes} bytes");
    Ok(())
}

#[test]
fn unused_stubs_vanish_with_the_default_linker() -> Result<()> {
    unused_stubs_vanish("bfd")
}

#[test]
fn unused_data_vanishes_with_the_default_linker() -> Result<()> {
    unused_data_vanishes("bfd")
}

#[test]
#[ignore = "needs lld and mold: ./tests/run"]
fn unused_data_vanishes_with_lld_and_mold() -> Result<()> {
    unused_data_vanishes("lld")?;
    unused_data_vanishes("mold")
}

#[test]
#[ignore = "needs lld: ./tests/run"]
fn unused_stubs_vanish_with_lld() -> Result<()> {
    unused_stubs_vanish("lld")
}

#[test]
#[ignore = "needs mold: ./tests/run"]
fn unused_stubs_vanish_with_mold() -> Result<()> {
    unused_stubs_vanish("mold")
}

#[test]
fn twenty_thousand_stubs_compile_link_and_run() -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(numbered(20_000), Machine::X86_64)?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;
    // Without garbage collection the program keeps all of them. (A C compiler needs a minute for a
    // program that names as many.)
    let used: Vec<usize> = (0..20_000).step_by(199).collect();
    succeed(&mut Command::new(link(
        dir.path(),
        &archive,
        &calling(&used, 20_000),
        &[],
    )?))?;
    Ok(())
}
