//! Triples of the command line: a misspelt one is an error that names the nearest.

use std::env::consts::ARCH;
use std::process::Command;

use gpustub_core::suggest::nearest;
use gpustub_core::target::{SUPPORTED, Target};

use crate::environment::variable;
use crate::error::{Error, Result};

/// Parts of triples that compilers and people write, and those of Rust.
const SYSTEMS: [(&str, &str); 6] = [
    ("linux", "linux"),
    ("freebsd", "freebsd"),
    ("darwin", "darwin"),
    ("macos", "darwin"),
    ("mingw", "windows"),
    ("win", "windows"),
];

/// Target of a triple, unless no compiler knows it.
pub(crate) fn target(triple: &str) -> Result<Target> {
    target_among(triple, rustc_triples())
}

/// Target of a triple, one of these. Without Rust only the form is checked.
fn target_among(triple: &str, known: Option<Vec<String>>) -> Result<Target> {
    let target = Target::from_triple(triple);
    let Some(known) = known else {
        return target.ok_or_else(|| unknown(triple, &[]));
    };
    match target {
        Some(target) if known.iter().any(|name| name == triple) || is_of_vendor(&target) => {
            Ok(target)
        }
        _ => Err(unknown(triple, &known)),
    }
}

/// Target of a well-formed triple.
pub(crate) fn parse(triple: &str) -> Result<Target> {
    Target::from_triple(triple).ok_or_else(|| unknown(triple, &[]))
}

/// Names of rustc's targets. `None`: it does not run.
fn rustc_triples() -> Option<Vec<String>> {
    let rustc = variable("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-list"])
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(str::to_owned).collect())
}

/// Whether a triple is another vendor's name of a target with stubs, such as `x86_64-alpine-linux-musl`, or that of a C
/// compiler, such as `x86_64-linux-gnu`.
fn is_of_vendor(target: &Target) -> bool {
    let env = target.triple.rsplit('-').next().unwrap_or_default();
    let is_env = ["gnu", "musl", "gnueabihf", "musleabihf", "freebsd"].contains(&env);
    is_env && target.os != "windows" && target.check().is_none()
}

fn unknown(triple: &str, known: &[String]) -> Error {
    let names = || known.iter().map(String::as_str);
    let supported: Vec<&str> = names().filter(|name| has_stubs(name)).collect();
    let similar = nearest(triple, supported.iter().copied().chain(names()))
        .or_else(|| of_same_system(triple, &supported));
    let lists = "`rustc --print target-list` lists all targets, docs/targets.md those with stubs";
    Error::new(format!("unknown target `{triple}`")).help(match similar {
        Some(similar) => format!("did you mean `{similar}`? {lists}"),
        None => format!("{lists}: {}", SUPPORTED.join("; ")),
    })
}

fn has_stubs(triple: &str) -> bool {
    Target::from_triple(triple).is_some_and(|target| target.check().is_none())
}

/// The first target of the system that a word contains, for its machine or this one.
fn of_same_system<'a>(triple: &str, supported: &[&'a str]) -> Option<&'a str> {
    let (_, system) = SYSTEMS.iter().find(|(word, _)| triple.contains(word))?;
    let arch_of = |name: &'a str| name.split('-').next().unwrap_or_default();
    let arch = supported
        .iter()
        .map(|name| arch_of(name))
        .find(|arch| triple.split('-').next() == Some(arch))
        .unwrap_or(ARCH);
    supported
        .iter()
        .copied()
        .find(|name| arch_of(name) == arch && name.split('-').any(|part| part == *system))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some of rustc's targets, in its order.
    const KNOWN: [&str; 8] = [
        "aarch64-apple-darwin",
        "aarch64-pc-windows-gnullvm",
        "aarch64-pc-windows-msvc",
        "i686-pc-windows-gnu",
        "x86_64-pc-windows-gnu",
        "x86_64-pc-windows-gnullvm",
        "x86_64-pc-windows-msvc",
        "x86_64-unknown-linux-gnu",
    ];

    #[test]
    fn misspelt_triples_have_a_nearest_one() {
        let windows = ["x86_64-pc-windows-gnu", "x86_64-pc-windows-msvc"];
        for (triple, similar) in [
            ("x86_64-pc-windows-gn", Some(windows[0])),
            ("x86_64-pc-windows-gnuu", Some(windows[0])),
            ("x86_64-w64-mingw32", Some(windows[0])),
            ("x86_64-windows-gnu", Some(windows[0])),
            ("x86_64-pc-windows-msv", Some(windows[1])),
            ("x86_64-windows", Some(windows[0])),
            ("aarch64-w64-mingw32", Some("aarch64-pc-windows-gnullvm")),
            ("x86_64-unknown-linux", Some("x86_64-unknown-linux-gnu")),
            (
                "x86_64-unknown-linux-gnuu",
                Some("x86_64-unknown-linux-gnu"),
            ),
            ("aarch64-macos", Some("aarch64-apple-darwin")),
            ("i686-pc-windows-gn", Some("i686-pc-windows-gnu")),
            ("what", None),
            ("../../etc/passwd", None),
            ("", None),
        ] {
            let known = KNOWN.map(str::to_owned).to_vec();
            let error = target_among(triple, Some(known)).unwrap_err();
            assert_eq!(error.to_string(), format!("unknown target `{triple}`"));
            let help = error.help.as_deref().unwrap();
            match similar {
                Some(similar) => assert!(
                    help.starts_with(&format!("did you mean `{similar}`? ")),
                    "{triple}: {help}"
                ),
                None => assert!(help.ends_with(" for Linux"), "{triple}: {help}"),
            }
            assert!(help.contains("`rustc --print target-list`"), "{help}");
        }
    }

    #[test]
    fn triples_of_rustc_and_of_vendors_are_known() {
        for triple in [
            "x86_64-pc-windows-gnu",
            "aarch64-pc-windows-gnullvm",
            "x86_64-unknown-linux-gnux32",
            "sparc64-unknown-linux-gnu",
            "x86_64-unknown-linux-musl",
            "x86_64-alpine-linux-musl",
            "aarch64-linux-gnu",
        ] {
            assert_eq!(target(triple).unwrap().triple, triple);
        }
    }
}
