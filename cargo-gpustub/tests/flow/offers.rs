//! `add` beside dependencies that link GPU libraries, or open them with dlopen.

use std::fs;
use std::path::Path;

use super::{ends, package, write};

/// The features of cudarc 0.19.10 that decide about libraries.
const CUDARC: &str = "[package]\nname = \"cudarc\"\nversion = \"0.19.10\"\n[features]\n\
    default = [\"driver\", \"runtime\", \"nvrtc\", \"fallback-dynamic-loading\"]\n\
    driver = []\nruntime = [\"driver\"]\nnvrtc = []\nfallback-dynamic-loading = []\n\
    dynamic-loading = []\ndynamic-linking = []\ncuda-12080 = []\n";

/// A package that depends on cudarc with these features, beside the default ones.
fn user(directory: &Path, features: &str) {
    write(directory, "cudarc/Cargo.toml", CUDARC);
    write(directory, "cudarc/src/lib.rs", "");
    let cudarc = format!(
        "[dependencies]\ncudarc = {{ path = \"../cudarc\", features = [{features}] }}\n\
         [workspace]\n"
    );
    package(&directory.join("user"), "user", &cudarc);
    write(directory, "user/src/main.rs", "fn main() {}\n");
    write(directory, "user/GpuStub.toml", "schema = 1\n");
}

#[test]
fn add_lists_what_dependencies_link() {
    let directory = tempfile::tempdir().unwrap();
    user(directory.path(), "\"dynamic-linking\", \"cuda-12080\"");
    let directory = &directory.path().join("user");
    let manifest = directory.join("GpuStub.toml");

    let (_, err) = ends(0, directory, &["add"]);
    assert!(
        err.contains("Found cudarc 0.19.10, which links cuda, cudart, nvrtc\n"),
        "{err}"
    );
    let header = "header version 12.8 (feature `cuda-12080` of cudarc 0.19.10)";
    assert!(err.contains(header), "{err}");
    assert!(
        err.contains("`cargo gpustub add cuda cudart nvrtc`"),
        "{err}"
    );
    assert_eq!(fs::read_to_string(&manifest).unwrap(), "schema = 1\n");

    let (_, err) = ends(0, directory, &["add", "cuda", "opencl", "--no-sync"]);
    let note = "cudarc 0.19.10 links cudart, nvrtc, too: `cargo gpustub add cudart nvrtc`";
    assert!(err.contains(note), "{err}");
    let (_, err) = ends(0, directory, &["add", "cudart", "nvrtc", "--no-sync"]);
    assert!(!err.contains("links"), "{err}");
    let expected = "schema = 1\n\n[stub.cuda]\nheader-version = \"12.8\"\n\n[stub.opencl]\n\n\
                    [stub.cudart]\nheader-version = \"12.8\"\n\n\
                    [stub.nvrtc]\nheader-version = \"12.8\"\n";
    assert_eq!(fs::read_to_string(&manifest).unwrap(), expected);
    let (_, err) = ends(0, directory, &["add"]);
    assert!(err.contains("Fresh every library that"), "{err}");
}

#[test]
fn add_without_a_version_feature_says_how_to_give_one() {
    let directory = tempfile::tempdir().unwrap();
    user(directory.path(), "\"dynamic-linking\"");
    let directory = &directory.path().join("user");
    let (_, err) = ends(0, directory, &["add"]);
    let command = "`cargo gpustub add cuda cudart nvrtc --header-version 13`, with the version";
    assert!(err.contains(command), "{err}");
    let (_, err) = ends(1, directory, &["add", "cuda"]);
    assert!(err.contains("error[missing-header-version]"), "{err}");
}

