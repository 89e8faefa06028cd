//! Tools of distributions leave a super-archive as it is with the settings of docs/archive.md; without them they strip
//! it, and `refresh` restores it.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_superarchive::refresh;
use gpustub_tests::Result;
use gpustub_tests::command::{path_with, succeed};
use gpustub_tests::components::component;
use gpustub_tests::readme::blocks;
use gpustub_tests::scratch::scratch;

use crate::refresh::verify;

const CONTROL: &str = "Source: demo\nMaintainer: A <a@example.org>\nBuild-Depends: debhelper-compat (= 13)\n\n\
    Package: demo\nArchitecture: any\nDescription: demo\n";
const CHANGELOG: &str = "demo (1.0) unstable; urgency=low\n\n  * New.\n\n \
    -- A <a@example.org>  Mon, 01 Jan 2024 00:00:00 +0000\n";
const SPEC: &str = "Name: demo\nVersion: 1\nRelease: 1\nSummary: demo\nLicense: MIT\n%global debug_package %{nil}\n\
    %description\n%install\nmkdir -p %{buildroot}/usr/lib\ncp %{from}/*.* %{buildroot}/usr/lib\n\
    %check\ncp %{buildroot}/usr/lib/*.* %{to}\n%files\n/usr/lib/*\n";

/// The only block of a kind on the page.
fn setting(kind: &str) -> Result<String> {
    let mut blocks = blocks("docs/archive.md")?
        .into_iter()
        .filter(|block| block.kind == kind);
    match (blocks.next(), blocks.next()) {
        (Some(block), None) => Ok(block.text),
        _ => Err(format!("not one block `{kind}`").into()),
    }
}

/// A tool of the component.
fn tool(name: &str, dir: &Path) -> Result<Command> {
    let root = component("packaging")?;
    let mut command = Command::new(name);
    command.current_dir(dir);
    command.env("PATH", path_with(&root.join("usr/bin"))?);
    command.env("LD_LIBRARY_PATH", root.join("usr/lib/x86_64-linux-gnu"));
    command.env("MAGIC", root.join("usr/lib/file/magic.mgc"));
    command.env("PERL5LIB", root.join("usr/share/perl5"));
    command.env("RPM_CONFIGDIR", root.join("usr/lib/rpm"));
    Ok(command)
}

/// Copies `all.a` to files with these names.
fn copy_archive(dir: &Path, to: &Path, names: &[&str]) -> Result<()> {
    fs::create_dir_all(to)?;
    for name in names {
        fs::copy(dir.join("all.a"), to.join(name))?;
    }
    Ok(())
}

/// Names of the files that are not `all.a`. `refresh` restores them.
fn stripped<'n>(dir: &Path, files: &Path, names: &[&'n str]) -> Result<Vec<&'n str>> {
    let original = fs::read(dir.join("all.a"))?;
    let mut stripped = Vec::new();
    for &name in names {
        let mut bytes = fs::read(files.join(name))?;
        if bytes != original {
            assert!(verify(&bytes).is_err(), "{name}");
            refresh(&mut bytes).map_err(|e| format!("{name}: {e}"))?;
            assert_eq!(verify(&bytes), Ok(()), "{name}");
            stripped.push(name);
        }
    }
    Ok(stripped)
}

const NAMES: [&str; 3] = ["liball.a", "all.a", "all.bin"];

#[test]
#[ignore = "needs debhelper: ./tests/run --all"]
fn heavy_debhelper_keeps_the_excluded_file() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    crate::refresh::write(dir)?;
    let files = dir.join("debian/demo/usr/lib");
    let run_debhelper = |rules: &str| -> Result<Vec<&str>> {
        copy_archive(dir, &files, &NAMES)?;
        for (name, text) in [
            ("control", CONTROL),
            ("changelog", CHANGELOG),
            ("rules", rules),
        ] {
            fs::write(dir.join("debian").join(name), text)?;
        }
        succeed(tool("make", dir)?.args(["-f", "debian/rules", "override_dh_strip"]))?;
        stripped(dir, &files, &NAMES)
    };
    assert_eq!(
        run_debhelper("override_dh_strip:\n\tdh_strip\n")?,
        ["liball.a"]
    );
    assert!(run_debhelper(&setting("make")?)?.is_empty());
    Ok(())
}

#[test]
#[ignore = "needs rpm: ./tests/run --all"]
fn heavy_rpm_keeps_the_file() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    crate::refresh::write(dir)?;
    let (from, to) = (dir.join("from"), dir.join("to"));
    fs::create_dir(&to)?;
    copy_archive(dir, &from, &NAMES)?;
    let run_rpm = |setting: &str| -> Result<Vec<&str>> {
        fs::write(dir.join("all.spec"), format!("{setting}{SPEC}"))?;
        let mut rpm = tool("rpmbuild", dir)?;
        let directories = [
            ("from", from.clone()),
            ("to", to.clone()),
            ("_topdir", dir.join("top")),
            ("_dbpath", dir.join("database")),
            ("_rpmconfigdir", component("packaging/usr/lib/rpm")?),
        ];
        for (name, path) in directories {
            rpm.arg("--define")
                .arg(format!("{name} {}", path.display()));
        }
        succeed(rpm.args(["-bb", "all.spec"]))?;
        stripped(dir, &to, &NAMES)
    };
    assert_eq!(run_rpm("")?, NAMES);
    assert!(run_rpm(&setting("spec")?)?.is_empty());
    Ok(())
}
