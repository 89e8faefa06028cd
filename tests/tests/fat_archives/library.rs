//! A static library of HIP for three families, by clang 19.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::clang::Clang;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use tempfile::TempDir;

pub const ARCHS: [&str; 3] = ["gfx1030", "gfx1100", "gfx90a"];

/// Drivers of clang, which make different containers.
pub const DRIVERS: [&str; 2] = ["--no-offload-new-driver", "--offload-new-driver"];

/// What clang needs of HIP's headers.
const HEADER: &str = r#"
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
typedef int hipError_t;
typedef struct ihipStream_t *hipStream_t;
extern "C" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
extern "C" hipError_t __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = nullptr);
extern "C" hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
__device__ float square(float x);
__device__ float cube(float x);
"#;

const SOURCES: [(&str, &str); 3] = [
    (
        "apply",
        "__constant__ float scale = 2;
__global__ void squares(float *x) { *x = square(*x) * scale; }
__global__ void cubes(float *x) { *x = cube(*x) * scale; }
void run(float *x) { squares<<<1, 1>>>(x); cubes<<<1, 1>>>(x); }",
    ),
    (
        "cube",
        "__device__ float cube(float x) { return square(x) * x; }",
    ),
    (
        "square",
        "__device__ float square(float x) { return x * x; }",
    ),
];

/// Directory with `libfat.a` and its objects.
pub struct Library {
    directory: TempDir,
    driver: &'static str,
}

impl Library {
    pub fn new(driver: &'static str) -> Result<Self> {
        let library = Self {
            directory: scratch()?,
            driver,
        };
        fs::write(library.path("hip.h"), HEADER)?;
        let mut ar = library.command(Command::new("ar"), "rcs libfat.a");
        for (name, text) in SOURCES {
            fs::write(
                library.path(&format!("{name}.hip")),
                format!("#include \"hip.h\"\n{text}\n"),
            )?;
            let words = format!("-c -O2 -fPIC -x hip -nogpuinc -nogpulib {name}.hip -o {name}.o");
            succeed(&mut library.clang(&words)?)?;
            ar.arg(format!("{name}.o"));
        }
        succeed(&mut ar)?;
        Ok(library)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(fs::read(self.path(name))?)
    }

    fn command(&self, mut command: Command, words: &str) -> Command {
        command.current_dir(self.directory.path());
        command.args(words.split(' '));
        command
    }

    pub fn run(&self, tool: &str, words: &str) -> Result<String> {
        let ran = succeed(&mut self.command(Command::new(tool), words))?;
        Ok(ran.stdout)
    }

    /// clang for a device link of all families.
    pub fn clang(&self, words: &str) -> Result<Command> {
        let mut clang = Clang::System(19).command()?;
        clang.args([self.driver, "-fgpu-rdc"]);
        clang.args(ARCHS.map(|arch| format!("--offload-arch={arch}")));
        Ok(self.command(clang, words))
    }

    /// Output of `archive` with these words, without the subcommand's status lines.
    pub fn archive(&self, words: &str) -> Result<String> {
        let words = format!("archive {words}");
        let mut command = gpustub(&words.split(' ').collect::<Vec<_>>())?;
        command.current_dir(self.directory.path());
        Ok(succeed(&mut command)?.stdout)
    }
}

/// Tool of LLVM 19.
pub fn llvm(name: &str) -> String {
    Path::new("/usr/lib/llvm-19/bin")
        .join(name)
        .display()
        .to_string()
}