/// Tables of one toolkit have one version; the package's own come before those of other members.
#[test]
fn add_takes_the_header_version_of_the_toolkit_from_other_tables() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let workspace = "[workspace]\nmembers = [\"own\", \"new\"]\nresolver = \"3\"\n";
    write(directory, "Cargo.toml", workspace);
    for (name, table) in [
        ("own", "[stub.cudart]\nheader-version = \"12.9\"\n"),
        ("new", ""),
    ] {
        package(&directory.join(name), name, "");
        let text = format!("schema = 1\n{table}");
        write(directory, &format!("{name}/GpuStub.toml"), &text);
    }
    let origin = "Found header version 12.9 (`[stub.cudart]` of ";
    for (name, library, from) in [
        ("own", "nvrtc", "GpuStub.toml"),
        ("new", "cublas", "/own/GpuStub.toml"),
    ] {
        let member = directory.join(name);
        let (_, err) = ends(0, &member, &["add", library, "--no-sync"]);
        assert!(
            err.contains(origin) && err.contains(&format!("{from})\n")),
            "{err}"
        );
        let text = fs::read_to_string(member.join("GpuStub.toml")).unwrap();
        let table = format!("[stub.{library}]\nheader-version = \"12.9\"\n");
        assert!(text.ends_with(&table), "{text}");
    }
    // cuDNN and ROCm have versions of their own.
    for library in ["cudnn", "hip"] {
        let (_, err) = ends(1, &directory.join("own"), &["add", library]);
        assert!(err.contains("error[missing-header-version]"), "{err}");
    }
    let add = ["add", "cufft", "--header-version", "13", "--no-sync"];
    let (_, err) = ends(0, &directory.join("own"), &add);
    assert!(err.contains("header version 13"), "{err}");
    let (_, err) = ends(0, &directory.join("own"), &add);
    assert!(err.contains("Fresh cufft is already declared"), "{err}");
    let both = ["add", "cufft", "hip", "--header-version", "13"];
    let (_, err) = ends(101, &directory.join("own"), &both);
    assert!(
        err.contains("give `--header-version cuda=VERSION` and `--header-version rocm=VERSION`"),
        "{err}"
    );
    let (_, err) = ends(1, &directory.join("own"), &["add", "cuda"]);
    assert!(
        err.contains("found several versions: 12.9 (`[stub.cudart]` of GpuStub.toml), 13 (`[stub.cufft]` of GpuStub.toml)"),
        "{err}"
    );
}

#[test]
fn stubs_that_a_dependency_never_calls_are_reported() {
    for (features, help) in [
        (
            "\"cuda-12080\"",
            "`cargo add cudarc --features dynamic-linking`",
        ),
        (
            "\"cuda-12080\", \"dynamic-loading\"",
            "replace the feature `dynamic-loading` of cudarc with `dynamic-linking`",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        user(directory.path(), features);
        let directory = &directory.path().join("user");
        let warning =
            "warning[dlopening-dependency]: cudarc 0.19.10 opens its libraries with dlopen";
        let (_, err) = ends(101, directory, &["add"]);
        assert!(err.contains(warning) && err.contains(help), "{err}");
        assert!(err.contains("no dependency links a known one"), "{err}");
        let (_, err) = ends(0, directory, &["add", "nvrtc", "--no-sync"]);
        assert!(err.contains("never calls the stubs of nvrtc\n"), "{err}");
        assert!(err.contains("Adding nvrtc"), "{err}");
        let (_, err) = ends(0, directory, &["add", "opencl", "--no-sync"]);
        assert!(!err.contains("dlopen"), "{err}");
        let (_, err) = ends(1, directory, &["check", "-D", "dlopening-dependency"]);
        assert!(err.contains("error[dlopening-dependency]"), "{err}");
        assert!(err.contains(help), "{err}");
    }
}

/// `sync` knows cudarc's features once cargo has locked it.
#[test]
fn sync_warns_of_a_crate_that_never_calls_the_stubs() {
    let directory = tempfile::tempdir().unwrap();
    user(directory.path(), "\"cuda-12080\"");
    let directory = &directory.path().join("user");
    let stub = "schema = 1\n[stub.cuda]\nheader-version = \"12.8\"\n";
    write(directory, "GpuStub.toml", stub);
    let lock = "version = 4\n[[package]]\nname = \"cudarc\"\nversion = \"0.19.10\"\n\
                [[package]]\nname = \"user\"\nversion = \"0.1.0\"\ndependencies = [\"cudarc\"]\n";
    write(directory, "Cargo.lock", lock);
    let (_, err) = ends(0, directory, &["sync"]);
    let warning = "warning[dlopening-dependency]: cudarc 0.19.10 opens its libraries with dlopen and \
                   never calls the stubs of cuda";
    assert!(err.contains(warning), "{err}");
    assert!(
        err.contains("cargo add cudarc --features dynamic-linking"),
        "{err}"
    );
    write(directory, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    let (_, err) = ends(0, directory, &["sync"]);
    assert!(!err.contains("dlopen"), "{err}");
}

/// The help of `build-time-toolkit` is the command that writes what the build script looks for.
#[test]
fn check_names_the_command_for_a_toolkit() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[package]\nname = \"cust_raw\"\nversion = \"0.11.3\"\n";
    write(directory.path(), "cust_raw/Cargo.toml", manifest);
    write(directory.path(), "cust_raw/src/lib.rs", "");
    let user = directory.path().join("user");
    package(
        &user,
        "user",
        "[dependencies]\ncust_raw = { path = \"../cust_raw\" }\n[workspace]\n",
    );
    let (_, err) = ends(0, &user, &["check"]);
    assert!(err.contains("warning[build-time-toolkit]"), "{err}");
    let help = "help: run `cargo gpustub add --toolkit cuda=12.8`; or make the dependency optional";
    assert!(err.contains(help), "{err}");
}
