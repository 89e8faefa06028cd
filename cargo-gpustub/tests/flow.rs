//! Whole ways through the subcommand that need a compiler, a real library or a killed process.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use snapbox::cmd::cargo_bin;

/// The repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn gpustub(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("cargo-gpustub"));
    command
        .current_dir(folder)
        .args(arguments)
        .env("CUDA_HOME", "/nonexistent")
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("GPUSTUB_ACME_PATH");
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    gpustub(folder, arguments).output().unwrap()
}

/// Runs and must end with this code; returns standard output and standard error.
fn ends(code: i32, folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(folder, arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{out}\n{err}"
    );
    (out, err)
}

fn cc(folder: &Path, arguments: &[&str]) {
    let output = Command::new("cc")
        .current_dir(folder)
        .args(arguments)
        .output();
    let output = output.expect("these tests need a C compiler `cc`");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn package(folder: &Path, name: &str, more: &str) {
    let text =
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}");
    write(folder, "Cargo.toml", &text);
    write(folder, "src/lib.rs", "");
}

/// A library of one's own, with everything that a symbol can be.
fn acme(folder: &Path) {
    write(
        folder,
        "acme.c",
        "int acmeOpen(void **h) { *h = &h; return 0; }\n\
         int acmeCount(int *n) { *n = 42; return 0; }\n\
         __attribute__((weak)) int acmeWeak(void) { return 1; }\n",
    );
    cc(
        folder,
        &[
            "-shared",
            "-fPIC",
            "-Wl,-soname,libacme.so.3",
            "-o",
            "libacme.so.3",
            "acme.c",
        ],
    );
}

const ACME: &str = "schema = 1\n\n[stub.acme]\nload-names = { linux = [\"libacme.so.3\"] }\n\
                    symbols = \"symbols/acme.symbols\"\n\
                    fallback = { status = 999, string = \"no acme\" }\n";

/// `BLESS=1 cargo test -p cargo-gpustub --test flow` writes the pages instead.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn the_reference_is_up_to_date() {
    let docs = repository().join("docs");
    let mut arguments = vec!["reference", "--out", docs.to_str().unwrap()];
    if std::env::var_os("BLESS").is_none() {
        arguments.push("--check");
    }
    let (diff, _) = ends(0, &repository(), &arguments);
    assert_eq!(diff, "");
}

#[test]
fn a_library_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    package(folder, "user", "");
    acme(folder);
    write(folder, "GpuStub.toml", ACME);

    let (_, err) = ends(1, folder, &["sync"]);
    assert!(err.contains("error[missing-symbols]"), "{err}");
    assert!(err.contains("--from acme="), "{err}");
    let (_, err) = ends(101, folder, &["sync", "--from", "acne=libacme.so.3"]);
    assert!(err.contains("did you mean `acme`?"), "{err}");
    let (_, err) = ends(1, folder, &["sync", "--from", "acme=acme.c"]);
    assert!(err.contains("error[bad-library]: `acme.c`"), "{err}");
    assert!(!folder.join("symbols").exists() && !folder.join("GpuStub.lock").exists());

    let from = ["sync", "--from", "acme=libacme.so.3"];
    let (_, err) = ends(0, folder, &from);
    assert!(err.contains("Created symbols/acme.symbols"), "{err}");
    let list = fs::read_to_string(folder.join("symbols/acme.symbols")).unwrap();
    assert!(
        list.contains("\nacmeCount\nacmeOpen\nacmeWeak weak\n"),
        "{list}"
    );
    let lock = fs::read_to_string(folder.join("GpuStub.lock")).unwrap();
    assert!(
        lock.contains("name = \"acme\"\nsymbols = \"sha256:"),
        "{lock}"
    );
    for again in [&from[..], &["sync"], &["sync", "--check"]] {
        let (out, err) = ends(0, folder, again);
        assert!(out.is_empty() && err.contains("Fresh"), "{out}{err}");
    }

    // An edit of the list is seen, and shown.
    fs::write(
        folder.join("symbols/acme.symbols"),
        list.replace("acmeWeak weak\n", ""),
    )
    .unwrap();
    let (diff, _) = ends(1, folder, &["sync", "--check"]);
    assert!(
        diff.contains("--- a/GpuStub.lock") && diff.contains("\n-symbols = "),
        "{diff}"
    );
    let (diff, _) = ends(
        1,
        folder,
        &["sync", "--check", "--from", "acme=libacme.so.3"],
    );
    assert!(
        diff.contains("+acmeWeak weak") && !diff.contains("GpuStub.lock"),
        "{diff}"
    );
}

