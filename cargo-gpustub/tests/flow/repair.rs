//! `repair` of libraries and programs. The images are linked with an imitation of libcudart, which
//! is gone when they run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{cc, ends, write};

/// The imitation: `libcudart.so.12` with the real version node, in `link`.
pub fn cudart(directory: &Path, major: &str) {
    let node = format!("libcudart.so.{major}");
    let code = "int cudaMalloc(void **p, unsigned long n) { return 7; }\n\
                int cudaGetDeviceCount(int *n) { *n = 7; return 7; }\n\
                int cudaTomorrow(void) { return 7; }\nint cudaData = 7;\n";
    write(directory, "cudart.c", code);
    write(
        directory,
        "cudart.map",
        &format!("{node} {{ global: *; }};\n"),
    );
    fs::create_dir_all(directory.join("link")).unwrap();
    cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            &format!("-Wl,-soname,{node}"),
            "-o",
            "link/libcudart.so",
            "cudart.c",
            "-Wl,--version-script=cudart.map",
        ],
    );
}

/// Compiles C code to an image that needs the imitation.
pub fn image(directory: &Path, name: &str, code: &str, more: &[&str]) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let source = format!("{name}.c");
    write(directory, &source, code);
    let mut options = vec!["-o", name, &source, "-fPIC", "-Llink"];
    options.extend(more);
    options.extend(["-Wl,--no-as-needed", "-lcudart"]);
    cc(directory, &options);
}

pub const COUNT: &str = "int cudaGetDeviceCount(int *);\n\
    int count(void) { int n = 3; int status = cudaGetDeviceCount(&n); return 100 * status + n; }\n";

const MAIN: &str = "#include <stdio.h>\nint cudaGetDeviceCount(int *);\n\
    int main(void) { int n = 3; int s = cudaGetDeviceCount(&n); printf(\"status %d, %d devices\\n\", s, n); }\n";

/// Output of a program, which is found to be startable.
fn output(program: &Path) -> String {
    let output = Command::new(program).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn repaired_programs_start_and_report_a_status() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "app", MAIN, &[]);
    image(directory, "fixed", MAIN, &["-no-pie"]);
    let before = Command::new(directory.join("app")).output().unwrap();
    assert!(!before.status.success());

    let original = fs::read(directory.join("app")).unwrap();
    let (_, err) = ends(
        0,
        directory,
        &["repair", "app", "fixed", "--out-dir", "out"],
    );
    assert!(
        err.contains("Repaired out: 2 images with libgpustub_app_"),
        "{err}"
    );
    // cudaErrorInsufficientDriver; the out-parameter is zeroed.
    for program in ["app", "fixed"] {
        assert_eq!(
            output(&directory.join("out").join(program)),
            "status 35, 0 devices\n"
        );
    }
    assert_eq!(fs::read(directory.join("app")).unwrap(), original);

    // Again: the output is known as that of gpustub, and has the same bytes.
    let first = fs::read(directory.join("out/app")).unwrap();
    ends(
        0,
        directory,
        &["repair", "app", "fixed", "--out-dir", "out"],
    );
    assert_eq!(fs::read(directory.join("out/app")).unwrap(), first);
    // A repaired file needs no repair.
    let (_, err) = ends(0, directory, &["repair", "out/app", "--out-dir", "again"]);
    assert!(err.contains("repaired before, with libgpustub_"), "{err}");
}

#[test]
fn repaired_stub_has_only_imported_functions_under_its_own_node() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "libuser.so.1", COUNT, &["-shared"]);
    ends(
        0,
        directory,
        &["repair", "libuser.so.1", "--out-dir", "out"],
    );
    let stub = fs::read_dir(directory.join("out"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("libgpustub_user_"))
        .unwrap();
    let bytes = fs::read(stub).unwrap();
    let list =
        gpustub_image::read_symbols(&bytes, gpustub_image::SymbolRequirements::default()).unwrap();
    let symbols: Vec<_> = list
        .symbols
        .iter()
        .filter(|symbol| symbol.name.starts_with("cuda"))
        .map(|symbol| (symbol.name.as_str(), symbol.compat, symbol.version.clone()))
        .collect();
    let [(name, is_hidden, Some(node))] = &symbols[..] else {
        panic!("{symbols:?}")
    };
    assert!(*name == "cudaGetDeviceCount" && *is_hidden, "{symbols:?}");
    assert!(
        node.starts_with("GPUSTUB_user_") && node.ends_with("_cudart"),
        "{node}"
    );
}

