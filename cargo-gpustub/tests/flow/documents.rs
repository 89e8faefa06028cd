//! Outputs shown in `docs/check.md` (`BLESS=1` rewrites them), and the recipes for CI.

#![allow(
    clippy::disallowed_methods,
    reason = "tests extend PATH, and BLESS makes them rewrite their expectations"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{cc, ends, pack, package, repository, write};

/// Creates a package `demo` with an empty build helper in place of the published one.
fn demo(directory: &Path) {
    package(
        &directory.join("../gpustub-build"),
        "gpustub-build",
        "[workspace]\n",
    );
    write(
        directory,
        "../gpustub-build/src/lib.rs",
        "pub fn build() {}\n",
    );
    let helper = "[build-dependencies]\ngpustub-build = { path = \"../gpustub-build\" }\n";
    package(directory, "demo", helper);
    fs::remove_file(directory.join("src/lib.rs")).unwrap();
    write(directory, "src/main.rs", "fn main() {}\n");
}

/// Creates a wheel with an extension module that was linked as compilers do by default, to
/// libraries that only the linker sees.
fn wheel(directory: &Path) {
    let linker = tempfile::tempdir().unwrap();
    for (soname, function) in [
        ("libcuda.so.1", "cuInit"),
        ("libcudart.so.12", "cudaMalloc"),
    ] {
        write(
            linker.path(),
            "library.c",
            &format!("int {function}(void) {{ return 0; }}"),
        );
        cc(
            linker.path(),
            &[
                "-shared",
                "-fPIC",
                "-nostdlib",
                "library.c",
                &format!("-Wl,-soname,{soname}"),
                "-o",
                soname,
            ],
        );
    }
    let code =
        "int cuInit(void), cudaMalloc(void); int f(void) { return cuInit() + cudaMalloc(); }";
    write(linker.path(), "core.c", code);
    write(linker.path(), "wheel/demo/__init__.py", "");
    cc(
        linker.path(),
        &[
            "-shared",
            "-fPIC",
            "-nostdlib",
            "core.c",
            "-Wl,-rpath,/usr/local/cuda/lib64",
            linker.path().join("libcuda.so.1").to_str().unwrap(),
            linker.path().join("libcudart.so.12").to_str().unwrap(),
            "-o",
            "wheel/demo/_core.so",
        ],
    );
    let name = "demo-1.0-py3-none-manylinux_2_28_x86_64.whl";
    fs::create_dir_all(directory.join("dist")).unwrap();
    let output = directory.join("dist").join(name);
    pack::pack(&linker.path().join("wheel"), &[], &output).unwrap();
}

/// Runs a line in a shell whose `cargo gpustub` is the one of this tree; returns the exit code and
/// the output, standard output first.
fn shell(directory: &Path, line: &str) -> (Option<i32>, String) {
    let program = Path::new(snapbox::cmd::cargo_bin!("cargo-gpustub"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = vec![program.parent().unwrap().to_owned()];
    directories.extend(std::env::split_paths(&path));
    let output = Command::new("bash")
        .current_dir(directory)
        .args(["-c", line])
        .env("PATH", std::env::join_paths(directories).unwrap())
        .env("CUDA_HOME", "/nonexistent")
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), out + &err)
}

#[test]
fn check_page_shows_the_real_output() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path().join("demo");
    demo(&directory);
    wheel(&directory);
    let path = repository().join("docs/check.md");
    let page = fs::read_to_string(&path).unwrap();
    let (mut new_page, mut commands) = (String::new(), 0);
    for (index, part) in page.split("```").enumerate() {
        let part = match part.split_once('\n') {
            Some(("console", block)) if index % 2 == 1 => {
                let mut session = String::from("console\n");
                for line in block.lines().filter(|line| line.starts_with("$ ")) {
                    commands += 1;
                    let (_, output) = shell(&directory, &line[2..]);
                    session += &format!("{line}\n{}\n", output.trim_end());
                }
                session
            }
            Some((info, text)) if index % 2 == 1 => {
                let file = info
                    .strip_prefix("toml ")
                    .unwrap_or_else(|| panic!("{info}"));
                write(&directory, file, text);
                part.to_owned()
            }
            _ => part.to_owned(),
        };
        new_page += if index > 0 { "```" } else { "" };
        new_page += &part;
    }
    assert!(commands >= 8, "{commands}");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &new_page).unwrap();
    }
    snapbox::assert_data_eq!(page, snapbox::Data::from(new_page).raw());
}

/// Commands of a recipe: the text after this key.
fn lines(recipe: &str, key: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(recipe)).unwrap();
    let mut commands = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix("- ").unwrap_or(line);
        if let Some((line_key, command)) = line.split_once(": ")
            && line_key == key
        {
            commands.push(command.to_owned());
        }
    }
    commands
}