#[test]
fn the_doctor_asks_the_real_run_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    package(folder, "user", "");
    acme(folder);
    write(folder, "GpuStub.toml", ACME);
    ends(0, folder, &["sync", "--from", "acme=libacme.so.3"]);

    let (out, _) = ends(0, folder, &["doctor"]);
    assert!(out.starts_with("host        "), "{out}");
    assert!(
        out.contains("\nGpuStub.toml\n  acme: unavailable: "),
        "{out}"
    );

    let library = folder.join("libacme.so.3");
    let json = gpustub(folder, &["doctor", "--message-format", "json"])
        .env("GPUSTUB_ACME_PATH", &library)
        .output()
        .unwrap();
    let text = String::from_utf8(json.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0]["reason"], "machine");
    assert_eq!(lines[1]["library"], "acme");
    assert_eq!(lines[1]["available"], true);
    assert_eq!(lines[1]["path"], library.to_str().unwrap());
    assert!(
        lines[1]["report"]
            .as_str()
            .unwrap()
            .contains("3 functions bound"),
        "{text}"
    );
}

#[test]
fn the_doctor_without_a_compiler_names_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let output = gpustub(folder.path(), &["doctor"])
        .env("CC", "/nonexistent/cc")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(101), "{err}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("\nC compiler  none\n")
    );
    assert!(
        err.contains("no C compiler") && err.contains("apt install gcc"),
        "{err}"
    );
}

#[test]
fn symbols_of_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    acme(folder);
    let library = "libacme.so.3";
    let (list, err) = ends(0, folder, &["symbols", library]);
    assert!(
        list.starts_with("@gpustub-symbols 1\n@soname libacme.so.3\n"),
        "{list}"
    );
    assert_eq!(err, "");
    let (ifs, _) = ends(0, folder, &["symbols", library, "--format", "ifs"]);
    assert!(
        ifs.starts_with("--- !ifs-v1\n") && ifs.contains("acmeWeak"),
        "{ifs}"
    );
    let (json, _) = ends(0, folder, &["symbols", library, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["soname"], "libacme.so.3");
    let find = |name| {
        json["symbols"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["name"] == name)
    };
    assert_eq!(find("acmeOpen").unwrap()["kind"], "function");
    assert_eq!(find("acmeWeak").unwrap()["weak"], true);

    ends(
        0,
        folder,
        &[
            "symbols",
            library,
            "--require",
            "acmeOpen",
            "--require",
            "acmeWeak",
        ],
    );
    let (out, err) = ends(1, folder, &["symbols", library, "--require", "acmeOpne"]);
    assert!(
        out.is_empty() && err.contains("did you mean `acmeOpen`?"),
        "{err}"
    );
    let other = if cfg!(target_arch = "aarch64") {
        "x86_64"
    } else {
        "aarch64"
    };
    let (_, err) = ends(1, folder, &["symbols", library, "--arch", other]);
    assert!(err.contains(&format!("not for {other}")), "{err}");
    let (_, err) = ends(1, folder, &["symbols", "nothing.so"]);
    assert!(err.contains("`nothing.so` cannot be read"), "{err}");
}

const PROGRAM: &str = "int cudaGetDeviceCount(int *); int nvrtcVersion(int *, int *);\n\
    int main(void) { int n = -7, a, b;\n\
    return !(cudaGetDeviceCount(&n) == 35 && n == 0 && nvrtcVersion(&a, &b) == 11); }\n";

/// Links with every linker that is installed and runs; all of these libraries being switched off,
/// the answers are those of the stubs.
fn link_and_run(folder: &Path, arguments: &[&str]) {
    let mut tried = 0;
    for linker in ["bfd", "lld", "mold", "gold"] {
        let option = format!("-fuse-ld={linker}");
        let probe = Command::new("cc")
            .args([&option, "-Wl,--version"])
            .output()
            .unwrap();
        if !probe.status.success() {
            continue;
        }
        cc(
            folder,
            &[&["prog.c", "-o", "prog", &option], arguments].concat(),
        );
        let status = Command::new(folder.join("prog"))
            .envs(["CUDART", "NVRTC", "CUDA"].map(|id| (format!("GPUSTUB_{id}_PATH"), "off")))
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{linker}");
        tried += 1;
    }
    assert!(tried > 0, "no linker could be tried");
}