#[test]
fn toolkits_of_the_build_machine_leave_the_runpath() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let rpath = "-Wl,-rpath,/usr/local/cuda-12.1/lib64:/opt/other:/usr/local/cuda/lib64/stubs";
    image(directory, "tree/libuser.so", COUNT, &["-shared", rpath]);
    // The toolkit may have a library that the package lacks.
    write(directory, "profile.c", "int profile(void) { return 7; }");
    let soname = "-Wl,-soname,libprofile.so.1";
    cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            soname,
            "-o",
            "link/libprofile.so",
            "profile.c",
        ],
    );
    let options = ["-shared", rpath, "-Wl,--no-as-needed", "-lprofile"];
    image(directory, "tree/libprofiled.so", COUNT, &options);
    // Libraries that an image opens by name may be there.
    let opener = "void *dlopen(const char *, int); int cudaGetDeviceCount(int *);\n\
        int count(int *n) { return dlopen(\"libnvrtc.so.12\", 1) ? cudaGetDeviceCount(n) : 0; }";
    image(
        directory,
        "tree/libopener.so",
        opener,
        &["-shared", rpath, "-ldl"],
    );

    let repair = ["repair", "tree", "--out-dir", "out", "-v"];
    let (_, err) = ends(0, directory, &repair);
    let removed = "; runpath without /usr/local/cuda-12.1/lib64, /usr/local/cuda/lib64/stubs";
    assert!(
        err.contains(&format!("libcudart.so.12{removed}\n")),
        "{err}"
    );
    let unreduced = "/usr/local/cuda-12.1/lib64:/opt/other:/usr/local/cuda/lib64/stubs:$ORIGIN";
    for (name, runpath) in [
        ("libuser.so", "/opt/other:$ORIGIN"),
        ("libprofiled.so", unreduced),
        ("libopener.so", unreduced),
    ] {
        let image = fs::read(directory.join("out/tree").join(name)).unwrap();
        let facts = gpustub_image::read_link_facts(&image).unwrap();
        assert_eq!(facts.runpath.as_deref(), Some(runpath));
    }
}

#[test]
fn functions_of_libraries_that_replaced_ones_load_have_stubs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("link")).unwrap();
    // As of ROCm: no symbol versions, and only libhipblas needs libamdhip64.
    for (file, soname, code, needs) in [
        (
            "libamdhip64.so",
            "libamdhip64.so.6",
            "int hipGetLastError(void) { return 7; }",
            "",
        ),
        (
            "libhipblas.so",
            "libhipblas.so.2",
            "int hipblasDestroy(void *h) { return 7; }",
            "-lamdhip64",
        ),
    ] {
        let (source, library) = (format!("{file}.c"), format!("link/{file}"));
        write(directory, &source, code);
        let soname_option = format!("-Wl,-soname,{soname}");
        let mut options = vec!["-shared", "-fPIC", "-o", &library, &source, &soname_option];
        options.extend(["-Llink", "-Wl,--no-as-needed"]);
        options.extend((!needs.is_empty()).then_some(needs));
        cc(directory, &options);
        fs::copy(
            directory.join(&library),
            directory.join("link").join(soname),
        )
        .unwrap();
    }
    let code = "int hipblasDestroy(void *); int hipGetLastError(void); int getpid(void);\n\
        int status(void) { return getpid() ? 1000 * hipblasDestroy(0) + hipGetLastError() : 0; }";
    write(directory, "user.c", code);
    fs::create_dir(directory.join("tree")).unwrap();
    let options = [
        "-shared",
        "-fPIC",
        "-o",
        "tree/libuser.so",
        "user.c",
        "-Llink",
        "-lhipblas",
    ];
    cc(directory, &options);
    let code =
        "#include <stdio.h>\nint status(void);\nint main(void) { printf(\"%d\\n\", status()); }";
    write(directory, "app.c", code);
    let link = "-Wl,-rpath,$ORIGIN,--allow-shlib-undefined";
    cc(
        directory,
        &["-o", "tree/app", "app.c", "-Ltree", "-luser", link],
    );
    ends(0, directory, &["repair", "tree", "--out-dir", "out"]);
    let mut app = Command::new(directory.join("out/tree/app"));
    app.env("GPUSTUB_HIP_PATH", "off")
        .env("GPUSTUB_HIPBLAS_PATH", "off");
    let output = app.output().unwrap();
    // HIPBLAS_STATUS_NOT_INITIALIZED, hipErrorNoDevice.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1100\n",
        "{output:?}"
    );
}

#[test]
fn images_that_cannot_be_repaired_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let shared = &["-shared"][..];
    for (name, code, reason) in [
        (
            "libdata.so",
            "extern int cudaData; int f(void) { return cudaData; }",
            "cudaData",
        ),
        (
            "libnew.so",
            "int cudaTomorrow(void); int f(void) { return cudaTomorrow(); }",
            "cudaTomorrow",
        ),
    ] {
        image(directory, name, code, shared);
        let (_, err) = ends(1, directory, &["repair", name, "--out-dir", "out"]);
        assert!(
            err.contains("error[unsupported-image]") && err.contains(reason),
            "{err}"
        );
        assert!(!directory.join("out").join(name).exists());
    }
    // The others of a set are repaired.
    image(directory, "libgood.so", COUNT, shared);
    let (_, err) = ends(
        1,
        directory,
        &["repair", "libdata.so", "libgood.so", "--out-dir", "out"],
    );
    assert!(
        err.contains("`libdata.so` imports") && err.contains("1 image with"),
        "{err}"
    );
    // A library without stubs.
    cc(
        directory,
        &[
            "-shared",
            "-Wl,-soname,libnvinfer.so.10",
            "-o",
            "link/libnvinfer.so",
            "cudart.c",
            "-fPIC",
        ],
    );
    image(
        directory,
        "libtrt.so",
        COUNT,
        &["-shared", "-Wl,--no-as-needed", "-lnvinfer"],
    );
    let (_, err) = ends(1, directory, &["repair", "libtrt.so", "--out-dir", "out"]);
    assert!(
        err.contains("needs libnvinfer.so.10, for which there are no stubs")
            && err.contains("help: it starts only where libnvinfer.so.10 is installed"),
        "{err}"
    );
    write(directory, "text", "no image");
    let (_, err) = ends(1, directory, &["repair", "text", "--out-dir", "out"]);
    assert!(
        err.contains("neither a wheel nor a program, library or directory"),
        "{err}"
    );
}

