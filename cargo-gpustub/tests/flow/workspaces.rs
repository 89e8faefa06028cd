//! More than one package: what stands where, and what concerns several of them.

use std::fs;

use super::{ACME, cc, ends, package, write};

/// A workspace without a package at its root.
fn virtual_workspace(folder: &std::path::Path) {
    write(
        folder,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\n",
    );
    for name in ["a", "b"] {
        package(&folder.join(name), name, "");
    }
}

#[test]
fn the_file_at_a_virtual_root_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    virtual_workspace(folder);
    write(folder, "a/GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    write(
        folder,
        "GpuStub.toml",
        "schema = 1\n[stub.cudart]\n[policy]\nwheel-tg = \"x\"\n",
    );
    for command in ["sync", "plan"] {
        let (_, err) = ends(1, folder, &[command]);
        assert!(err.contains("did you mean `wheel-tag`?"), "{err}");
        assert!(err.contains("error[misplaced-table]"), "{err}");
        assert!(err.contains("GpuStub.toml:2:7"), "{err}");
    }
    write(
        folder,
        "GpuStub.toml",
        "schema = 1\n[policy]\nwheel-tag = \"manylinux_2_28\"\n",
    );
    ends(0, folder, &["sync"]);
    ends(
        0,
        &folder.join("b/src"),
        &["sync", "--workspace", "--check"],
    );
}

#[test]
fn a_feature_that_the_package_lacks_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    package(folder, "user", "[features]\nnvrtc = []\n");
    let text = "schema = 1\n[stub.nvrtc]\noptional = { feature = \"nvrct\" }\n";
    write(folder, "GpuStub.toml", text);
    let (_, err) = ends(1, folder, &["sync"]);
    assert!(err.contains("error[unknown-feature]"), "{err}");
    assert!(err.contains("did you mean `nvrtc`?"), "{err}");
    write(folder, "GpuStub.toml", &text.replace("nvrct", "nvrtc"));
    ends(0, folder, &["sync"]);
}

/// Each package has its own list, and data is left out of both, not in silence.
#[test]
fn one_library_of_ones_own_in_two_packages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    virtual_workspace(folder);
    for name in ["a", "b"] {
        write(folder, &format!("{name}/GpuStub.toml"), ACME);
    }
    let code = "int acmeOpen(void) { return 0; }\nint acmeLevel = 3;\n";
    write(folder, "acme.c", code);
    cc(
        folder,
        &["-shared", "-fPIC", "-o", "libacme.so.3", "acme.c"],
    );
    let (_, err) = ends(0, folder, &["sync", "--from", "acme=libacme.so.3"]);
    assert!(
        err.contains("warning[data-symbol]") && err.contains("acmeLevel"),
        "{err}"
    );
    for name in ["a", "b"] {
        let list = fs::read_to_string(folder.join(name).join("symbols/acme.symbols")).unwrap();
        assert!(list.ends_with("\nacmeOpen\n"), "{list}");
    }
    ends(0, folder, &["sync", "--check"]);
}

/// A message about a list points into it, wherever the command runs.
#[test]
fn a_broken_list_of_a_member_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    virtual_workspace(folder);
    write(folder, "a/GpuStub.toml", ACME);
    let list = "@gpustub-symbols 1\nacmeOpen\nacmeClose weak weak\n";
    write(folder, "a/symbols/acme.symbols", list);
    let (_, err) = ends(1, folder, &["sync"]);
    assert!(err.contains("--> a/symbols/acme.symbols:3:16"), "{err}");
    assert!(err.contains("acmeClose weak weak"), "{err}");
}

/// Build scripts see `ON_GPU` whether the feature is `on-gpu` or `on_gpu`.
#[test]
fn a_feature_may_be_spelt_as_build_scripts_see_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    virtual_workspace(folder);
    let features = "[features]\ndefault = [\"on-gpu\"]\non-gpu = []\n";
    package(&folder.join("a"), "a", features);
    let text = "schema = 1\n[stub.cudart]\nprovide = false\noptional = { feature = \"on_gpu\" }\n";
    write(folder, "a/GpuStub.toml", text);
    let b = folder.join("b");
    package(&b, "b", "[dependencies]\na = { path = \"../a\" }\n");
    write(&b, "src/main.rs", "fn main() {}\n");

    let (out, err) = ends(0, folder, &["plan", "-p", "b"]);
    assert!(out.contains("from another package: cudart"), "{out}");
    assert!(err.contains("warning[no-provider]"), "{err}");
}

#[test]
fn a_policy_beside_a_member_is_told_to_be_unused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let policy = "[policy]\nwheel-tag = \"manylinux_2_28\"\n";
    virtual_workspace(folder);
    let text = format!("schema = 1\n[stub.opencl]\n{policy}");
    write(folder, "a/GpuStub.toml", &text);
    for command in [&["plan"][..], &["add", "opencl", "-p", "a"], &["sync"]] {
        let (_, err) = ends(0, folder, command);
        assert!(err.contains("warning[misplaced-table]"), "{err}");
        assert!(err.contains("a/GpuStub.toml:3:2"), "{err}");
        assert!(err.contains("move it to GpuStub.toml"), "{err}");
    }

    // A package that is a workspace by itself has it in its place.
    let alone = tempfile::tempdir().unwrap();
    package(alone.path(), "alone", "");
    write(alone.path(), "GpuStub.toml", &text);
    let (_, err) = ends(0, alone.path(), &["sync"]);
    assert!(!err.contains("misplaced-table"), "{err}");
}
