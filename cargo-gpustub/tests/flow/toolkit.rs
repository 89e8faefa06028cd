//! `add --toolkit`, and `sync` of a `[toolkit]` table.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::pack::pack;
use super::{ends, package, write};

const CONFIG: &str = ".cargo/config.toml";

fn read(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn user(directory: &Path) {
    package(directory, "user", "");
    write(
        directory,
        "GpuStub.toml",
        "schema = 1 # ours\n\n[stub.cuda]\nheader-version = \"12\"\n",
    );
    ends(0, directory, &["sync"]);
}

#[test]
fn toolkit_tree_is_written_once_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    user(directory);
    let (_, err) = ends(101, directory, &["add", "--toolkit-dir", "sdk"]);
    assert!(err.contains("--toolkit cuda=12.8"), "{err}");
    let dry_run = ["add", "--toolkit", "cuda=12.8", "--dry-run"];
    let (_, err) = ends(101, directory, &dry_run);
    assert!(err.contains("`--dry-run` does not show"), "{err}");
    assert!(!directory.join("gpustub-toolkit").exists());
    let (_, err) = ends(0, directory, &["add", "--toolkit", "cuda=12.8"]);
    assert!(err.contains("Wrote gpustub-toolkit (files: "), "{err}");
    assert_eq!(
        read(directory, "GpuStub.toml"),
        "schema = 1 # ours\n\n[stub.cuda]\nheader-version = \"12\"\n\n[toolkit]\ncuda = \"12.8\"\n"
    );
    let variable = "CUDA_PATH = { value = \"gpustub-toolkit\", relative = true }\n";
    assert!(read(directory, CONFIG).contains(variable));
    for arguments in [
        &["add", "--toolkit", "cuda=12.8"][..],
        &["sync"],
        &["sync", "--check"],
    ] {
        let (out, err) = ends(0, directory, arguments);
        assert!(out.is_empty() && err.contains("Fresh"), "{out}{err}");
    }

    // Changes by users are detected, shown, and reverted.
    fs::remove_file(directory.join("gpustub-toolkit/lib64/libculibos.a")).unwrap();
    let config = read(directory, CONFIG).replace(variable, "") + "\n[build]\njobs = 2 # two\n";
    fs::write(directory.join(CONFIG), config).unwrap();
    make_unusable(&directory.join("gpustub-toolkit/bin/nvcc"));
    let (diff, _) = ends(1, directory, &["sync", "--check"]);
    for part in [
        "+++ b/gpustub-toolkit/lib64/libculibos.a",
        "new mode 100755: gpustub-toolkit/bin/nvcc",
        &format!("+{variable}"),
    ] {
        assert!(diff.contains(part), "{diff}");
    }
    ends(0, directory, &["sync"]);
    ends(0, directory, &["sync", "--check"]);
    assert!(read(directory, CONFIG).ends_with("\n[build]\njobs = 2 # two\n"));

    // The command line is written into the table, whose other keys stay.
    let add = [
        "add",
        "--toolkit",
        "cuda=13.0",
        "--toolkit-dir",
        "third-party/sdk",
        "--toolkit-force",
    ];
    ends(
        0,
        directory,
        &[&add[..], &["--override-build-script", "cuda-driver-sys"]].concat(),
    );
    assert!(read(directory, "GpuStub.toml").ends_with(
        "[toolkit]\ncuda = \"13.0\"\npath = \"third-party/sdk\"\nforce = true\n\
             override-build-scripts = [\"cuda-driver-sys\"]\n"
    ));
    let config = read(directory, CONFIG);
    assert!(config.contains("{ value = \"third-party/sdk\", relative = true, force = true }"));
    assert!(
        config.contains("[target.x86_64-unknown-linux-gnu.cuda]"),
        "{config}"
    );
    assert!(!config.contains("gpustub-toolkit"), "{config}");
}

#[cfg(unix)]
fn make_unusable(program: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o644)).unwrap();
}