#[test]
fn generated_archives_link() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "prog.c", PROGRAM);
    let command = ["generate", "nvrtc", "cudart", "--out", "stubs"];
    let (out, err) = ends(0, folder, &command);
    assert_eq!(out, "");
    assert!(
        err.contains("cc prog.c -L stubs/link -lcudart -lnvrtc"),
        "{err}"
    );
    link_and_run(folder, &["-L", "stubs/link", "-lcudart", "-lnvrtc"]);
    link_and_run(
        folder,
        &[
            "-L",
            "stubs/link",
            "-lnvrtc",
            "-lcudart",
            "-Wl,--gc-sections",
        ],
    );
    write(
        folder,
        "asks.c",
        "#include <gpustub.h>\nint main(void) { return gpustub_has(\"cudart\", \"x\"); }",
    );
    cc(
        folder,
        &[
            "asks.c",
            "-I",
            "stubs/include",
            "-L",
            "stubs/link",
            "-lcudart",
            "-o",
            "asks",
        ],
    );
    let (_, err) = ends(0, folder, &command);
    assert!(err.contains("Fresh stubs"), "{err}");
}

#[test]
fn generated_shared_libraries_link() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "prog.c", PROGRAM);
    ends(
        0,
        folder,
        &[
            "generate", "nvrtc", "cudart", "--out", "stubs", "--form", "shared",
        ],
    );
    let file = "libgpustub_cudart_nvrtc.so";
    let lib = folder.join("stubs/lib");
    let shipped: Vec<_> = fs::read_dir(&lib)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(shipped, [file]);
    let rpath = format!("-Wl,-rpath,{}", lib.display());
    link_and_run(folder, &["-L", "stubs/link", "-lnvrtc", "-lcudart", &rpath]);
    let (list, _) = ends(0, folder, &["symbols", &format!("stubs/lib/{file}")]);
    assert!(list.contains(&format!("@soname {file}\n")), "{list}");
    assert!(
        list.contains("\ncudaMalloc\n") && list.contains("\nnvrtcVersion\n"),
        "{list}"
    );
}

#[test]
fn sources_alone_compile() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "prog.c", PROGRAM);
    ends(
        0,
        folder,
        &[
            "generate",
            "nvrtc",
            "cudart",
            "--out",
            "stubs",
            "--sources-only",
        ],
    );
    assert!(!folder.join("stubs/link").exists());
    let flags = ["-std=gnu11", "-fPIC", "-fvisibility=hidden"];
    let sources = ["stubs/src/runtime.c", "stubs/src/stubs.S", "-ldl"];
    link_and_run(folder, &[&flags[..], &sources].concat());
}

/// The way of a newcomer, up to a program that runs on a machine without the library.
#[test]
fn a_fresh_project_builds_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    package(folder, "fresh", "");
    // The crates are taken from here, and their dependencies from where this build has them.
    let helper = repository().join("gpustub-build");
    let patch = format!(
        "[patch.crates-io]\ngpustub-build = {{ path = '{}' }}\n",
        helper.display()
    );
    write(folder, ".cargo/config.toml", &patch);
    fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    write(
        folder,
        "src/main.rs",
        "unsafe extern \"C\" { fn cudaGetDeviceCount(n: *mut i32) -> i32; }\n\
         fn main() { let mut n = -7; let r = unsafe { cudaGetDeviceCount(&mut n) }; println!(\"{r} {n}\"); }\n",
    );
    ends(0, folder, &["init"]);
    ends(0, folder, &["add", "cudart", "--header", "12"]);
    ends(0, folder, &["sync"]);
    let output = Command::new(env!("CARGO"))
        .current_dir(folder)
        .args(["run", "--offline", "--quiet"])
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh"),
        )
        .env("GPUSTUB_CUDART_PATH", "off")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "35 0\n", "{err}");
    ends(0, folder, &["sync", "--check"]);
    let (plan, _) = ends(0, folder, &["plan"]);
    assert!(
        plan.starts_with("fresh 0.1.0 (GpuStub.toml)\n  cudart: "),
        "{plan}"
    );
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (script, err) = ends(0, Path::new("."), &["completions", shell]);
        assert!(script.contains("doctor") && err.is_empty(), "{shell}");
    }
}

/// What `--check` and `--dry-run` tell programs and people, and that both write nothing.
#[test]
fn a_check_shows_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    package(folder, "user", "");
    write(folder, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    let (json, _) = ends(1, folder, &["sync", "--check", "--message-format", "json"]);
    let lines: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |key: &str| {
        lines
            .iter()
            .map(|line| line[key].as_str().unwrap_or(""))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("reason"),
        ["operation", "operation", "operation", "diagnostic"]
    );
    assert_eq!(of("path"), ["Cargo.toml", "build.rs", "GpuStub.lock", ""]);
    assert_eq!(of("kind"), ["update", "create", "create", ""]);
    assert_eq!(of("state"), ["planned", "planned", "planned", ""]);
    assert!(
        of("diff")[0].ends_with("+gpustub-build = \"0.1\"\n"),
        "{json}"
    );
    assert_eq!(lines[3]["code"], "out-of-sync");

    let (check, _) = ends(1, folder, &["sync", "--check"]);
    let (dry, err) = ends(0, folder, &["sync", "--dry-run"]);
    assert_eq!(check, dry);
    assert!(err.contains("nothing was written"), "{err}");
    assert!(!folder.join("build.rs").exists() && !folder.join("GpuStub.lock").exists());
}

