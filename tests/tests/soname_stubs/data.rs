//! Data of soname stubs: an unchanged program reads it by a copy relocation, which for constants is in pages that are
//! read-only since the program started, or by its table of offsets. Two libraries may write to one page.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::readelf;
use gpustub_tests::scratch::scratch;

use super::{export, library};

const LIBRARY: &str = "\
static int handle = 32;
void *const CUTENSOR_COMPUTE_DESC_32F = &handle;
unsigned long cutensorGetVersion(void) { return 20800; }
";

const NODES: &str = "\
libcutensor.1.0.0 { global: cutensorGetVersion; local: *; };
libcutensor.2.0.0 { global: CUTENSOR_COMPUTE_DESC_32F; };
";

const PROGRAM: &str = "\
#include <stdio.h>
extern void *const CUTENSOR_COMPUTE_DESC_32F;
unsigned long cutensorGetVersion(void);
int main(void)
{
    unsigned long version = cutensorGetVersion();
    int *handle = *(void *const volatile *)&CUTENSOR_COMPUTE_DESC_32F;
    return printf(\"%lu %d\\n\", version, handle ? *handle : -1) < 0;
}
";

#[test]
fn unchanged_programs_read_the_data() -> Result<()> {
    let dir = scratch()?;
    let source = dir.path().join("program.c");
    fs::write(&source, PROGRAM)?;
    let real = library(&dir.path().join("real"), "libcutensor.so.2", LIBRARY, NODES)?;
    let options = ["--header-version=2.8", "--soname=libcutensor.so.2"];
    export(
        dir.path(),
        &[&["--quiet", "cutensor"][..], &options].concat(),
    )?;
    let stubs = dir.path().join("lib");
    let symbols = readelf(&["--dyn-syms"], &stubs.join("libcutensor.so.2"))?;
    let data = "8 OBJECT  GLOBAL DEFAULT";
    let node = "CUTENSOR_COMPUTE_DESC_32F@@libcutensor.2.0.0";
    assert!(
        symbols
            .lines()
            .any(|line| line.contains(data) && line.ends_with(node)),
        "{symbols}"
    );
    for options in [
        ["-pie", "-fpie"],
        ["-no-pie", "-fno-pie"],
        ["-pie", "-fPIC"],
    ] {
        let program = dir.path().join("program");
        let mut cc = Command::new("cc");
        cc.args(options).arg(&source).arg(&real);
        succeed(cc.arg("-o").arg(&program))?;
        for (path, expected) in [("off", "0 -1\n"), (&*real.to_string_lossy(), "20800 32\n")] {
            let mut command = Command::new(&program);
            command.env("LD_LIBRARY_PATH", &stubs);
            command.env("GPUSTUB_CUTENSOR_PATH", path);
            let ran = succeed(&mut command)?;
            assert_eq!(ran.stdout, expected, "{options:?}: {}", ran.stderr);
        }
    }
    Ok(())
}

const SECOND_LIBRARY: &str = "\
const int nvshmem_selected_device_transport = 5;
int nvshmem_my_pe(void) { return 7; }
";

/// Two threads bind two libraries, whose constants are in one page. Each waits between making it writable and writing.
const THREADS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
extern void *const CUTENSOR_COMPUTE_DESC_32F;
extern const int nvshmem_selected_device_transport;
unsigned long cutensorGetVersion(void);
int nvshmem_my_pe(void);

static pthread_barrier_t barrier;

int mprotect(void *start, size_t length, int protection)
{
    int result = (int)syscall(SYS_mprotect, start, length, protection);
    for (int i = 0; protection & PROT_WRITE && i < 1000; i++)
        sched_yield();
    return result;
}

static void *second(void *context)
{
    pthread_barrier_wait(&barrier);
    nvshmem_my_pe();
    return context;
}

static int is_writable(uintptr_t address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], permissions[5];
    unsigned long first, last;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &first, &last, permissions) == 3 && first <= address && address < last)
            return permissions[1] == 'w';
    return -1;
}

int main(void)
{
    pthread_t thread;
    uintptr_t a = (uintptr_t)&CUTENSOR_COMPUTE_DESC_32F, b = (uintptr_t)&nvshmem_selected_device_transport;
    printf("one page: %d, ", a / 4096 == b / 4096);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, second, NULL);
    pthread_barrier_wait(&barrier);
    cutensorGetVersion();
    pthread_join(thread, NULL);
    int *handle = *(void *const volatile *)&CUTENSOR_COMPUTE_DESC_32F;
    int transport = *(const volatile int *)&nvshmem_selected_device_transport;
    return printf("%d %d, writable: %d\n", handle ? *handle : -1, transport, is_writable(a)) < 0;
}
"#;

#[test]
fn threads_bind_libraries_with_constants_in_one_page() -> Result<()> {
    let dir = scratch()?;
    let source = dir.path().join("program.c");
    fs::write(&source, THREADS)?;
    let real = dir.path().join("real");
    let first = library(&real, "libcutensor.so.2", LIBRARY, NODES)?;
    let nodes = "NVSHMEM { global: nvshmem*; local: *; };\n";
    let second = library(&real, "libnvshmem_host.so.3", SECOND_LIBRARY, nodes)?;
    let sonames = ["--soname=libcutensor.so.2", "--soname=libnvshmem_host.so.3"];
    let versions = [
        "--header-version=cutensor=2.8",
        "--header-version=nvshmem=3",
    ];
    let libraries = ["--quiet", "cutensor", "nvshmem"];
    export(dir.path(), &[&libraries[..], &sonames, &versions].concat())?;
    let program = dir.path().join("program");
    let mut cc = Command::new("cc");
    cc.args(["-no-pie", "-fno-pie", "-rdynamic", "-pthread", "-o"])
        .arg(&program);
    succeed(cc.arg(&source).args([&first, &second]))?;
    for _ in 0..20 {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", dir.path().join("lib"));
        command.env("GPUSTUB_CUTENSOR_PATH", &first);
        command.env("GPUSTUB_NVSHMEM_PATH", &second);
        let ran = succeed(&mut command)?;
        assert_eq!(
            ran.stdout, "one page: 1, 32 5, writable: 0\n",
            "{}",
            ran.stderr
        );
    }
    Ok(())
}