#[test]
fn recipes_for_ci_run() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path().join("demo");
    demo(&directory);
    write(
        &directory,
        "GpuStub.toml",
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n",
    );
    ends(0, &directory, &["sync"]);
    let mut commands = lines("docs/ci/github.yml", "run");
    let page = fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let install = format!("$ {}\n", commands.remove(0));
    assert!(
        install.contains("cargo install") && page.contains(&install),
        "{install}"
    );
    assert_eq!(commands.len(), 5);
    let hook = lines("docs/ci/pre-commit.yaml", "entry");
    assert_eq!(hook.len(), 1);
    for line in commands.iter().chain(&hook) {
        let (code, output) = shell(&directory, line);
        assert_eq!(code, Some(0), "{line}: {output}");
    }
    let sarif = fs::read_to_string(directory.join("gpustub.sarif")).unwrap();
    assert!(sarif.contains("\"version\": \"2.1.0\""), "{sarif}");
    // A step that may fail must not prevent the step after it.
    let text = fs::read_to_string(repository().join("docs/ci/github.yml")).unwrap();
    for step in ["> gpustub.sarif\n", "upload-sarif@v3\n"] {
        let (_, after) = text.split_once(step).unwrap();
        assert!(after.trim_start().starts_with("if: always()"), "{step}");
    }
    // The recipes fail if there are findings.
    write(&directory, "GpuStub.toml", "schema = 1\n[stub.cudart]\n");
    for line in [&commands[0], &commands[1], &hook[0]] {
        assert_eq!(shell(&directory, line).0, Some(1), "{line}");
    }
}

/// The check of `action.yml` and the hooks for pre-commit, with the program where pip installs it.
#[test]
fn action_and_hooks_run() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path().join("demo");
    demo(&directory);
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n";
    write(&directory, "GpuStub.toml", manifest);
    ends(0, &directory, &["sync"]);
    wheel(&directory);
    let installed = work.path().join("gpustub/bin");
    fs::create_dir_all(&installed).unwrap();
    let program = snapbox::cmd::cargo_bin!("cargo-gpustub");
    fs::copy(program, installed.join("cargo-gpustub")).unwrap();

    let options = lines("action.yml", "default").swap_remove(1);
    let check = lines("action.yml", "run").pop().unwrap();
    let check = check.trim_matches('\'');
    let action = |files: &str| {
        let temporary = work.path().display();
        let inputs = format!("RUNNER_TEMP='{temporary}' OPTIONS='{options}' FILES='{files}'");
        let repository = format!("export GITHUB_WORKSPACE='{temporary}'");
        shell(&directory, &format!("{inputs}; {repository}; {check}"))
    };
    let hooks = lines(".pre-commit-hooks.yaml", "entry");
    assert_eq!((options.as_str(), hooks.len()), ("--deny all", 2));
    for (code, output) in hooks.iter().map(|line| shell(&directory, line)) {
        assert_eq!(code, Some(0), "{output}");
    }
    assert_eq!(action("").0, Some(0));
    let (code, output) = action("dist/*.whl");
    assert!(
        output.contains("::error file=demo/dist/demo-1.0-py3-"),
        "{output}"
    );
    assert_eq!(code, Some(1), "{output}");

    write(&directory, "GpuStub.toml", "schema = 1\n[stub.cudart]\n");
    let (code, output) = action("");
    assert!(output.contains("::error file=demo/"), "{output}");
    assert_eq!(code, Some(1), "{output}");
    // The upload of SARIF documents reads paths as the service does, from the root of the repository.
    let sarif = check.replace("--message-format github", "--message-format sarif");
    let repository = work.path().display();
    let exports = format!("export RUNNER_TEMP='{repository}' GITHUB_WORKSPACE='{repository}'");
    for (files, uri) in [
        ("", "demo/GpuStub.toml"),
        ("dist/*.whl", "demo/dist/demo-1.0-py3-"),
    ] {
        let command = format!("{exports}; OPTIONS='' FILES='{files}'; {sarif}");
        let (code, output) = shell(&directory, &command);
        assert!(output.contains(&format!("\"uri\": \"{uri}")), "{output}");
        assert!(!output.contains("\"uri\": \"GpuStub.toml"), "{output}");
        assert_eq!(code, Some(1), "{output}");
    }
    for hook in &hooks {
        let (code, output) = shell(&directory, hook);
        assert_eq!(code, Some(1), "{hook}: {output}");
    }
}

/// The jobs that `init --ci` writes, of a workspace in a directory of its repository.
#[test]
fn jobs_for_ci_services_run() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path().join("demo");
    demo(&directory);
    for (service, file, key) in [
        ("github", ".github/workflows/gpustub.yml", "- run: "),
        ("gitlab", ".gitlab-ci.yml", "    - "),
    ] {
        for repository in [work.path(), &directory] {
            fs::create_dir(repository.join(".git")).unwrap();
            ends(0, &directory, &["init", "--ci", service]);
            let (_, err) = ends(101, &directory, &["init", "--ci", service]);
            assert!(err.contains(&format!("{file}` already exists")), "{err}");
            assert!(err.contains("cargo gpustub check --build"), "{err}");
            ends(0, &directory, &["sync"]);
            let text = fs::read_to_string(repository.join(file)).unwrap();
            let is_inner = text.contains("working-directory: \"demo\"\n")
                || text.contains("- \"cd -- 'demo'\"\n");
            assert_eq!(is_inner, repository == work.path(), "{text}");
            let commands = text
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix(key.trim_start()));
            let commands = commands.filter(|line| line.starts_with("cargo gpustub "));
            let commands = Vec::from_iter(commands);
            assert_eq!(commands.len(), 2, "{text}");
            for command in commands {
                let (code, output) = shell(&directory, command);
                assert_eq!(code, Some(0), "{command}: {output}");
            }
            fs::remove_file(repository.join(file)).unwrap();
            fs::remove_dir(repository.join(".git")).unwrap();
        }
    }
}