/// Cargo's own choice of colours holds for help, errors and findings; `--color` comes first.
#[test]
fn colours_follow_cargo() {
    let coloured = |arguments: &[&str], variable: &str| {
        let mut command = gpustub(Path::new("/"), arguments);
        let output = command.env("CARGO_TERM_COLOR", variable).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        assert!(!both.is_empty());
        both.contains(&0x1b)
    };
    for arguments in [
        &["--help"][..],
        &["syn"],
        &["explain", "nothing"],
        &["add", "nothing"],
    ] {
        assert!(coloured(arguments, "always"), "{arguments:?}");
        assert!(!coloured(arguments, "never"), "{arguments:?}");
        let with = |choice| [arguments, &["--color", choice]].concat();
        assert!(coloured(&with("always"), "never"), "{arguments:?}");
        assert!(!coloured(&with("never"), "always"), "{arguments:?}");
    }
}

/// What is installed decides `header` where it is unambiguous, and is named.
#[test]
fn a_header_is_proposed_where_one_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(
        folder,
        "toolkit/include/cuda.h",
        "#define CUDA_VERSION 12080\n",
    );
    write(folder, "cudarc/src/lib.rs", "");
    write(
        folder,
        "cudarc/Cargo.toml",
        "[package]\nname = \"cudarc\"\nversion = \"0.17.0\"\n[features]\ncuda-12080 = []\ncuda-11080 = []\n",
    );
    let add = |feature: &str| {
        let more = format!(
            "[workspace]\n[dependencies]\ncudarc = {{ path = \"cudarc\", features = [\"{feature}\"] }}\n"
        );
        package(folder, "user", &more);
        write(folder, "GpuStub.toml", "schema = 1\n");
        let output = gpustub(folder, &["add", "cudart"])
            .env("CUDA_HOME", folder.join("toolkit"))
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{err}");
        (
            fs::read_to_string(folder.join("GpuStub.toml")).unwrap(),
            err,
        )
    };
    let (text, err) = add("cuda-12080");
    assert!(
        text.ends_with("[stub.cudart]\nheader = \"12.8\"\n"),
        "{text}"
    );
    assert!(err.contains("include/cuda.h"), "{err}");
    assert!(
        err.contains("feature `cuda-12080` of cudarc 0.17.0"),
        "{err}"
    );
    let (text, err) = add("cuda-11080");
    assert!(text.ends_with("[stub.cudart]\n"), "{text}");
    assert!(
        err.contains("more than one to choose from") && err.contains("--header"),
        "{err}"
    );
}

/// A reader that goes away is no error, whatever is written.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = gpustub(Path::new("."), &["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

/// Ends a `sync` of many files by SIGKILL after each number of status lines. Every file is then
/// as it was or as it has to be, and the next run completes the work and leaves nothing behind.
#[cfg(unix)]
#[test]
fn a_killed_sync_leaves_whole_files() {
    const EXAMPLES: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let old = "fn main() {}\n";
    let new = "use user as _; // its build script has the GPU stubs\n\nfn main() {}\n";
    let example = |n: usize| folder.join(format!("examples/e{n}.rs"));
    for lines in 0..EXAMPLES {
        package(folder, "user", "");
        write(folder, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
        for n in 0..EXAMPLES {
            write(folder, example(n).to_str().unwrap(), old);
        }
        for file in ["build.rs", "GpuStub.lock"] {
            if folder.join(file).exists() {
                fs::remove_file(folder.join(file)).unwrap();
            }
        }
        let mut child = gpustub(folder, &["sync"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut status = BufReader::new(child.stderr.take().unwrap());
        for _ in 0..lines {
            status.read_line(&mut String::new()).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for n in 0..EXAMPLES {
            let text = fs::read_to_string(example(n)).unwrap();
            assert!(text == old || text == new, "{text:?}");
        }
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(
            lines == 0 || manifest.ends_with("gpustub-build = \"0.1\"\n"),
            "{manifest}"
        );
        ends(0, folder, &["sync"]);
        ends(0, folder, &["sync", "--check"]);
        let left: Vec<_> = [folder, &folder.join("examples")]
            .into_iter()
            .flat_map(|folder| fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with('.'))
            .collect();
        assert_eq!(left, [""; 0]);
    }
}
