//! LLVM's client and server as programs: `tests/programs/llvm-rpc`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use gpurpc::memory::{Memory, Region, SharedMemory};
use gpurpc::{Generation, Layout};
use gpurpc_tests::command::succeed;
use gpurpc_tests::components::component;
use gpurpc_tests::{Result, workspace};

/// Release of LLVM, whose libc is in the component `llvm-libc-` with this number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Llvm(pub u32);

/// Files of LLVM's libc for GPUs in the client.
const CLIENT: &[&str] = &[
    "__support/OSUtil/gpu/exit",
    "stdio/gpu/clearerr",
    "stdio/gpu/fclose",
    "stdio/gpu/feof",
    "stdio/gpu/ferror",
    "stdio/gpu/fflush",
    "stdio/gpu/fgetc",
    "stdio/gpu/fgets",
    "stdio/gpu/fopen",
    "stdio/gpu/fputc",
    "stdio/gpu/fputs",
    "stdio/gpu/fread",
    "stdio/gpu/fseek",
    "stdio/gpu/fwrite",
    "stdio/gpu/puts",
    "stdio/gpu/remove",
    "stdio/gpu/ungetc",
];
/// Additional files after LLVM 19.
const NEW: &[&str] = &["stdio/gpu/rename", "stdlib/gpu/system"];

impl Llvm {
    /// Generation of its protocol.
    pub fn generation(self) -> Result<&'static Generation> {
        let generation = Generation::for_release(self.0);
        Ok(generation.ok_or_else(|| format!("LLVM {}: unknown", self.0))?)
    }

    /// Whether opcodes have 16 bits.
    pub fn is_narrow(self) -> bool {
        self.0 == 19
    }

    /// Builds and runs the program that prints sizes and offsets.
    pub fn layout(self, dir: &Path) -> Result<String> {
        let program = dir.join("layout");
        let mut compiler = self.compiler(&self.libc()?);
        // Attributes for clang, and `offsetof` in types that are not of standard layout.
        compiler.args(["-Wall", "-Wextra", "-Werror", "-Wno-attributes"]);
        compiler.arg("-Wno-invalid-offsetof");
        compiler.arg("-o").arg(&program);
        succeed(compiler.arg(sources().join("layout.cpp")))?;
        Ok(succeed(&mut Command::new(program))?.stdout)
    }

    fn libc(self) -> Result<PathBuf> {
        component(&format!("llvm-libc-{}/libc", self.0))
    }

    fn compiler(self, libc: &Path) -> Command {
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-O1", "-pthread", "-DLIBC_NAMESPACE=wire"]);
        compiler.arg(format!("-DLLVM_MAJOR={}", self.0));
        compiler.arg("-I").arg(sources());
        compiler.arg("-I").arg(sources().join("device"));
        compiler.arg("-I").arg(libc);
        compiler
    }

    /// Builds the program with LLVM's client.
    pub fn client(self, dir: &Path) -> Result<PathBuf> {
        let libc = self.libc()?;
        let objects = dir.join("objects");
        std::fs::create_dir_all(&objects)?;
        let new = if self.is_narrow() { &[] } else { NEW };
        let names = CLIENT.iter().chain(new);
        let files = names.map(|name| libc.join("src").join(name).with_extension("cpp"));
        let mut compiler = self.compiler(&libc);
        // Without warnings in LLVM's files.
        compiler.args(["-include", "client.h", "-w", "-c"]);
        succeed(compiler.current_dir(&objects).args(files))?;

        let program = dir.join("client");
        let mut compiler = self.compiler(&libc);
        // The headers are written for clang, and have attributes that gcc does not know.
        compiler.args(["-Wall", "-Wextra", "-Werror", "-Wno-attributes"]);
        compiler.arg("-o").arg(&program);
        compiler.arg(sources().join("client.cpp"));
        compiler.arg(sources().join("device/run.cpp"));
        for object in std::fs::read_dir(&objects)? {
            compiler.arg(object?.path());
        }
        succeed(&mut compiler)?;
        Ok(program)
    }

    /// Builds the program with LLVM's server.
    pub fn server(self, dir: &Path) -> Result<PathBuf> {
        let program = dir.join("server");
        let mut compiler = self.compiler(&self.libc()?);
        // LLVM's own header has false positives of this warning.
        compiler.args(["-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized"]);
        compiler.arg("-o").arg(&program);
        compiler.arg(sources().join("server.cpp"));
        if self.is_narrow() {
            let library = component("llvmlibc-19/usr/lib/llvm-19")?;
            compiler.arg("-I").arg(library.join("include"));
            compiler.arg(library.join("lib/libllvmlibc_rpc_server.a"));
        }
        succeed(&mut compiler)?;
        Ok(program)
    }
}

fn sources() -> PathBuf {
    workspace().join("tests/programs/llvm-rpc")
}

/// Event of the doorbell.
pub const EVENT: u32 = 7;
/// Words behind the memory of the protocol: counter and mailbox of a doorbell.
const DOORBELL_WORDS: usize = 2;

/// Counter and mailbox of a doorbell in memory of [`mapped`].
pub fn doorbell_words(region: &Region) -> [NonNull<AtomicU64>; DOORBELL_WORDS] {
    let size = region.layout().size();
    // SAFETY: `mapped` makes these words behind the memory; its size is a multiple of 8.
    [0, 1].map(|word| unsafe { region.start().add(size + 8 * word) }.cast())
}

/// Zeroed memory in a new file, which other processes map also.
pub fn mapped(path: &Path, layout: Layout) -> Result<Region> {
    let file = std::fs::File::create_new(path)?;
    file.set_len((layout.size() + 8 * DOORBELL_WORDS) as u64)?;
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    let map = memmap2::MmapOptions::new().map_raw(&file)?;
    let start = NonNull::new(map.as_mut_ptr()).ok_or("a map at no address")?;
    // SAFETY: the map exists until the region is released, and no other code here uses it.
    let memory = unsafe { SharedMemory::new(start, map.len(), layout) }?;
    Ok(Region::new(memory, move |_| drop(map)))
}
