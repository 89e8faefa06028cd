//! Limits of the crates that a user of this crate has to compile.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn at_most_eight_foreign_crates() {
    at_most(8, &[]);
}

#[test]
fn at_most_eight_with_device_links() {
    at_most(8, &["--features", "device-link"]);
}

#[test]
fn at_most_fourteen_with_archives() {
    at_most(14, &["--features", "archive"]);
    at_most(14, &["--all-features"]);
}

fn at_most(limit: usize, features: &[&str]) {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "-p",
            "gpustub-build",
            "-e",
            "normal,build",
        ])
        .args(features)
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
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
