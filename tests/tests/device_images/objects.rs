//! Objects without relocatable code, and machine code for architectures with letters.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use gpustub_image::archive_device_code_file;
use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::scratch::scratch;

use super::{Work, ids, listed, read};

/// nvcc 13 gives objects that need no device link the section of ids, too.
#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn whole_program_objects_are_not_relocatable() -> Result<()> {
    let work = Work::new()?;
    let object = work.path("b.o");
    let mut nvcc = TOOLKIT_13.nvcc()?;
    nvcc.args(["-c", "-Xcompiler", "-fPIC", "-arch=sm_80"]);
    succeed(nvcc.arg(work.path("b.cu")).arg("-o").arg(&object))?;
    assert_eq!(ids(&object)?, ["__NV_MODULE_ID"]);
    assert!(!listed(&object, &[])?.is_empty());
    assert_eq!(read(&object)?.modules, []);
    fs::write(work.path("host.c"), "int host(void) { return 1; }\n")?;
    let host = work.path("host.o");
    let mut cc = Command::new("cc");
    succeed(cc.arg("-c").arg(work.path("host.c")).arg("-o").arg(&host))?;
    assert!(listed(&host, &[])?.is_empty());
    let archive = work.archive("libb.a", &["b.o", "host.o"])?;
    assert_eq!(archive_device_code_file(&archive)?.modules, []);
    work.link("whole", "b.o", "libb.so")?;
    let needs_cudart =
        "error[needed-toolkit]: fails to start where `libcudart.so.13` is missing (DT_NEEDED)\n";
    for (file, findings) in [("b.o", ""), ("libb.a", ""), ("whole/libb.so", needs_cudart)] {
        let path = work.path(file);
        let mut check = gpustub(&["check", "--message-format", "short"])?;
        let stderr = run(check.arg(&path))?.stderr;
        let findings_of_file = stderr.replace(&format!("{}: ", path.display()), "");
        assert_eq!(findings_of_file, findings, "{file}");
    }
    Ok(())
}

/// `e_flags` of machine code do not tell these architectures apart, so that only a container can.
#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn architectures_with_letters_have_the_flags_of_their_number() -> Result<()> {
    let dir = scratch()?;
    let flags = |name: &str| -> Result<Vec<u8>> {
        let ptx = dir.path().join("k.ptx");
        let text = ".address_size 64\n.visible .entry k() { ret; }\n";
        fs::write(&ptx, format!(".version 9.0\n.target sm_{name}\n{text}"))?;
        let cubin = dir.path().join("k.cubin");
        let mut ptxas = TOOLKIT_13.tool("ptxas")?;
        ptxas.arg(format!("-arch=sm_{name}")).arg(&ptx);
        succeed(ptxas.arg("-o").arg(&cubin))?;
        // `e_flags` of ELF64.
        Ok(fs::read(cubin)?[48..52].to_vec())
    };
    let mut by_number = BTreeSet::new();
    for names in [&["90", "90a"][..], &["100", "100a", "100f"]] {
        for name in names {
            assert_eq!(flags(name)?, flags(names[0])?, "{name}");
        }
        by_number.insert(flags(names[0])?);
    }
    assert_eq!(by_number.len(), 2);
    Ok(())
}
