//! Reading of relocatable device code, from images that a C compiler builds with the sections and
//! symbols of nvcc's objects: `cargo-gpustub/tests/check/device-code.h`. `device_images`
//! compares nvcc's own output with NVIDIA's tools.

#[path = "../../crates/image/tests/support/damage.rs"]
mod damage;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use damage::{changes, overwritten};
use gpustub_core::gpu_arch::Arch;
use gpustub_image::{
    DeviceCode, archive_device_code, archive_device_code_file, fuzz, read_device_code,
};
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};
use proptest::prelude::*;

/// Two objects, a device link of both, and code that needs none between them.
const ALL: &str = "OBJECT(_a, SM(80), PTX(90)) WHOLE(SM(120)) OBJECT(_b, SM_A(90)) \
    LINK(SM(80), SM(90)) LINKS(_a) LINKS(_b)";

fn compile(dir: &Path, code: &str, flags: &[&str], name: &str) -> Result<PathBuf> {
    let (source, output) = (dir.join("code.c"), dir.join(name));
    fs::write(&source, format!("#include \"device-code.h\"\n{code}\n"))?;
    let mut cc = Command::new("cc");
    cc.arg("-I")
        .arg(repository().join("cargo-gpustub/tests/check"));
    succeed(cc.args(flags).arg(&source).arg("-o").arg(&output))?;
    Ok(output)
}

fn read(path: &Path) -> Result<DeviceCode> {
    Ok(read_device_code(&fs::read(path)?)?)
}

/// All facts that were read, as one line.
fn reported(code: &DeviceCode) -> String {
    let modules: Vec<String> = (code.modules.iter())
        .map(|module| format!("{}:{}", module.id, joined(&module.archs)))
        .collect();
    format!(
        "{modules:?} links {:?} for {} exports {:?} takes {:?}",
        code.links,
        joined(&code.linked),
        code.exported,
        code.interposable
    )
}

fn joined(archs: &BTreeSet<Arch>) -> String {
    let names: Vec<String> = archs.iter().map(ToString::to_string).collect();
    names.join("+")
}

const MODULES: &str =
    r#"["_a:sm_80+compute_90", "_b:sm_90a"] links {"_a", "_b"} for sm_80+sm_90 exports"#;

#[test]
fn device_code_is_equal_in_every_kind_of_image() -> Result<()> {
    let dir = scratch()?;
    let main = format!("{ALL} int main(void) {{ return 0; }}");
    let both = r#"{"_a", "_b"}"#;
    for (flags, code, [exported, interposable]) in [
        (&["-shared", "-fPIC"][..], ALL, [both, both]),
        // The addresses are in the file, not in the relocations.
        (
            &["-shared", "-fPIC", "-Wl,-z,pack-relative-relocs"],
            ALL,
            [both, both],
        ),
        (&["-no-pie"], &main, ["{}", "{}"]),
        (&["-pie", "-fPIE"], &main, ["{}", "{}"]),
        (&["-pie", "-fPIE", "-rdynamic"], &main, [both, "{}"]),
        (&["-static"], &main, ["{}", "{}"]),
        (
            &["-shared", "-fPIC", "-fvisibility=hidden"],
            ALL,
            ["{}", "{}"],
        ),
        (
            &["-shared", "-fPIC", "-fvisibility=protected"],
            ALL,
            [both, "{}"],
        ),
        (&["-shared", "-fPIC", "-Wl,-Bsymbolic"], ALL, [both, "{}"]),
    ] {
        let image = compile(dir.path(), code, flags, "image")?;
        let expected = format!("{MODULES} {exported} takes {interposable}");
        assert_eq!(reported(&read(&image)?), expected, "{flags:?}");
        succeed(Command::new("strip").arg(&image))?;
        assert_eq!(reported(&read(&image)?), expected, "{flags:?}, stripped");
    }
    Ok(())
}

