//! `plan` and `check` on workspaces with relocatable CUDA code. No nvcc is needed.

use std::path::Path;

use super::cuda::{dependencies_on, diamond, plain, program, rdc, workspace};
use super::{cc, ends, repository, write};

/// Output lines about device links, all or those of the nodes with this prefix.
pub fn lines(out: &str, prefix: &str) -> Vec<String> {
    let (_, links) = out.split_once("device links\n").unwrap_or_default();
    links
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_diamond_has_one_link_over_all() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    // No device link of the program yet.
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(err.contains("error[indirect-device-library]"), "{err}");
    let reported =
        "device link of app/bin/app, app/bin-tests/app does not receive left, right, base";
    assert!(err.contains(reported), "{err}");
    assert!(err.contains("--> app/Cargo.toml"), "{err}");

    ends(0, directory, &["sync", "--workspace"]);
    let (out, err) = ends(0, directory, &["plan"]);
    assert!(err.is_empty(), "{err}");
    let app_link = "device link: left right base (2 most derived: left right); \
                    links left.a right.a base.a; for sm_80";
    assert_eq!(
        lines(&out, ""),
        [
            "base: artifacts objects+static",
            "left: artifacts objects+static",
            "right: artifacts objects+static",
            "base/rlib: passed on to dependents: base",
            "left/rlib: passed on to dependents: left base",
            "right/rlib: passed on to dependents: right base",
            &format!("app/bin/app: {app_link}"),
            &format!("app/bin-tests/app: {app_link}"),
            "base/lib-tests: device link: base (static RDC below); links base.a; for sm_80",
            "left/lib-tests: device link: left base (static RDC below); links left.a base.a; \
             for sm_80",
            "right/lib-tests: device link: right base (static RDC below); links right.a base.a; \
             for sm_80",
        ]
    );
    // One program needs no more than its own packages.
    let (out, _) = ends(0, directory, &["plan", "-p", "base"]);
    assert_eq!(lines(&out, "").len(), 3, "{out}");
    ends(0, directory, &["check", "--workspace"]);
}

#[test]
fn code_is_found_through_crates_without_device_code() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    plain(directory, "inner", &dependencies_on(&["base"]));
    plain(directory, "outer", &dependencies_on(&["inner"]));
    plain(directory, "aside", "");
    let manifest = "[lib]\ncrate-type = [\"cdylib\", \"staticlib\"]\n".to_owned();
    plain(directory, "c", &(manifest + &dependencies_on(&["outer"])));
    program(directory, "app", &dependencies_on(&["outer", "aside"]));
    ends(0, directory, &["sync", "--workspace"]);
    let (out, _) = ends(0, directory, &["plan"]);
    assert!(!out.contains("aside"), "{out}");
    assert_eq!(
        lines(&out, "outer"),
        ["outer/rlib: passed on to dependents: base"]
    );
    assert_eq!(
        lines(&out, "app/bin/"),
        ["app/bin/app: device link: base (static RDC below); links base.a; for sm_80"]
    );
    assert_eq!(
        lines(&out, "c/"),
        [
            "c/cdylib: device link: base (closed image); links base.a; for sm_80",
            "c/staticlib: device link: base (static RDC below); links base.a; for sm_80",
            "c/lib-tests: device link: base (static RDC below); links base.a; for sm_80",
        ]
    );

    let (out, _) = ends(0, directory, &["plan", "--why", "app/bin/app"]);
    assert!(out.contains("base (static), through base/rlib\n"), "{out}");
    let (_, err) = ends(101, directory, &["plan", "--why", "app"]);
    assert!(err.contains("app/bin/app, app/bin-tests/app"), "{err}");
    let (_, err) = ends(101, directory, &["plan", "--why", "app/bin/ap"]);
    assert!(err.contains("did you mean `app/bin/app`?"), "{err}");
    let (out, _) = ends(0, directory, &["plan", "--format", "dot"]);
    assert!(
        out.starts_with("digraph device_link {") && out.contains("app/bin/app"),
        "{out}"
    );
}

/// A finalizer that was written before a dependency was added.
#[test]
fn plan_reports_a_stale_finalizer() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    rdc(directory, "late", "", "");
    plain(directory, "between", "");
    let dependencies = dependencies_on(&["left", "right", "between"]);
    program(directory, "app", &dependencies);
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["plan"]);
    plain(directory, "between", &dependencies_on(&["late"]));
    for command in ["plan", "check"] {
        let (_, err) = ends(1, directory, &[command]);
        let reported = "device link of app/bin/app, app/bin-tests/app does not receive late";
        assert!(err.contains(reported), "{err}");
    }
    ends(1, directory, &["sync", "--check", "--workspace"]);
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["plan"]);
}

