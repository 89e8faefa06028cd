//! `add --toolkit`, and `sync` of a `[toolkit]` table.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::pack::pack;
use super::{ends, package, write};

const CONFIG: &str = ".cargo/config.toml";

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn user(folder: &Path) {
    package(folder, "user", "");
    write(
        folder,
        "GpuStub.toml",
        "schema = 1 # ours\n\n[stub.cuda]\nheader-version = \"12\"\n",
    );
    ends(0, folder, &["sync"]);
}

#[test]
fn toolkit_tree_is_written_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    user(folder);
    let (_, err) = ends(101, folder, &["add", "--toolkit-dir", "sdk"]);
    assert!(err.contains("--toolkit cuda=12.8"), "{err}");
    let (_, err) = ends(0, folder, &["add", "--toolkit", "cuda=12.8"]);
    assert!(err.contains("Wrote gpustub-toolkit (files: "), "{err}");
    assert_eq!(
        read(folder, "GpuStub.toml"),
        "schema = 1 # ours\n\n[stub.cuda]\nheader-version = \"12\"\n\n[toolkit]\ncuda = \"12.8\"\n"
    );
    let variable = "CUDA_PATH = { value = \"gpustub-toolkit\", relative = true }\n";
    assert!(read(folder, CONFIG).contains(variable));
    for again in [
        &["add", "--toolkit", "cuda=12.8"][..],
        &["sync"],
        &["sync", "--check"],
    ] {
        let (out, err) = ends(0, folder, again);
        assert!(out.is_empty() && err.contains("Fresh"), "{out}{err}");
    }

    // Changes by users are detected, shown, and reverted.
    fs::remove_file(folder.join("gpustub-toolkit/lib64/libculibos.a")).unwrap();
    let config = read(folder, CONFIG).replace(variable, "") + "\n[build]\njobs = 2 # two\n";
    fs::write(folder.join(CONFIG), config).unwrap();
    make_unusable(&folder.join("gpustub-toolkit/bin/nvcc"));
    let (diff, _) = ends(1, folder, &["sync", "--check"]);
    for part in [
        "+++ b/gpustub-toolkit/lib64/libculibos.a",
        "new mode 100755: gpustub-toolkit/bin/nvcc",
        &format!("+{variable}"),
    ] {
        assert!(diff.contains(part), "{diff}");
    }
    ends(0, folder, &["sync"]);
    ends(0, folder, &["sync", "--check"]);
    assert!(read(folder, CONFIG).ends_with("\n[build]\njobs = 2 # two\n"));

    // The command line is written into the table, whose other keys stay.
    let words = [
        "add",
        "--toolkit",
        "cuda=13.0",
        "--toolkit-dir",
        "third-party/sdk",
        "--toolkit-force",
    ];
    ends(
        0,
        folder,
        &[&words[..], &["--override-build-script", "cuda-driver-sys"]].concat(),
    );
    assert!(read(folder, "GpuStub.toml").ends_with(
        "[toolkit]\ncuda = \"13.0\"\npath = \"third-party/sdk\"\nforce = true\n\
             override-build-scripts = [\"cuda-driver-sys\"]\n"
    ));
    let config = read(folder, CONFIG);
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
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    user(folder);
    ends(
        0,
        folder,
        &["add", "--toolkit", "cuda=12.8", "--toolkit", "hip=6.4"],
    );
    let run = |program: &str, argument: &str| {
        let program = folder.join("gpustub-toolkit/bin").join(program);
        let output = Command::new(program).arg(argument).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    // cudarc parses the fourth line, CMake searches for `V12.8.0`.
    for argument in ["--version", "-V"] {
        let (code, out, _) = run("nvcc", argument);
        let line = out.lines().nth(3).unwrap();
        assert_eq!(line, "Cuda compilation tools, release 12.8, V12.8.0");
        assert_eq!(code, Some(0));
    }
    assert_eq!(run("hipconfig", "--version").1, "6.4.0");
    let root = folder.join("gpustub-toolkit").canonicalize().unwrap();
    let (_, out, _) = run("hipconfig", "-p");
    assert_eq!(Path::new(&out).canonicalize().unwrap(), root);
    for (program, argument) in [("nvcc", "-c"), ("hipconfig", "--nothing")] {
        let (code, out, err) = run(program, argument);
        assert!(code == Some(1) && out.is_empty(), "{out}");
        assert!(
            err.contains("cargo gpustub add --toolkit") && err.contains("install"),
            "{err}"
        );
    }
}