/// lld leaves zeros in the file at the addresses that the loader writes.
#[test]
fn addresses_are_read_from_relocations() -> Result<()> {
    let dir = scratch()?;
    let image = compile(dir.path(), ALL, &["-shared", "-fPIC"], "image")?;
    let mut bytes = fs::read(&image)?;
    let head = [0xb1, 0x43, 0x62, 0x46, 2, 0, 0, 0];
    let wrapper = bytes.windows(8).position(|window| window == head);
    let field = wrapper.ok_or("no wrapper of a device link")? + head.len();
    bytes[field..field + 8].fill(0);
    assert!(reported(&read_device_code(&bytes)?).starts_with(MODULES));
    Ok(())
}

/// A container of zero length would be read indefinitely.
#[test]
fn empty_containers_end_the_reading() -> Result<()> {
    let dir = scratch()?;
    let code = "__attribute__((section(\"__nv_relfatbin\"))) unsigned long long empty[8] = { 0xBA55ED50 };\n\
        ID(id, \"_a\")";
    let image = compile(dir.path(), code, &["-c"], "object.o")?;
    assert!(reported(&read(&image)?).starts_with(r#"["_a:"] "#));
    Ok(())
}

/// Archive of objects with these names and this code.
fn archive(dir: &Path, name: &str, objects: &[(&str, &str)]) -> Result<PathBuf> {
    let archive = dir.join(name);
    let mut ar = Command::new("ar");
    ar.arg("rc").arg(&archive);
    for (name, code) in objects {
        ar.arg(compile(dir, code, &["-c"], name)?);
    }
    succeed(&mut ar)?;
    Ok(archive)
}

#[test]
fn archive_has_the_device_code_of_its_objects() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let a = ("a.o", "OBJECT(_a, SM(80), PTX(90))");
    let b = ("b.o", "OBJECT(_b, SM(80), SM_A(90))");
    let link = ("link.o", "LINK(SM(80)) LINKS(_a) LINKS(_b)");
    let host = ("host.o", "int host;");
    let objects = archive_device_code_file(&archive(dir, "objects.a", &[a, host, b])?)?;
    let modules = r#"["_a:sm_80+compute_90", "_b:sm_80+sm_90a"] links"#;
    assert_eq!(
        reported(&objects),
        format!("{modules} {{}} for  exports {{}} takes {{}}")
    );
    assert!(!objects.is_device_linked());
    let common: Vec<String> = objects.archs().iter().map(ToString::to_string).collect();
    assert_eq!(common, ["sm_80"]);
    let linked = archive_device_code_file(&archive(dir, "linked.a", &[a, b, link])?)?;
    assert!(reported(&linked).starts_with(&format!(r#"{modules} {{"_a", "_b"}} for sm_80"#)));
    assert!(linked.is_device_linked());
    let alone = archive_device_code_file(&archive(dir, "link.a", &[link, host])?)?;
    assert!(!alone.is_device_linked() && alone.archs().is_empty());
    let missing = archive_device_code_file(&dir.join("missing.a")).unwrap_err();
    assert!(missing.to_string().contains("missing.a"), "{missing}");
    Ok(())
}

/// The library may be meant for use beside the image that device-links it.
#[test]
fn check_reports_no_missing_device_link_for_a_single_library() -> Result<()> {
    let dir = scratch()?;
    let directory = dir.path().join("folder");
    fs::create_dir(&directory)?;
    let code = "OBJECT(_a, SM(80))";
    let library = compile(dir.path(), code, &["-shared", "-fPIC"], "folder/liba.so")?;
    for (path, expected) in [(&library, 0), (&directory, 1)] {
        let mut check = gpustub(&["check", "--message-format", "short"])?;
        let printed = run(check.arg(path))?.stderr;
        assert_eq!(
            printed.matches("[missing-device-link]").count(),
            expected,
            "{printed}"
        );
    }
    Ok(())
}

#[test]
fn code_without_an_id_of_its_own_has_no_architectures() -> Result<()> {
    let dir = scratch()?;
    let code = "OBJECT(_a, SM(80)) CONTAINER(other, \"__nv_relfatbin\", SM(90))";
    let image = compile(dir.path(), code, &["-shared", "-fPIC"], "image")?;
    assert!(reported(&read(&image)?).starts_with(r#"["_a:"] "#));
    Ok(())
}

/// Each section of a hostile file may be its longest one.
#[test]
fn overlapping_sections_are_limited() -> Result<()> {
    let dir = scratch()?;
    let ids: String = (0..200)
        .map(|n| format!("id_of_some_object_{n}\\0"))
        .collect();
    let sections: String = (0..50)
        .map(|n| format!("__attribute__((used, section(\"part{n}\"))) static int s{n} = 1;"))
        .collect();
    let code = format!("ID(ids, \"{ids}\") {sections}");
    let object = compile(dir.path(), &code, &["-c"], "object.o")?;
    let mut bytes = fs::read(&object)?;
    assert_eq!(read_device_code(&bytes)?.modules.len(), 200);
    // ELF64: e_shoff at 40; of a section header sh_name at 0, sh_offset at 24, sh_size at 32.
    let headers = number(&bytes, 40, 8);
    let count = number(&bytes, 60, 2);
    let strings = number(&bytes, 62, 2);
    let names = headers + strings * 64;
    let (names, length) = (number(&bytes, names + 24, 8), number(&bytes, names + 32, 8));
    let name = bytes[names..names + length]
        .windows(15)
        .position(|name| name == b"__nv_module_id\0")
        .ok_or("no such section")?;
    let header = (0..count)
        .map(|index| headers + index * 64)
        .find(|&header| number(&bytes, header, 4) == name)
        .ok_or("no header")?;
    let ids = bytes[header..header + 64].to_vec();
    for index in (1..count).filter(|index| *index != strings) {
        let header = headers + index * 64;
        bytes[header..header + 64].copy_from_slice(&ids);
    }
    let modules = read_device_code(&bytes)?.modules.len();
    assert!((200..1000).contains(&modules), "{modules}");
    Ok(())
}

/// A little-endian number.
fn number(bytes: &[u8], offset: usize, size: usize) -> usize {
    (bytes[offset..offset + size].iter().rev())
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// An image, an object and an archive, undamaged.
fn seeds() -> &'static [Vec<u8>; 3] {
    static SEEDS: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let build = || -> Result<[Vec<u8>; 3]> {
            let dir = scratch()?;
            let flags = ["-shared", "-fPIC", "-nostdlib", "-s"];
            let image = compile(dir.path(), ALL, &flags, "image")?;
            let object = compile(dir.path(), ALL, &["-c"], "object.o")?;
            let archive = dir.path().join("archive.a");
            succeed(Command::new("ar").arg("rc").args([&archive, &object]))?;
            Ok([fs::read(image)?, fs::read(object)?, fs::read(archive)?])
        };
        build().unwrap_or_else(|failure| panic!("{failure:?}"))
    })
}

#[test]
fn seeds_are_read() {
    assert!(seeds().iter().all(|seed| fuzz::device(seed) == 4));
    assert!(archive_device_code(&seeds()[0]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_or_refused(
        seed in 0_usize..3,
        changes in changes(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = overwritten(&seeds()[seed], &changes);
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        fuzz::device(&bytes);
    }
}

/// Each byte of the containers, wrappers and ids, and of all headers, at its extremes.
#[test]
fn each_byte_at_its_extremes() {
    let mut bytes = seeds()[1].clone();
    for offset in 0..bytes.len() {
        let original = bytes[offset];
        for byte in [0, 1, 0x7f, 0xff, original.wrapping_add(1)] {
            bytes[offset] = byte;
            fuzz::device(&bytes);
        }
        bytes[offset] = original;
    }
}
