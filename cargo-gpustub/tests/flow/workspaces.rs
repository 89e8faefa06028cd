//! Workspaces with several packages: location of the files, and rules about several packages.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ACME, cc, ends, gpustub, package, write};

/// Creates a workspace without a package at its root.
fn virtual_workspace(directory: &Path) {
    write(
        directory,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\n",
    );
    for name in ["a", "b"] {
        package(&directory.join(name), name, "");
    }
}

#[test]
fn the_file_at_a_virtual_root_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    write(directory, "a/GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    write(
        directory,
        "GpuStub.toml",
        "schema = 1\n[stub.cudart]\n[policy]\nplatform-tg = \"x\"\n",
    );
    for command in ["sync", "plan"] {
        let (_, err) = ends(1, directory, &[command]);
        assert!(err.contains("did you mean `platform-tag`?"), "{err}");
        assert!(err.contains("error[misplaced-table]"), "{err}");
        assert!(err.contains("GpuStub.toml:2:7"), "{err}");
    }
    write(
        directory,
        "GpuStub.toml",
        "schema = 1\n[policy]\nplatform-tag = \"manylinux_2_28\"\n",
    );
    ends(0, directory, &["sync"]);
    ends(
        0,
        &directory.join("b/src"),
        &["sync", "--workspace", "--check"],
    );
}

/// At the root all members are checked, whatever cargo builds by default; elsewhere the package of the
/// directory. A check without a `GpuStub.toml` says so.
#[test]
fn check_at_the_root_checks_the_workspace() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    let stub = "schema = 1\n[stub.cudart]\n";
    write(directory, "b/GpuStub.toml", stub);
    let root = "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\n";
    let package = "[package]\nname = \"root\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    write(directory, "src/lib.rs", "");
    for manifest in [
        format!("{root}default-members = [\"a\"]\n"),
        format!("{package}{root}"),
    ] {
        write(directory, "Cargo.toml", &manifest);
        for working_directory in [directory, &directory.join("src")] {
            let (_, err) = ends(1, working_directory, &["check"]);
            assert!(err.contains("error[missing-header-version]"), "{err}");
            assert!(!err.contains("nothing declared"), "{err}");
        }
        let note = "note: nothing declared to check: `a` has no GpuStub.toml, but `b` does; see \
                    `--workspace` and `-p`\n     Checked 1 package: nothing found\n";
        for (working_directory, arguments) in [
            (&directory.join("a"), &["check"][..]),
            (&directory.to_owned(), &["check", "-p", "a"]),
            (
                &directory.to_owned(),
                &["check", "--manifest-path", "a/Cargo.toml"],
            ),
        ] {
            let (_, err) = ends(0, working_directory, arguments);
            assert_eq!(err, note);
        }
    }
    fs::remove_file(directory.join("b/GpuStub.toml")).unwrap();
    let (_, err) = ends(0, directory, &["check"]);
    let note = "note: nothing declared to check: none of 3 packages has a GpuStub.toml\n";
    assert!(err.starts_with(note), "{err}");
}

#[test]
fn a_feature_that_the_package_lacks_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "[features]\nnvrtc = []\n");
    let text =
        "schema = 1\n[stub.nvrtc]\nheader-version = \"12\"\nrequired-features = [\"nvrct\"]\n";
    write(directory, "GpuStub.toml", text);
    let (_, err) = ends(1, directory, &["sync"]);
    assert!(err.contains("error[unknown-feature]"), "{err}");
    assert!(err.contains("did you mean `nvrtc`?"), "{err}");
    write(directory, "GpuStub.toml", &text.replace("nvrct", "nvrtc"));
    ends(0, directory, &["sync"]);
}

/// Each package has its own list, and data is left out of both, with a warning.
#[test]
fn two_packages_declare_one_user_defined_library() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    for name in ["a", "b"] {
        write(directory, &format!("{name}/GpuStub.toml"), ACME);
    }
    let code = "int acmeOpen(void) { return 0; }\nint acmeLevel = 3;\n";
    write(directory, "acme.c", code);
    cc(
        directory,
        &["-shared", "-fPIC", "-o", "libacme.so.3", "acme.c"],
    );
    for name in ["a", "b"] {
        let add = ["add", "acme", "--from", "libacme.so.3", "-p", name];
        let (_, err) = ends(0, directory, &add);
        assert!(
            err.contains("warning[data-symbol]") && err.contains("acmeLevel"),
            "{err}"
        );
        let list = fs::read_to_string(directory.join(name).join("symbols/acme.symbols")).unwrap();
        assert!(list.ends_with("\nacmeOpen\n"), "{list}");
    }
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["sync", "--check"]);
}