/// Every file is text, and can be committed to a repository whose rules exclude archives.
#[test]
fn a_tree_can_be_committed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    user(folder);
    write(folder, ".gitignore", "lib/\nlib64/\n*.a\nbin\n");
    ends(
        0,
        folder,
        &["add", "--toolkit", "cuda=12.8", "--toolkit", "hip=6.4"],
    );
    let git = |words: &[&str]| {
        let output = Command::new("git").current_dir(folder).args(words).output();
        let output = output.expect("this test needs git");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {err}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["-c", "init.defaultBranch=main", "init", "--quiet"]);
    git(&["add", "--all"]);
    let staged = git(&["ls-files", "--stage", "gpustub-toolkit"]);
    let mut on_disk = 0;
    let mut folders = vec![folder.join("gpustub-toolkit")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.is_symlink(), "{}", path.display());
            if path.is_dir() {
                folders.push(path);
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

#[test]
fn toolkit_headers_come_from_the_given_directory_or_wheel() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    user(folder);
    write(
        folder,
        "sdk/include/cuda.h",
        "#define CUDA_VERSION 12060\nint cuInit();\n",
    );
    write(folder, "sdk/include/crt/host.h", "/* inner */\n");
    write(folder, "sdk/include/blob.h", "\0");
    let (_, err) = ends(0, folder, &["add", "--toolkit-headers", "sdk"]);
    assert!(err.contains("Wrote"), "{err}");
    let tree = folder.join("gpustub-toolkit");
    assert!(read(folder, "GpuStub.toml").ends_with("[toolkit]\ncuda = \"12.6\"\n"));
    assert!(read(&tree, "include/cuda.h").ends_with("int cuInit();\n"));
    assert_eq!(read(&tree, "include/crt/host.h"), "/* inner */\n");
    assert!(read(&tree, "include/cuda_runtime.h").contains("#error"));
    assert!(!tree.join("include/blob.h").exists());
    // The headers stay, and must match the release of the tree.
    ends(0, folder, &["sync", "--check"]);
    let (_, err) = ends(1, folder, &["add", "--toolkit", "cuda=12.8"]);
    assert!(
        err.contains("`include/cuda.h` is from CUDA 12.6, but `[toolkit] cuda` is 12.8"),
        "{err}"
    );
    assert!(
        read(folder, "GpuStub.toml").contains("12.6"),
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
    let wheel = folder.join("headers.whl");
    pack(&folder.join("no-more-files"), &members, &wheel).unwrap();
    let from_wheel = [
        "add",
        "--toolkit",
        "cuda=12.8",
        "--toolkit-headers",
        "headers.whl",
    ];
    ends(0, folder, &from_wheel);
    assert_eq!(
        read(&tree, "include/cuda.h"),
        "#define CUDA_VERSION 12080\n"
    );
    assert!(!folder.join("include").exists() && !tree.join("include/escaped.h").exists());
    ends(0, folder, &["sync", "--check"]);

    fs::create_dir(folder.join("empty")).unwrap();
    for (wrong, why) in [
        ("GpuStub.toml", "as a wheel"),
        ("empty", "no headers in"),
        ("nothing", "could not read `nothing`"),
    ] {
        let (_, err) = ends(101, folder, &["add", "--toolkit-headers", wrong]);
        assert!(err.contains(why) && !err.contains("panic"), "{err}");
    }
}

#[test]
fn invalid_toolkit_is_rejected_without_changes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    user(folder);
    for (words, why) in [
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
        let (_, err) = ends(1, folder, &[&["add"], words].concat());
        assert!(err.contains(why), "{err}");
        assert!(!folder.join("gpustub-toolkit").exists() && !folder.join(".cargo").exists());
        assert!(!read(folder, "GpuStub.toml").contains("toolkit"));
    }
    // A directory of another project, with a file of the same name as one in the tree.
    write(folder, "docs/README.md", "ours\n");
    let (_, err) = ends(
        101,
        folder,
        &["add", "--toolkit", "cuda=12.8", "--toolkit-dir", "docs"],
    );
    assert!(
        err.contains("`docs/README.md` already exists and was not generated by gpustub"),
        "{err}"
    );
    assert_eq!(read(folder, "docs/README.md"), "ours\n");
    assert!(!folder.join("docs/lib").exists() && !read(folder, "GpuStub.toml").contains("toolkit"));
    write(folder, CONFIG, "[env]\nCUDA_PATH = \"/opt/cuda\"\n");
    let (_, err) = ends(1, folder, &["add", "--toolkit", "cuda=12.8"]);
    assert!(err.contains("remove `env.CUDA_PATH` there"), "{err}");
    assert_eq!(read(folder, CONFIG), "[env]\nCUDA_PATH = \"/opt/cuda\"\n");
}

#[test]
fn toolkit_table_is_only_valid_at_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(
        folder,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"a\"]\n",
    );
    package(&folder.join("a"), "a", "");
    let stub = "schema = 1\n[stub.opencl]\n";
    write(
        folder,
        "a/GpuStub.toml",
        &format!("{stub}[toolkit]\ncuda = \"12.8\"\n"),
    );
    let (_, err) = ends(0, folder, &["sync"]);
    assert!(
        err.contains("warning[misplaced-table]: the `[toolkit]`"),
        "{err}"
    );
    assert!(!folder.join(".cargo").exists());
    write(folder, "a/GpuStub.toml", stub);
    write(
        folder,
        "GpuStub.toml",
        "schema = 1\n[toolkit]\nhip = \"6.4\"\n",
    );
    ends(0, &folder.join("a"), &["sync"]);
    assert!(
        folder
            .join("gpustub-toolkit/include/hip/hip_version.h")
            .exists()
    );
    assert!(read(folder, CONFIG).contains("ROCM_PATH"));
}