#[test]
fn dev_dependencies_are_only_in_tests() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    let dev = dependencies_on(&["base"]).replace("[dep", "[dev-dep");
    program(directory, "app", &dev);
    let code = "#[test]\nfn it() {}\n";
    write(directory, "app/tests/it.rs", code);
    write(directory, "app/examples/ex.rs", "fn main() {}\n");
    ends(0, directory, &["sync", "--workspace"]);
    let (out, err) = ends(0, directory, &["plan"]);
    assert!(err.is_empty(), "{err}");
    let app_lines = lines(&out, "app/");
    let nodes: Vec<&str> = app_lines
        .iter()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(
        nodes,
        ["app/bin-tests/app", "app/example/ex", "app/test/it"]
    );
    // The tests of a dependency are not built.
    program(
        directory,
        "user",
        "[dependencies]\nlib = { path = \"../lib\" }\n",
    );
    plain(directory, "lib", &dev);
    write(directory, "user/GpuStub.toml", "schema = 1\n");
    let (out, _) = ends(0, directory, &["plan", "-p", "user"]);
    assert!(!out.contains("device links"), "{out}");
}

#[test]
fn build_scripts_and_macros_cannot_have_device_code() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    plain(directory, "middle", &dependencies_on(&["base"]));
    program(
        directory,
        "app",
        &dependencies_on(&["middle"]).replace("[dep", "[build-dep"),
    );
    write(directory, "app/build.rs", "fn main() {}\n");
    plain(
        directory,
        "mac",
        &format!("[lib]\nproc-macro = true\n{}", dependencies_on(&["base"])),
    );
    program(directory, "user", &dependencies_on(&["mac"]));
    let (out, err) = ends(1, directory, &["plan"]);
    for name in ["app/build-script", "mac/proc-macro"] {
        let reported = format!(
            "`{name}` is a build script or procedural macro and reaches relocatable code: base"
        );
        assert!(err.contains(&reported), "{err}");
    }
    assert!(err.contains("error[device-code-in-build-script]"), "{err}");
    // Code that runs at build time is not in the program.
    assert!(
        lines(&out, "app/bin").is_empty() && lines(&out, "user").is_empty(),
        "{out}"
    );
    let (_, err) = ends(1, directory, &["check"]);
    assert!(err.contains("error[device-code-in-build-script]"), "{err}");
}

#[test]
fn features_select_device_libraries() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "[features]\nmore = []\n", "");
    let table = "[device-link.more]\nsources = [\"*.cu\"]\narchs = [\"sm_80\"]\n\
                 requires = [\"base\"]\nrequired-features = [\"more\"]\n";
    let text = std::fs::read_to_string(directory.join("base/GpuStub.toml")).unwrap();
    write(directory, "base/GpuStub.toml", &(text + table));
    rdc(directory, "extra", "", "");
    let app = "[features]\nmore = [\"base/more\"]\nextra = [\"dep:extra\"]\n[dependencies]\n\
               base = { path = \"../base\" }\nextra = { path = \"../extra\", optional = true }\n";
    program(directory, "app", app);
    ends(0, directory, &["sync", "--workspace"]);
    for (features, libraries) in [
        (&[][..], "base"),
        (&["--features", "more"], "more base"),
        (&["--features", "extra"], "base extra"),
        (&["--all-features"], "more base extra"),
    ] {
        let arguments = [&["plan", "-p", "app"][..], features].concat();
        let (out, _) = ends(0, directory, &arguments);
        let line = lines(&out, "app/bin/").concat();
        let (_, link) = line.split_once("device link: ").unwrap();
        assert_eq!(link.split_once(" (").unwrap().0, libraries);
    }
}

#[test]
fn duplicate_names_in_one_program_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    for (name, more) in [("one", ""), ("two", "")] {
        rdc(directory, name, more, "");
        let path = format!("{name}/GpuStub.toml");
        let text = std::fs::read_to_string(directory.join(&path)).unwrap();
        write(
            directory,
            &path,
            &text.replace(&format!("device-link.{name}"), "device-link.same"),
        );
    }
    program(directory, "app", &dependencies_on(&["one"]));
    program(directory, "other", &dependencies_on(&["two"]));
    ends(0, directory, &["sync", "--workspace"]);
    let (out, _) = ends(0, directory, &["plan"]);
    assert!(
        lines(&out, "app/bin/")[0].contains("device link: one/same"),
        "{out}"
    );
    program(directory, "app", &dependencies_on(&["one", "two"]));
    let (_, err) = ends(1, directory, &["plan"]);
    let reported = "`one/same` and `two/same` are both `device-link.same`";
    assert!(
        err.contains("error[duplicate-device-symbol]") && err.contains(reported),
        "{err}"
    );
    assert!(err.contains("--> two/GpuStub.toml:2:14"), "{err}");
}