/// A message about a list has a span in it, in any working directory.
#[test]
fn a_broken_list_of_a_member_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    write(directory, "a/GpuStub.toml", ACME);
    let list = "@gpustub-symbols 1\nacmeOpen\nacmeClose weak weak\n";
    write(directory, "a/symbols/acme.symbols", list);
    let (_, err) = ends(1, directory, &["sync"]);
    assert!(err.contains("--> a/symbols/acme.symbols:3:16"), "{err}");
    assert!(err.contains("acmeClose weak weak"), "{err}");
}

/// Build scripts see `ON_GPU` whether the feature is `on-gpu` or `on_gpu`.
#[test]
fn feature_names_may_use_underscores() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    let features = "[features]\ndefault = [\"on-gpu\"]\non-gpu = []\n";
    package(&directory.join("a"), "a", features);
    let text = "schema = 1\n[stub.cudart]\nprovide = false\nrequired-features = [\"on_gpu\"]\n";
    write(directory, "a/GpuStub.toml", text);
    let b = directory.join("b");
    package(&b, "b", "[dependencies]\na = { path = \"../a\" }\n");
    write(&b, "src/main.rs", "fn main() {}\n");

    let (out, err) = ends(0, directory, &["plan", "-p", "b"]);
    assert!(out.contains("from another package: cudart"), "{out}");
    assert!(err.contains("warning[missing-provider]"), "{err}");
}

/// The root's policy applies everywhere, a package's own there, and the command line above both.
#[test]
fn policies_of_root_and_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    for name in ["a", "b"] {
        let policy = match name {
            "a" => "",
            _ => "[policy.rules]\nunsupported-header-version = \"allow\"\n",
        };
        let text = format!("schema = 1\n[stub.cudart]\nheader-version = \"13.77\"\n{policy}");
        write(directory, &format!("{name}/GpuStub.toml"), &text);
        helper(directory, name);
    }
    let rules = "schema = 1\n[policy.rules]\nunsupported-header-version = \"deny\"\n";
    write(directory, "GpuStub.toml", rules);
    let (_, err) = ends(0, directory, &["sync", "--workspace"]);
    assert!(!err.contains("misplaced-table"), "{err}");

    let check = ["check", "--workspace", "--message-format", "short"];
    let (_, err) = ends(1, directory, &check);
    assert!(
        err.contains("a/GpuStub.toml:3:18: error[unsupported-header-version]")
            && !err.contains("b/GpuStub.toml"),
        "{err}"
    );
    let (_, err) = ends(
        1,
        &directory.join("a"),
        &["check", "--message-format", "short"],
    );
    assert!(
        err.starts_with("GpuStub.toml:3:18: error[unsupported-header-version]"),
        "{err}"
    );
    ends(0, &directory.join("b"), &["check"]);
    ends(
        0,
        directory,
        &[&check[..], &["--warn", "unsupported-header-version"]].concat(),
    );
    let (_, err) = ends(
        1,
        directory,
        &[&check[..], &["-D", "unsupported-header-version"]].concat(),
    );
    assert!(
        err.contains("b/GpuStub.toml:3:18: error[unsupported-header-version]"),
        "{err}"
    );

    // The policy applies to files, too; errors in it are reported with their span.
    write(
        directory,
        "GpuStub.toml",
        &rules.replace("unsupported-header", "unsupported-haeder"),
    );
    let (_, err) = ends(1, directory, &["check", "a/src/lib.rs"]);
    assert!(
        err.contains("error[unknown-rule]: unknown rule `unsupported-haeder-version`"),
        "{err}"
    );
    assert!(
        err.contains("GpuStub.toml:3:1")
            && err.contains("did you mean `unsupported-header-version`?"),
        "{err}"
    );
}

/// Levels of `missing-header-version` cannot be set, neither in a policy nor by options.
#[test]
fn codes_that_are_no_rules_cannot_be_configured() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "demo", "");
    let no_rule = "`missing-header-version` is the code of a diagnostic that is not a rule; \
                   only levels of rules can be configured";
    for policy in [
        "[policy.rules]\nmissing-header-version = \"allow\"\n",
        "[[policy.allow]]\nrule = \"missing-header-version\"\npath = \"*\"\nreason = \"old\"\n",
    ] {
        write(directory, "GpuStub.toml", &format!("schema = 1\n{policy}"));
        let (_, err) = ends(1, directory, &["check", "src/lib.rs"]);
        let expected = "error[unknown-rule]: unknown rule `missing-header-version`";
        assert!(err.contains(expected) && err.contains(no_rule), "{err}");
    }
    let option = ["check", "-A", "missing-header-version", "src/lib.rs"];
    let (_, err) = ends(2, directory, &option);
    assert!(err.contains(no_rule), "{err}");
}

