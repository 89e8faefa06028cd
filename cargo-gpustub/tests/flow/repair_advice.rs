//! The way that `check` names for an image is one that `repair` takes.

use super::repair_libraries::library;
use super::{cc, ends, run, write};

/// Sonames and functions of the libraries that an image needs, with the help of `needed-toolkit` or `needed-driver`, and the
/// options of the repair that it names; `None`: no repair.
type Case<'c> = (&'c [(&'c str, &'c str)], &'c str, Option<&'c [&'c str]>);

const CASES: [Case<'_>; 7] = [
    (
        &[
            ("libcudart.so.12", "cudaMalloc"),
            ("libcuda.so.1", "cuInit"),
        ],
        "link the gpustub stubs instead, or edit the finished file with `cargo gpustub repair`",
        Some(&[]),
    ),
    (
        &[("libsycl.so.8", "syclTest")],
        "there are no stubs of libsycl.so.8: stubs cannot replace C++ classes; build the file without, or leave the file out of \
         the package",
        None,
    ),
    (
        &[("libcudensitymat.so.0", "cudensitymatOpen")],
        "there are no stubs of libcudensitymat.so.0: `cargo gpustub repair --library NAME=path/to/libcudensitymat.so.0` \
         makes stubs of its functions",
        Some(&[
            "--library",
            "name=libcudensitymat.so.0",
            "--returns",
            "status",
        ]),
    ),
    (
        &[("libvulkan.so.1", "vkCreateInstance")],
        "there are no stubs of libvulkan.so.1: a package may bring a loader, which auditwheel or delvewheel copies",
        None,
    ),
    (
        &[
            ("libcudart.so.12", "cudaMalloc"),
            ("libsycl.so.8", "syclTest"),
        ],
        "link the gpustub stubs instead; there are no stubs of libsycl.so.8: stubs cannot replace C++ classes; build the \
         file without, or leave the file out of the package; `--partial` of `cargo gpustub repair` replaces the other libraries",
        Some(&["--partial"]),
    ),
    // Another rule reports the library without stubs.
    (
        &[
            ("libcuda.so.1", "cuInit"),
            ("libcudensitymat.so.0", "cudensitymatOpen"),
        ],
        "link the gpustub stubs instead; there are no stubs of libcudensitymat.so.0: `cargo gpustub repair --library \
         NAME=path/to/libcudensitymat.so.0` makes stubs of its functions; `--partial` of `cargo gpustub repair` replaces the \
         other libraries",
        Some(&["--partial"]),
    ),
    (
        &[
            ("libcudart.so.12", "cudaMalloc"),
            ("libc.musl-x86_64.so.1", "musl"),
        ],
        "link the gpustub stubs instead; `cargo gpustub repair` does not edit images for musl",
        None,
    ),
];

#[test]
fn check_recommends_what_repair_does() {
    for (libraries, help, options) in CASES {
        let work = tempfile::tempdir().unwrap();
        let directory = work.path();
        let mut code = String::new();
        let mut flags = vec![
            "-shared",
            "-fPIC",
            "-o",
            "core.so",
            "core.c",
            "-Wl,--no-as-needed",
        ];
        for (soname, function) in libraries {
            let definition = format!("int {function}(void) {{ return 0; }}\n");
            library(directory, soname, &definition, &[]);
            code += &format!(
                "int {function}(void); int call_{function}(void) {{ return {function}(); }}\n"
            );
            flags.push(soname);
        }
        write(directory, "core.c", &code);
        cc(directory, &flags);
        let words = ["check", "core.so", "--message-format", "json"];
        let output = run(directory, &words);
        let out = String::from_utf8(output.stdout).unwrap();
        let is_named = out.contains(&format!("\"help\":\"{help}\""));
        assert!(is_named || help.is_empty(), "{help}: {out}");

        let repair = ["repair", "core.so", "--out-dir", "out"];
        let code = i32::from(options.is_none());
        ends(
            code,
            directory,
            &[&repair[..], options.unwrap_or_default()].concat(),
        );
        // Without the options that the help names, the image is refused.
        let is_refused = options.is_none_or(|options| !options.is_empty());
        let force = [&repair[..], &["--force"]].concat();
        ends(i32::from(is_refused), directory, &force);
    }
}