/// A vendor's library is not edited, so an image that needs it starts only with the libraries that it needs.
#[test]
fn vendors_libraries_of_a_package_need_their_libraries() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    fs::create_dir_all(directory.join("acme")).unwrap();
    for (path, needs) in [
        ("link/libcublasLt.so.12", &[][..]),
        (
            "acme/libcudensitymat.so.0",
            &["-Wl,--no-as-needed", "link/libcublasLt.so.12"],
        ),
    ] {
        let soname = format!("-Wl,-soname,{}", path.rsplit('/').next().unwrap());
        let options = ["-shared", "-fPIC", &soname, "-o", path, "cudart.c"];
        cc(directory, &[&options[..], needs].concat());
    }
    image(
        directory,
        "acme/libapp.so",
        COUNT,
        &["-shared", "-Wl,--no-as-needed", "acme/libcudensitymat.so.0"],
    );
    let repair = ["repair", "acme", "--out-dir", "out"];
    let (_, err) = ends(1, directory, &repair);
    assert!(
        err.contains("`libapp.so` loads libcudensitymat.so.0 of this package, which needs libcublasLt.so.12")
            && err.contains("help: it starts only where libcublasLt.so.12 is installed: build the image without libcudensitymat.so.0"),
        "{err}"
    );
    fs::copy(
        directory.join("link/libcublasLt.so.12"),
        directory.join("acme/libcublasLt.so.12"),
    )
    .unwrap();
    ends(0, directory, &repair);
}

/// A warning alone does not keep files of a set from the output.
#[test]
fn images_that_need_no_repair_are_copied() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    // Strings by which a static CUDA runtime is found.
    let runtime = "const char *runtime(int n) {\n\
        return n ? \"/cudart.shm.%x.%x.%llx\" : \"startup failure in cuda runtime\"; }\n";
    write(directory, "static.c", runtime);
    cc(
        directory,
        &["-shared", "-fPIC", "-o", "libstatic.so", "static.c"],
    );
    let (_, err) = ends(
        0,
        directory,
        &["repair", "libstatic.so", "--out-dir", "out"],
    );
    assert!(
        err.contains("warning[unsupported-image]: `libstatic.so` contains the CUDA runtime")
            && err.contains("help: leave it: it opens the driver itself")
            && err.contains("no GPU library to replace"),
        "{err}"
    );
    assert_eq!(
        fs::read(directory.join("libstatic.so")).unwrap(),
        fs::read(directory.join("out/libstatic.so")).unwrap()
    );
}

#[test]
fn originals_and_foreign_files_are_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "libuser.so", COUNT, &["-shared"]);
    let (_, err) = ends(101, directory, &["repair", "libuser.so", "--out-dir", "."]);
    assert!(err.contains("would replace the original"), "{err}");
    let into_file = ["repair", "libuser.so", "--out-dir", "cudart.c", "--dry-run"];
    let (_, err) = ends(101, directory, &into_file);
    assert!(err.contains("`cudart.c` is not a directory"), "{err}");
    write(directory, "out/libuser.so", "of another program");
    let arguments = ["repair", "libuser.so", "--out-dir", "out"];
    let (_, err) = ends(101, directory, &arguments);
    assert!(
        err.contains("already exists and was not generated by gpustub"),
        "{err}"
    );
    let (_, err) = ends(
        0,
        directory,
        &[&arguments[..], &["--dry-run", "--force"]].concat(),
    );
    assert!(
        err.contains("Editing") && err.contains("libuser.so: without libcudart.so.12"),
        "{err}"
    );
    assert_eq!(
        fs::read(directory.join("out/libuser.so")).unwrap(),
        b"of another program"
    );
    ends(0, directory, &[&arguments[..], &["--force"]].concat());
    let facts =
        gpustub_image::read_link_facts(&fs::read(directory.join("out/libuser.so")).unwrap());
    assert!(facts.unwrap().needed[0].starts_with("libgpustub_user_"));
    let version = [&arguments[..], &["--header-version", "cuda=99"]].concat();
    let (_, err) = ends(1, directory, &version);
    let reason = "error[unsupported-image]: `libuser.so` imports functions whose stubs cannot be generated: unknown major 99 of";
    assert!(err.contains(reason), "{err}");
    write(directory, "tree/x", "");
    let (_, err) = ends(101, directory, &["repair", "tree", "--out-dir", "tree/out"]);
    assert!(err.contains("name a directory outside of it"), "{err}");
}