#[test]
fn errors_in_a_policy_are_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "demo", "");
    let text = "schema = 1\n[policy]\nplatform-tag = \"manylinux_9\"\n[policy.rules]\nunsupported-header-version = \"forbid\"\n";
    write(directory, "GpuStub.toml", text);
    let expected = [
        "GpuStub.toml:3:16: error[invalid-value]: invalid value \"manylinux_9\" of `policy.platform-tag`",
        "GpuStub.toml:5:30: error[invalid-value]: `policy.rules.unsupported-header-version` does not take \"forbid\"",
    ];
    for paths in [&[][..], &["src"]] {
        let arguments = [&["check", "--message-format", "short"], paths].concat();
        let (_, err) = ends(1, directory, &arguments);
        let reported: Vec<&str> = err
            .lines()
            .filter(|line| line.contains("invalid-value"))
            .collect();
        assert_eq!(reported, expected, "{err}");
    }
}

/// An expired exception does not apply, and is reported.
#[test]
fn expired_exceptions_do_not_apply() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    helper(directory, "a");
    let text = "schema = 1\n[stub.cudart]\nheader-version = \"13.77\"\n[[policy.allow]]\nrule = \"unsupported-header-version\"\n\
                reason = \"soon\"\nuntil = \"2027-01-31\"\n";
    write(directory, "a/GpuStub.toml", text);
    ends(0, directory, &["sync"]);
    let check = ["check", "-D", "all", "--today"];
    ends(0, directory, &[&check[..], &["2027-01-31"]].concat());
    let (_, err) = ends(1, directory, &[&check[..], &["2027-02-01"]].concat());
    assert!(
        err.contains("`[[policy.allow]]` in a/GpuStub.toml expired on 2027-01-31"),
        "{err}"
    );
    assert!(!err.contains("unused-allow"), "{err}");
    ends(2, directory, &[&check[..], &["2027-02-30"]].concat());
}

/// Creates an empty build helper in place of the published one.
fn helper(directory: &Path, member: &str) {
    package(&directory.join("helper"), "gpustub-build", "");
    let needs = "[build-dependencies]\ngpustub-build = { path = \"../helper\" }\n";
    package(&directory.join(member), member, needs);
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(directory)
        .args(["-c", "user.name=x", "-c", "user.email=x@example.org"]);
    let output = git.args(arguments).output().expect("these tests need git");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn fix_applies_safe_fixes_and_requires_a_clean_git_state() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    virtual_workspace(directory);
    helper(directory, "a");
    write(
        directory,
        "toolkit/include/cuda.h",
        "#define CUDA_VERSION 12080\n",
    );
    let text = "schema = 1\n\n# the runtime\n[stub.cudart] # one\n\n[stub.nvrtc]\nheader-version = \"12.8\"\n\
                load-names = { linux = [\"libnvrtc.so.12\", \"libnvrtc.so.11\"] }\n\n\
                [[policy.allow]]\nrule = \"mixed-header-versions\"\nreason = \"it was so\"\n";
    write(directory, "a/GpuStub.toml", text);

    let (code, err) = fix(directory, &[]);
    assert_eq!(code, Some(101), "{err}");
    assert!(
        err.contains("a/GpuStub.toml would be changed by --fix without version control"),
        "{err}"
    );
    git(directory, &["init", "-q"]);
    let (code, err) = fix(directory, &[]);
    assert_eq!(code, Some(101), "{err}");
    assert!(err.contains("uncommitted changes: a/GpuStub.toml"), "{err}");
    assert_eq!(
        fs::read_to_string(directory.join("a/GpuStub.toml")).unwrap(),
        text
    );

    git(directory, &["add", "-A"]);
    git(directory, &["commit", "-qm", "x"]);
    let (code, err) = fix(directory, &[]);
    assert_eq!(code, Some(0), "{err}");
    let fixed = text
        .replace(
            "[stub.cudart] # one\n",
            "[stub.cudart] # one\nheader-version = \"12.8\"\n",
        )
        .replace(
            "\"libnvrtc.so.11\"",
            "\"libnvrtc.so.11.2\", \"libnvrtc.so.11.1\", \"libnvrtc.so.11.0\"",
        );
    let fixed = fixed.split("\n[[policy").next().unwrap();
    assert_eq!(
        fs::read_to_string(directory.join("a/GpuStub.toml")).unwrap(),
        fixed
    );
    for file in ["a/GpuStub.toml", "a/build.rs", "GpuStub.lock"] {
        assert!(err.contains(&format!("Fixed {file}\n")), "{err}");
    }
    ends(0, directory, &["sync", "--check"]);

    // Uncommitted now, and completely fixed.
    let (code, err) = fix(directory, &[]);
    assert!(code == Some(0) && !err.contains("Fixed"), "{err}");
    write(directory, "a/GpuStub.toml", &format!("{text}# more\n"));
    assert_eq!(fix(directory, &[]).0, Some(101));
    assert_eq!(fix(directory, &["--allow-dirty"]).0, Some(0));
}

/// Runs `check --fix` with the toolkit in `toolkit`; returns the exit code and standard error.
fn fix(directory: &Path, options: &[&str]) -> (Option<i32>, String) {
    let output = gpustub(directory, &[&["check", "--fix"], options].concat())
        .env("CUDA_HOME", directory.join("toolkit"))
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), err)
}