/// Cargo allows two versions if they have different `links` keys.
#[test]
fn plan_distinguishes_two_versions_of_a_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    rdc(&directory.join("others"), "base", "", "");
    let path = "others/base/Cargo.toml";
    let text = std::fs::read_to_string(directory.join(path)).unwrap();
    let text = text
        .replace("version = \"0.1.0\"", "version = \"0.2.0\"")
        .replace("gpustub-base", "gpustub-base-2")
        .replace("workspace = true", "path = \"../../helper\"");
    write(directory, path, &format!("{text}[workspace]\n"));
    plain(directory, "a", &dependencies_on(&["base"]));
    let dependencies = "[dependencies]\nbase = { path = \"../others/base\" }\n";
    plain(directory, "b", dependencies);
    program(directory, "app", &dependencies_on(&["a", "b"]));
    let (out, err) = ends(1, directory, &["plan"]);
    let reported = "`base@0.1.0/base` and `base@0.2.0/base` are both `device-link.base`";
    assert!(err.contains(reported), "{err}");
    assert_eq!(lines(&out, "base@0.2.0/rlib").len(), 1, "{out}");
    // `sync` writes no files that cargo could not read.
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    let reported = "one program links two versions of `base`, 0.1.0 and 0.2.0";
    assert!(err.contains(reported), "{err}");
    assert!(!directory.join("app/gpustub-final").exists());
}

#[test]
fn architectures_and_runtimes_must_fit() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let path = "left/GpuStub.toml";
    let text = std::fs::read_to_string(directory.join(path)).unwrap();
    write(directory, path, &text.replace("sm_80", "sm_90"));
    let (_, err) = ends(1, directory, &["plan", "-p", "app"]);
    assert!(err.contains("error[missing-arch]"), "{err}");
    let reported =
        "`left` has sm_90; the device link of app/bin/app, app/bin-tests/app needs sm_80";
    assert!(err.contains(reported), "{err}");
    assert!(err.contains("--> left/GpuStub.toml:2:14"), "{err}");

    write(directory, path, &(text + "cudart = \"static\"\n"));
    let (_, err) = ends(1, directory, &["plan", "-p", "app"]);
    assert!(err.contains("error[mixed-cudart]"), "{err}");
    let (_, err) = ends(1, directory, &["check", "-p", "app"]);
    assert!(err.contains("error[mixed-cudart]"), "{err}");
}

#[test]
fn required_libraries_must_be_dependencies() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    let path = "left/GpuStub.toml";
    let text = std::fs::read_to_string(directory.join(path)).unwrap();
    write(directory, path, &text.replace("[\"base\"]", "[\"bas\"]"));
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(
        err.contains("error[unknown-device-library]: `device-link.left` requires `bas`"),
        "{err}"
    );
    assert!(err.contains("--> left/GpuStub.toml:5:13"), "{err}");
    assert!(err.contains("did you mean `base`?"), "{err}");
    // The library exists, but no dependency of this package declares it.
    write(directory, path, &text.replace("[\"base\"]", "[\"right\"]"));
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(
        err.contains("add the package that declares it to [dependencies] of `left`"),
        "{err}"
    );
    write(directory, path, &text);
    let condition = "required-features = [\"gpu\"]\n";
    rdc(directory, "base", "[features]\ngpu = []\n", condition);
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(
        err.contains("the library requires a cargo feature that is off"),
        "{err}"
    );
}

/// The script has not run yet.
#[test]
fn generated_sources_may_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "app", "", "");
    let path = "app/GpuStub.toml";
    let text = std::fs::read_to_string(directory.join(path)).unwrap();
    let generated = "[\"*.cu\", \"$OUT_DIR/*.cu\"]\ninclude-dirs = [\"$OUT_DIR\"]";
    write(directory, path, &text.replace("[\"*.cu\"]", generated));
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["plan"]);
}