/// The shims as build scripts call them: by `sh`, whichever shell that is, from any directory.
#[test]
fn shims_print_their_version_and_compile_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    user(directory);
    ends(
        0,
        directory,
        &["add", "--toolkit", "cuda=12.8", "--toolkit", "hip=6.4"],
    );
    let bin = directory.join("gpustub-toolkit/bin");
    // cudarc parses the fourth line, CMake searches for `V12.8.0`.
    for argument in ["--version", "-V"] {
        let (code, out, _) = run_shim(&bin.join("nvcc"), argument);
        let line = out.lines().nth(3).unwrap();
        assert_eq!(line, "Cuda compilation tools, release 12.8, V12.8.0");
        assert_eq!(code, Some(0));
    }
    let (_, out, _) = run_shim(&bin.join("hipconfig"), "--version");
    assert_eq!(out, "6.4.0");
    let root = directory.join("gpustub-toolkit").canonicalize().unwrap();
    let (_, out, _) = run_shim(&bin.join("hipconfig"), "-p");
    assert_eq!(Path::new(&out).canonicalize().unwrap(), root);
    for (program, argument) in [("nvcc", "-c"), ("hipconfig", "--nothing")] {
        let (code, out, err) = run_shim(&bin.join(program), argument);
        assert!(code == Some(1) && out.is_empty(), "{out}");
        assert!(
            err.contains("cargo gpustub add --toolkit") && err.contains("install"),
            "{err}"
        );
    }
}

/// Exit code, standard output and standard error of a shim.
fn run_shim(program: &Path, argument: &str) -> (Option<i32>, String, String) {
    let output = Command::new(program).arg(argument).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), out, err)
}

/// Every file is text, and can be committed to a repository whose rules exclude archives.
#[test]
fn a_tree_can_be_committed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    user(directory);
    write(directory, ".gitignore", "lib/\nlib64/\n*.a\nbin\n");
    ends(
        0,
        directory,
        &["add", "--toolkit", "cuda=12.8", "--toolkit", "hip=6.4"],
    );
    git(
        directory,
        &["-c", "init.defaultBranch=main", "init", "--quiet"],
    );
    git(directory, &["add", "--all"]);
    let staged = git(directory, &["ls-files", "--stage", "gpustub-toolkit"]);
    let mut on_disk = 0;
    let mut directories = vec![directory.join("gpustub-toolkit")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.is_symlink(), "{}", path.display());
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            on_disk += 1;
            let text = fs::read_to_string(&path).unwrap();
            assert!(
                text.ends_with('\n') && text.is_ascii() || text.contains('…'),
                "{text}"
            );
        }
    }
    assert_eq!(staged.lines().count(), on_disk, "{staged}");
    let programs = staged.lines().filter(|line| line.starts_with("100755"));
    assert_eq!(programs.count(), 2, "{staged}");
}

/// Runs git, which must succeed; returns standard output.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("this test needs git");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn toolkit_headers_come_from_the_given_directory_or_wheel() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    user(directory);
    write(
        directory,
        "sdk/include/cuda.h",
        "#define CUDA_VERSION 12060\nint cuInit();\n",
    );
    write(directory, "sdk/include/crt/host.h", "/* inner */\n");
    write(directory, "sdk/include/blob.h", "\0");
    let (_, err) = ends(0, directory, &["add", "--toolkit-headers", "sdk"]);
    assert!(err.contains("Wrote"), "{err}");
    let tree = directory.join("gpustub-toolkit");
    assert!(read(directory, "GpuStub.toml").ends_with("[toolkit]\ncuda = \"12.6\"\n"));
    assert!(read(&tree, "include/cuda.h").ends_with("int cuInit();\n"));
    assert_eq!(read(&tree, "include/crt/host.h"), "/* inner */\n");
    assert!(read(&tree, "include/cuda_runtime.h").contains("#error"));
    assert!(!tree.join("include/blob.h").exists());
    // The headers stay, and must match the release of the tree.
    ends(0, directory, &["sync", "--check"]);
    let (_, err) = ends(1, directory, &["add", "--toolkit", "cuda=12.8"]);
    assert!(
        err.contains("`include/cuda.h` is from CUDA 12.6, but `[toolkit] cuda` is 12.8"),
        "{err}"
    );
    assert!(
        read(directory, "GpuStub.toml").contains("12.6"),
        "nothing is written"
    );

    let members = [
        (
            "nvidia/cuda_runtime/include/cuda.h",
            "#define CUDA_VERSION 12080\n",
        ),
        ("nvidia/cuda_runtime/lib/libcudart.so.12", "\x7fELF"),
        ("../include/escaped.h", "/* outside */\n"),
    ];
    let members = members.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let wheel = directory.join("headers.whl");
    pack(&directory.join("no-more-files"), &members, &wheel).unwrap();
    let from_wheel = [
        "add",
        "--toolkit",
        "cuda=12.8",
        "--toolkit-headers",
        "headers.whl",
    ];
    ends(0, directory, &from_wheel);
    assert_eq!(
        read(&tree, "include/cuda.h"),
        "#define CUDA_VERSION 12080\n"
    );
    assert!(!directory.join("include").exists() && !tree.join("include/escaped.h").exists());
    ends(0, directory, &["sync", "--check"]);

    fs::create_dir(directory.join("empty")).unwrap();
    for (path, cause) in [
        ("GpuStub.toml", "as a wheel"),
        ("empty", "no headers in"),
        ("nothing", "could not read `nothing`"),
    ] {
        let (_, err) = ends(101, directory, &["add", "--toolkit-headers", path]);
        assert!(err.contains(cause) && !err.contains("panic"), "{err}");
    }
}