/// A job for a workspace of several packages, of which one has a table.
#[test]
fn a_job_serves_all_members() {
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("all");
    package(&root.join("demo"), "demo", "");
    package(&root.join("other"), "other", "");
    write(
        &root,
        "Cargo.toml",
        "[workspace]\nmembers = [\"demo\", \"other\"]\n",
    );
    let job = ["init", "--ci", "github"];
    let (_, err) = ends(101, &root, &job);
    assert!(err.contains("select one with `-p`"), "{err}");
    write(&root.join("demo"), "GpuStub.toml", "schema = 1\n");
    ends(0, &root, &job);
    let file = root.join(".github/workflows/gpustub.yml");
    fs::remove_file(&file).unwrap();
    assert!(!root.join("other/GpuStub.toml").exists());
    // A selected package gets a file, whatever the others have, and keeps the one that it has.
    let selected = |name| [&job[..], &["-p", name]].concat();
    let (_, err) = ends(0, &root, &selected("demo"));
    assert!(!err.contains("next:"), "{err}");
    fs::remove_file(&file).unwrap();
    let (_, err) = ends(0, &root, &selected("other"));
    assert!(err.contains("Created other/GpuStub.toml"), "{err}");
    assert!(
        err.contains("next: `cargo gpustub add -p other <library>`"),
        "{err}"
    );
    assert!(file.exists());
}

/// A job for a project in C, whose GpuStub.toml is beside no Cargo.toml.
#[test]
fn jobs_of_projects_without_cargo_run() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path().join("demo");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir(work.path().join(".git")).unwrap();
    for (service, file, key) in [
        ("github", ".github/workflows/gpustub.yml", "- run: "),
        ("gitlab", ".gitlab-ci.yml", "- "),
    ] {
        let job = ["init", "--ci", service];
        let (_, err) = ends(101, &directory, &job);
        assert!(
            err.contains("write the line `schema = 1` to GpuStub.toml first"),
            "{err}"
        );
        let text = "schema = 1\n[stub.cudart]\nheader-version = \"13\"\n";
        write(&directory, "GpuStub.toml", text);
        ends(0, &directory, &job);
        let (_, err) = ends(101, &directory, &["init"]);
        assert!(err.contains("GpuStub.toml` already exists"), "{err}");
        let text = fs::read_to_string(work.path().join(file)).unwrap();
        assert!(
            text.contains("working-directory: \"demo\"\n") || text.contains("- \"cd -- 'demo'\"\n"),
            "{text}"
        );
        assert!(
            !text.contains("sync") && !text.contains("--build"),
            "{text}"
        );
        let lines = text.lines().map(|line| line.trim_start());
        // The commands in comments check the program that the project builds.
        let commands = lines.map(|line| line.trim_start_matches("# "));
        let commands = commands.filter_map(|line| line.strip_prefix(key));
        let commands = Vec::from_iter(commands.filter(|line| line.contains("cargo gpustub ")));
        assert_eq!(commands.len(), 2, "{text}");
        write(&directory, "program.c", "int main(void) { return 0; }\n");
        cc(&directory, &["-o", "program", "program.c"]);
        for command in commands {
            let (code, output) = shell(&directory, command);
            assert_eq!(code, Some(0), "{command}: {output}");
        }
        fs::remove_file(directory.join("GpuStub.toml")).unwrap();
    }
}

#[test]
fn manual_pages_of_all_commands_are_written() {
    let work = tempfile::tempdir().unwrap();
    let (_, err) = ends(0, work.path(), &["man", "--out-dir", "pages"]);
    let files = fs::read_dir(work.path().join("pages")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = Vec::from_iter(names);
    assert!(
        err.contains(&format!("Created pages: {} manual pages", names.len())),
        "{err}"
    );
    assert!(
        names.iter().all(|name| !name.contains("-help")),
        "{names:?}"
    );
    for (file, command) in [
        ("cargo-gpustub.1", &["man"][..]),
        ("cargo-gpustub-export-stubs.1", &["man", "export", "stubs"]),
    ] {
        assert!(names.iter().any(|name| name == file), "{names:?}");
        let page = fs::read_to_string(work.path().join("pages").join(file)).unwrap();
        assert_eq!(page, ends(0, work.path(), command).0);
    }
}