/// Prebuilt archives are read in place.
#[test]
fn plan_reads_prebuilt_archives() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    rdc(directory, "app", &dependencies_on(&["base"]), "");
    write(
        &directory.join("app"),
        "src/main.rs",
        "use app as _;\nfn main() {}\n",
    );
    let path = "app/GpuStub.toml";
    let text = std::fs::read_to_string(directory.join(path)).unwrap();
    write(
        directory,
        path,
        &text.replace("sources = [\"*.cu\"]", "prebuilt = \"libacme.a\""),
    );
    // Not built yet: `sync` reports errors of the plan.
    ends(0, directory, &["sync", "--workspace"]);

    prebuilt_archive(directory, "OBJECT(_a, SM(80))");
    ends(0, directory, &["plan"]);
    // The archive has less code than declared.
    prebuilt_archive(directory, "OBJECT(_a, SM(90))");
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(
        err.contains("`app` has sm_90; the device link of") && err.contains("needs sm_80"),
        "{err}"
    );
    // Reported even if no other library needs it: builds rely on the declaration.
    let reported =
        "error[missing-arch]: `archs` of device-link.app is sm_80, but libacme.a has only sm_90";
    assert!(err.contains(reported), "{err}");
    assert!(err.contains("--> app/GpuStub.toml:4:10"), "{err}");
    for command in ["plan", "check"] {
        let (_, err) = ends(1, directory, &[command, "-p", "app"]);
        assert!(err.contains(reported), "{err}");
    }
    prebuilt_archive(directory, "OBJECT(_a, SM(80)) LINK(SM(80)) LINKS(_a)");
    let reported = "[device-linked-archive]: the archive of `app`";
    for command in ["plan", "check"] {
        let (_, err) = ends(1, directory, &[command]);
        assert!(err.contains(&format!("error{reported}")), "{err}");
        assert!(err.contains("--> app/GpuStub.toml:2:14"), "{err}");
    }
    let (_, err) = ends(0, directory, &["check", "-W", "device-linked-archive"]);
    assert!(err.contains(&format!("warning{reported}")), "{err}");
    // Meson's default for libraries that it does not install; rustc cannot bundle them.
    for (archive, problem) in [
        (
            "!<thin>\n",
            "libacme.a is a thin archive, which only names its objects\n",
        ),
        ("!<arch>\n", "libacme.a has no objects\n"),
        ("no archive", "libacme.a is not an archive\n"),
    ] {
        write(directory, "app/libacme.a", archive);
        let (_, err) = ends(1, directory, &["plan"]);
        assert!(err.contains(problem), "{err}");
        assert!(err.contains("--> app/GpuStub.toml:3:12"), "{err}");
    }
}

/// Compiles the archive of `app` from calls of the macros in `device-code.h`.
fn prebuilt_archive(directory: &Path, code: &str) {
    let include = repository().join("cargo-gpustub/tests/check");
    let include = format!("-I{}", include.display());
    let source = format!("#include \"device-code.h\"\n{code}\n");
    write(directory, "a.c", &source);
    cc(directory, &["-w", &include, "-c", "-o", "a.o", "a.c"]);
    let _ = std::fs::remove_file(directory.join("app/libacme.a"));
    let ar = std::process::Command::new("ar")
        .current_dir(directory)
        .args(["crs", "app/libacme.a", "a.o"])
        .status();
    assert!(ar.expect("these tests need an archiver `ar`").success());
}

/// A circle of libraries, and a library that requires itself.
#[test]
fn circles_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    let table = "requires = [\"b\"]\n[device-link.b]\nsources = [\"*.cu\"]\narchs = [\"sm_80\"]\n\
                 requires = [\"a\"]\n";
    rdc(directory, "a", "", table);
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(
        err.contains("libraries require each other: a → b → a"),
        "{err}"
    );
}

#[test]
fn json_plan_has_cargo_targets_of_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let (out, _) = ends(0, directory, &["plan", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let nodes = document["device_link"]["nodes"].as_array().unwrap();
    let app = nodes
        .iter()
        .find(|node| node["name"] == "app/bin/app")
        .unwrap();
    assert_eq!(
        app["cargo"],
        serde_json::json!({"package": "app", "version": "0.1.0", "what": "bin", "target": "app"})
    );
    assert_eq!(
        app["device_link"]["inputs"],
        serde_json::json!(["left", "right", "base"])
    );
    assert_eq!(nodes[0]["cargo"]["what"], "library");
    // Without such code the key exists and is empty.
    plain(directory, "aside", "");
    write(
        directory,
        "aside/GpuStub.toml",
        "schema = 1\n[stub.opencl]\n",
    );
    let (out, _) = ends(0, directory, &["plan", "-p", "aside", "--format", "json"]);
    assert!(out.ends_with("\"device_link\":{\"nodes\":[]}}\n"), "{out}");
}