#[test]
fn invalid_toolkit_is_rejected_without_changes() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    user(directory);
    for (options, cause) in [
        (
            &["--toolkit", "cuda=12"][..],
            "takes a release such as \"12.8\"",
        ),
        (
            &["--toolkit", "cuda=12.8", "--toolkit-dir", "../sdk"],
            "below this file's directory",
        ),
        (
            &["--override-build-script", "cuda-drivr-sys"],
            "did you mean `cuda-driver-sys`?",
        ),
        (
            &["--override-build-script", "candle-kernels"],
            "unknown crate `candle-kernels` in `toolkit.override-build-scripts`",
        ),
    ] {
        let (_, err) = ends(1, directory, &[&["add"], options].concat());
        assert!(err.contains(cause), "{err}");
        assert!(!directory.join("gpustub-toolkit").exists() && !directory.join(".cargo").exists());
        assert!(!read(directory, "GpuStub.toml").contains("toolkit"));
    }
    // A directory of another project, with a file of the same name as one in the tree.
    write(directory, "docs/README.md", "ours\n");
    let (_, err) = ends(
        101,
        directory,
        &["add", "--toolkit", "cuda=12.8", "--toolkit-dir", "docs"],
    );
    assert!(
        err.contains("`docs/README.md` already exists and was not generated by gpustub"),
        "{err}"
    );
    assert_eq!(read(directory, "docs/README.md"), "ours\n");
    assert!(
        !directory.join("docs/lib").exists()
            && !read(directory, "GpuStub.toml").contains("toolkit")
    );
    write(directory, CONFIG, "[env]\nCUDA_PATH = \"/opt/cuda\"\n");
    let (_, err) = ends(1, directory, &["add", "--toolkit", "cuda=12.8"]);
    assert!(err.contains("remove `env.CUDA_PATH` there"), "{err}");
    assert_eq!(
        read(directory, CONFIG),
        "[env]\nCUDA_PATH = \"/opt/cuda\"\n"
    );
}

#[test]
fn toolkit_table_is_only_valid_at_the_root() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(
        directory,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"a\"]\n",
    );
    package(&directory.join("a"), "a", "");
    let stub = "schema = 1\n[stub.opencl]\n";
    write(
        directory,
        "a/GpuStub.toml",
        &format!("{stub}[toolkit]\ncuda = \"12.8\"\n"),
    );
    let (_, err) = ends(0, directory, &["sync"]);
    assert!(
        err.contains("warning[misplaced-table]: the `[toolkit]`"),
        "{err}"
    );
    assert!(!directory.join(".cargo").exists());
    write(directory, "a/GpuStub.toml", stub);
    write(
        directory,
        "GpuStub.toml",
        "schema = 1\n[toolkit]\nhip = \"6.4\"\n",
    );
    ends(0, &directory.join("a"), &["sync"]);
    assert!(
        directory
            .join("gpustub-toolkit/include/hip/hip_version.h")
            .exists()
    );
    assert!(read(directory, CONFIG).contains("ROCM_PATH"));
}
