//! `repair` of images that read data of a library, by their table of offsets (GOT) and by a copy relocation.

use std::path::Path;
use std::process::Command;

use super::{cc, ends, write};

/// In place of NVSHMEM's host library: a function that changes the data, and then calls a callback, which reads it.
const LIBRARY: &str = "\
int nvshmem_selected_device_transport;
int nvshmemid_hostlib_init_attr(int a, int *b, unsigned c, void *d, long e, int f, int (*callback)(int *))
{
    int seen = -1;
    nvshmem_selected_device_transport = 2;
    callback(&seen);
    return seen;
}
";

/// Prints the data before the call, what the callback saw (without the library: the status), and the data after it.
const USER: &str = "\
#include <stdio.h>
extern int nvshmem_selected_device_transport;
int nvshmemid_hostlib_init_attr(int, int *, unsigned, void *, long, int, int (*)(int *));
static volatile int *const data = &nvshmem_selected_device_transport;
static int callback(int *seen) { *seen = *data; return 0; }
int run(void)
{
    int before = *data, status = nvshmemid_hostlib_init_attr(0, 0, 0, 0, 0, 0, callback);
    return printf(\"%d %d %d\\n\", before, status, *data) < 0;
}
";

/// As [`USER`], with constant data. The last number tells whether the data is read-only after the call.
const SEALED_USER: &str = "\
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
extern const int nvshmem_selected_device_transport;
int nvshmemid_hostlib_init_attr(int, int *, unsigned, void *, long, int, int (*)(int *));
#ifdef DENIED
int mprotect(void *start, size_t length, int protection)
{
    (void)start, (void)length, (void)protection;
    errno = EACCES;
    return -1;
}
#endif
static int callback(int *seen)
{
    *seen = *(const volatile int *)&nvshmem_selected_device_transport;
    return 0;
}
int main(void)
{
    int before, status, after;
    callback(&before);
    status = nvshmemid_hostlib_init_attr(0, 0, 0, 0, 0, 0, callback);
    callback(&after);
    int zeros = open(\"/dev/zero\", O_RDONLY); /* the system refuses to read into read-only memory */
    int sealed = read(zeros, (void *)&nvshmem_selected_device_transport, sizeof(int)) < 0 && errno == EFAULT;
    return printf(\"%d %d %d %d\\n\", before, status, after, sealed) < 0;
}
";

fn output(directory: &Path, program: &str, libraries: &str) -> String {
    let mut command = Command::new(directory.join(program));
    command.env("LD_LIBRARY_PATH", directory.join(libraries));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds a library with NVSHMEM's soname and version node.
fn library(directory: &Path, code: &str) -> &'static str {
    let library = "link/libnvshmem_host.so.3";
    write(directory, "library.c", code);
    write(directory, "map", "NVSHMEM { global: *; };\n");
    let soname = "-Wl,-soname,libnvshmem_host.so.3,--version-script=map";
    cc(
        directory,
        &["-shared", "-fPIC", "library.c", soname, "-o", library],
    );
    library
}

#[test]
fn data_is_copied_when_the_library_is_bound() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["link", "got", "copied", "none"] {
        std::fs::create_dir(directory.join(name)).unwrap();
    }
    let library = library(directory, LIBRARY);
    write(directory, "user.c", USER);
    write(
        directory,
        "main.c",
        "int run(void); int main(void) { return run(); }\n",
    );
    // Position-independent code reads the address in the table, other code has the object itself.
    for (package, options) in [
        ("got", ["-fPIC", "-pie"]),
        ("copied", ["-fno-pie", "-no-pie"]),
    ] {
        let program = format!("{package}/program");
        let sources = ["main.c", "user.c", library, "-o", &program];
        cc(directory, &[&options[..], &sources].concat());
        let (_, err) = ends(0, directory, &["repair", package, "--out-dir", "out"]);
        assert!(err.contains("1 image with"), "{err}");
        let repaired = format!("out/{program}");
        assert_eq!(output(directory, &repaired, "none"), "0 7 0\n", "{package}");
        assert_eq!(output(directory, &repaired, "link"), "0 2 2\n", "{package}");
    }
}

/// A copy relocation of constant data is in pages that are read-only since the program started (PT_GNU_RELRO). Where the
/// system denies to make them writable, the report names the data.
#[test]
fn constant_data_is_copied_unless_its_pages_stay_read_only() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["link", "package"] {
        std::fs::create_dir(directory.join(name)).unwrap();
    }
    let data = "int nvshmem_selected_device_transport";
    let constant = LIBRARY
        .replace("    nvshmem_selected_device_transport = 2;\n", "")
        .replace(&format!("{data};"), &format!("const {data} = 2;"));
    let library = library(directory, &constant);
    write(directory, "user.c", SEALED_USER);
    for (program, options) in [
        ("package/pie", ["-pie", "-fpie"]),
        ("package/fixed", ["-no-pie", "-fno-pie"]),
        ("package/denied", ["-rdynamic", "-DDENIED"]),
    ] {
        let sources = ["user.c", library, "-o", program];
        cc(directory, &[&options[..], &sources].concat());
    }
    ends(0, directory, &["repair", "package", "--out-dir", "out"]);
    for (program, expected) in [
        ("pie", "0 2 2 1\n"),
        ("fixed", "0 2 2 1\n"),
        ("denied", "0 0 0 1\n"),
    ] {
        let mut command = Command::new(directory.join("out/package").join(program));
        command
            .env("LD_LIBRARY_PATH", directory.join("link"))
            .env("GPUSTUB_LOG", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let missing =
            "missing: nvshmem_selected_device_transport (the program's object is read-only)";
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(log.contains(missing), program == "denied", "{log}");
    }
}

/// The data of a library of which the stubs have no copy.
#[test]
fn other_data_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["link", "package"] {
        std::fs::create_dir(directory.join(name)).unwrap();
    }
    let library = library(directory, "int nvshmem_debug_level;\n");
    let code = "extern int nvshmem_debug_level; int *f(void) { return &nvshmem_debug_level; }\n";
    write(directory, "user.c", code);
    let user = "package/libuser.so";
    cc(
        directory,
        &["-shared", "-fPIC", "user.c", library, "-o", user],
    );
    let (_, err) = ends(1, directory, &["repair", "package", "--out-dir", "out"]);
    let reason = "imports the data `nvshmem_debug_level`, of which the stubs have no copy";
    assert!(err.contains(reason), "{err}");
}
