//! Limits of the crates that a user of this crate has to compile.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn at_most_three_foreign_crates() {
    at_most(3, &[]);
}

#[test]
fn at_most_six_with_device_links() {
    at_most(6, &["--features", "device-link"]);
}

#[test]
fn at_most_twelve_with_archives() {
    at_most(8, &["--features", "archive"]);
    at_most(12, &["--all-features"]);
}

/// The reader of PE files is for the subcommand.
#[test]
fn object_reads_no_pe_files() {
    let tree = tree(&["--all-features"], &["-e", "features", "--prefix", "none"]);
    assert!(tree.contains("object feature \"elf\""), "{tree}");
    assert!(!tree.contains("object feature \"pe\""), "{tree}");
}

fn at_most(limit: usize, features: &[&str]) {
    let format = ["--prefix", "none", "--format", "{p}"];
    let tree = tree(features, &[&["-e", "normal,build"][..], &format].concat());
    // Crates of this workspace are shown with their directory: `gpustub-core v0.1.0 (/…)`.
    let (local, foreign): (BTreeSet<_>, BTreeSet<_>) = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .partition(|line| line.contains('('));
    assert!(
        local.iter().any(|line| line.starts_with("gpustub-core ")),
        "{tree}"
    );
    assert!(foreign.iter().any(|line| line.starts_with("cc ")), "{tree}");
    assert!(
        foreign.len() <= limit,
        "{} foreign crates: {foreign:#?}",
        foreign.len()
    );
    for heavy in ["serde ", "serde_core ", "syn ", "proc-macro2 "] {
        assert!(
            !foreign.iter().any(|line| line.starts_with(heavy)),
            "{heavy}in {foreign:#?}"
        );
    }
}

/// Output of `cargo tree` for this package.
fn tree(features: &[&str], options: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "gpustub-build"])
        .args(features)
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
