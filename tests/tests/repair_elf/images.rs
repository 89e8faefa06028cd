//! Small images that need GPU libraries, the libraries, and a stub.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_image::edit::{EditRequest, Replaced, Unversioned, plan};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use tempfile::TempDir;

/// A directory with images.
pub struct Images {
    directory: TempDir,
    compiler: &'static str,
}

/// The runtime of CUDA 12: its functions have a version.
const RUNTIME: &str = "int cudaMalloc(void) { return 12; } int cudaFree(void) { return 112; }";
/// The runtime of CUDA 13, with the version of its own.
const RUNTIME_13: &str = "int cudaMalloc(void) { return 13; } int cudaFree(void) { return 113; }";
/// The driver, whose functions have none.
const DRIVER: &str = "int cuInit(void) { return 1; }";

/// The stub: non-default versions of index 3 or more, which glibc gives to no unversioned reference.
const STUB: &str = r#"
int malloc_stub(void) { return 35; } __asm__(".symver malloc_stub, cudaMalloc@GPUSTUB_p_cudart");
int free_stub(void) { return 36; } __asm__(".symver free_stub, cudaFree@GPUSTUB_p_cudart");
int init_stub(void) { return 37; } __asm__(".symver init_stub, cuInit@GPUSTUB_p_cuda");
"#;
const STUB_NODES: &str = "GPUSTUB_0 { }; GPUSTUB_p_cudart { global: cudaMalloc; cudaFree; local: *; }; GPUSTUB_p_cuda { global: cuInit; };";

/// Zero-initialised, relocated, thread-local and constructed data around the imports. `f` returns what
/// they return.
pub const USER: &str = r#"
extern int cudaMalloc(void), cudaFree(void), cuInit(void);
#ifdef LARGE
static char large[3 << 20]; char *l = large + 5;
#endif
int big[5000]; static int x = 4; int *p[] = {&x, big, &big[5]};
static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 1; }
__thread int local = 2, local_zero[3];
int f(void) {
    int (*volatile address)(void) = cudaFree;
    for (int i = 0; i < 5000; i++)
        if (big[i]) return -1;
    if (local_zero[2] || local != 2 || *p[0] != 4 || p[2] != big + 5 || !constructed) return -2;
#ifdef ONE_LIBRARY
    return cudaMalloc() * 1000000 + address() * 1000;
#else
    return cudaMalloc() * 1000000 + address() * 1000 + cuInit();
#endif
}
#ifdef BARE
void print(int number);
__attribute__((force_align_arg_pointer)) void _start(void) { construct(); print(f()); }
#elif defined PROGRAM
#include <stdio.h>
int main(void) { printf("%d\n", f()); }
#endif
"#;

/// Printer for programs that do not need libc themselves.
const PRINTER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
void print(int number) { printf("%d\n", number); exit(0); }
"#;

/// Loads each argument, one with a plus sign into the global scope, and prints the result of its `f` or `g`.
pub const LOADER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int c, char **v) {
    for (int i = 1; i < c; i++) {
        const char *name = v[i];
        int flags = RTLD_NOW | RTLD_LOCAL;
        if (*name == '+') { flags = RTLD_NOW | RTLD_GLOBAL; name++; }
        void *handle = dlopen(name, flags);
        if (!handle) return fprintf(stderr, "%s\n", dlerror()), 3;
        int (*f)(void) = (int (*)(void))dlsym(handle, "f");
        int (*g)(void) = f ? 0 : (int (*)(void))dlsym(handle, "g");
        if (f || g) printf("%d\n", f ? f() : g());
    }
    return 0;
}
"#;

impl Images {
    /// The libraries (in `real/`), the stub (in `stub/`) and the program `load`.
    pub fn new() -> Result<Self> {
        Self::cross_compiled("gcc")
    }

    /// As [`Images::new`], with another compiler.
    pub fn cross_compiled(compiler: &'static str) -> Result<Self> {
        let images = Self {
            directory: scratch()?,
            compiler,
        };
        fs::create_dir(images.path("stub"))?;
        fs::create_dir(images.path("real"))?;
        images.library(
            "real/libcudart.so.12",
            RUNTIME,
            "libcudart.so.12",
            Some("libcudart.so.12 { global: *; };"),
        )?;
        images.library(
            "real/libcudart.so.13",
            RUNTIME_13,
            "libcudart.so.13",
            Some("libcudart.so.13 { global: *; };"),
        )?;
        images.library("real/libcuda.so.1", DRIVER, "libcuda.so.1", None)?;
        images.library(
            "stub/libgpustub_p.so",
            STUB,
            "libgpustub_p.so",
            Some(STUB_NODES),
        )?;
        images.library("stub/libprint.so", PRINTER, "libprint.so", None)?;
        images.compile("load", LOADER, &["-ldl"])?;
        Ok(images)
    }

    /// Path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles C; `flags` may name files of the directory with `@`.
    pub fn compile(&self, output: &str, source: &str, flags: &[&str]) -> Result<PathBuf> {
        let c = self.path(&format!("{output}.c"));
        fs::write(&c, source)?;
        let mut cc = Command::new(self.compiler);
        cc.args(["-O1", "-w", "-o"]).arg(self.path(output)).arg(&c);
        for flag in flags {
            match flag.strip_prefix('@') {
                Some(file) => cc.arg(self.path(file)),
                None => cc.arg(flag),
            };
        }
        succeed(&mut cc)?;
        Ok(self.path(output))
    }

    /// A shared library of this soname, with a version script.
    pub fn library(
        &self,
        output: &str,
        source: &str,
        soname: &str,
        versions: Option<&str>,
    ) -> Result<PathBuf> {
        let soname = format!("-Wl,-soname,{soname}");
        let mut flags = vec!["-shared", "-fPIC", &soname];
        let script = self.path(&format!("{output}.map"));
        let script_flag = format!("-Wl,--version-script={}", script.display());
        if let Some(versions) = versions {
            fs::write(&script, versions)?;
            flags.push(&script_flag);
        }
        self.compile(output, source, &flags)
    }

    /// Edits an image, so that it uses the stub.
    pub fn repair(&self, image: &Path, output: &str, request: &EditRequest) -> Result<PathBuf> {
        let bytes = fs::read(image)?;
        let patch = plan(&bytes, request)?;
        let mut file = fs::File::create(self.path(output))?;
        patch.write(&bytes, &mut file)?;
        file.set_permissions(fs::metadata(image)?.permissions())?;
        Ok(self.path(output))
    }
}

/// The request of a package that imports the runtime and the driver.
pub fn request() -> EditRequest {
    let replaced = |needed: &str, nodes: &[&str], node: &str| Replaced {
        needed: vec![needed.to_owned()],
        nodes: nodes.iter().map(|node| node.to_string()).collect(),
        node: node.to_owned(),
    };
    EditRequest {
        stub: "libgpustub_p.so".into(),
        runpath: Some("$ORIGIN/stub".into()),
        removed_runpath: Vec::new(),
        libraries: vec![
            replaced("libcudart.so.12", &["libcudart.so.12"], "GPUSTUB_p_cudart"),
            replaced("libcuda.so.1", &[], "GPUSTUB_p_cuda"),
        ],
        unversioned: vec![Unversioned {
            symbol: "cuInit".into(),
            node: "GPUSTUB_p_cuda".into(),
        }],
        data: Vec::new(),
        removes_signature: false,
    }
}
