//! Inputs, each made by its real tool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::clang::Clang;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, only_entry};
use gpustub_tests::nvcc::{TOOLKIT_12, TOOLKIT_13};
use gpustub_tests::{Result, repository};

/// File with device code.
pub struct Input {
    /// Name of the file.
    pub name: &'static str,
    /// Description, for the page.
    pub title: &'static str,
    /// Whether it is a program or shared library, which no archive has.
    pub is_image: bool,
    recipe: Recipe,
}

enum Recipe {
    /// clang 19 with these words, and options for HIP.
    Hip(&'static str),
    /// clang 19 with these words.
    Clang(&'static str),
    /// A tool of LLVM 19 with these words.
    Tool(&'static str, &'static str),
    /// nvcc 13.5, 12.4.
    Nvcc(&'static str),
    Nvcc12(&'static str),
    /// Member of the wheel in a component.
    Wheel(&'static str, &'static str),
    /// Bytes that imitate a file of which no package has an example.
    Bytes(&'static [u8]),
}
use Recipe::{Bytes, Hip, Nvcc, Nvcc12, Tool, Wheel};

const fn input(name: &'static str, title: &'static str, recipe: Recipe) -> Input {
    Input {
        name,
        title,
        is_image: false,
        recipe,
    }
}

/// Made in a second or two each.
pub const INPUTS: &[Input] = &[
    input(
        "hip-older.o",
        "Object of HIP for a device link (`-fgpu-rdc`), by the older driver of clang 19 (`--no-offload-new-driver`)",
        Hip("--no-offload-new-driver -fgpu-rdc -c k.hip"),
    ),
    input(
        "hip-newer.o",
        "Object of HIP for a device link, by the newer driver of clang 19 (`--offload-new-driver`), the default of clang 23",
        Hip("--offload-new-driver -fgpu-rdc -c k.hip"),
    ),
    input(
        "hip-linked.o",
        "Object of HIP with linked code (without `-fgpu-rdc`), by clang 19",
        Hip("--no-offload-new-driver -c k.hip"),
    ),
    input(
        "hip-compressed.o",
        "The same with `--offload-compress`",
        Hip("--no-offload-new-driver --offload-compress -c k.hip"),
    ),
    input(
        "bundle.bc",
        "Bitcode of HIP for two architectures, by clang 19 (`--cuda-device-only --gpu-bundle-output -emit-llvm`)",
        Hip(
            "--no-offload-new-driver -fgpu-rdc --cuda-device-only --gpu-bundle-output -emit-llvm -c k.hip",
        ),
    ),
    input(
        "compressed.bc",
        "The same with `--offload-compress`",
        Hip(
            "--no-offload-new-driver -fgpu-rdc --cuda-device-only --gpu-bundle-output -emit-llvm --offload-compress -c k.hip",
        ),
    ),
    input(
        "code.hsaco",
        "Code object of HIP, extracted by clang-offload-bundler 19",
        Tool(
            "clang-offload-bundler",
            "-unbundle -type=o -input=linked.hipfb -output=code.hsaco -targets=hipv4-amdgcn-amd-amdhsa--gfx90a",
        ),
    ),
    input(
        "openmp.o",
        "Object of OpenMP, by clang 19 (`-fopenmp --offload-arch=gfx90a`)",
        Recipe::Clang("-fopenmp --offload-arch=gfx90a -nogpulib -c o.c"),
    ),
    input(
        "packed.bin",
        "Offload binary of clang-offload-packager 19, with bitcode for CUDA",
        Tool(
            "clang-offload-packager",
            "-o packed.bin --image=file=device.bc,arch=sm_80,triple=nvptx64-nvidia-cuda,kind=cuda",
        ),
    ),
    input("nvcc.o", "Object of nvcc 13.5", Nvcc("-c k.cu")),
    input(
        "nvcc-rdc.o",
        "Object of nvcc 13.5 for a device link (`-dc`)",
        Nvcc("-dc k.cu"),
    ),
    input(
        "nvcc.fatbin",
        "Fatbin of nvcc 13.5 (`-fatbin`)",
        Nvcc("-fatbin k.cu"),
    ),
    input(
        "nvcc.cubin",
        "Cubin of nvcc 13.5 (`-cubin`)",
        Nvcc("-cubin k.cu"),
    ),
    input("nvcc.ptx", "PTX of nvcc 13.5 (`-ptx`)", Nvcc("-ptx k.cu")),
    input(
        "gfx942.kpack",
        "Kpack archive, imitated: no public package has one",
        Bytes(b"KPAK\x01\0\0\0\x10\0\0\0\0\0\0\0\x81\xaagfx_arches\x91\xa6gfx942"),
    ),
];

/// Inputs of further releases, and in published wheels.
pub const HEAVY: &[Input] = &[
    input(
        "nvcc-12.fatbin",
        "Fatbin of nvcc 12.4 with code for link-time optimization",
        Nvcc12("-rdc=true -gencode arch=compute_80,code=[sm_80,lto_80] -fatbin k.cu"),
    ),
    Input {
        is_image: true,
        ..input(
            "_prng.so",
            "Module of jax-rocm7-plugin 0.12.0",
            Wheel("wheels-check/jax-rocm7", "jax_rocm7_plugin/_prng.so"),
        )
    },
    Input {
        is_image: true,
        ..input(
            "libbitsandbytes_rocm64.so",
            "Library of bitsandbytes 0.50.2 for ROCm 6.4",
            Wheel(
                "wheels-repair/bitsandbytes",
                "bitsandbytes/libbitsandbytes_rocm64.so",
            ),
        )
    },
];

/// Directory with sources.
pub struct Maker {
    directory: PathBuf,
    tools: PathBuf,
}

impl Maker {
    pub fn new(directory: &Path) -> Result<Self> {
        let maker = Self {
            directory: directory.to_owned(),
            // Debian installs the tools of all LLVM packages there.
            tools: PathBuf::from("/usr/lib/llvm-19/bin"),
        };
        fs::copy(
            repository().join("tests/startup/device.hip"),
            directory.join("k.hip"),
        )?;
        for (name, text) in [
            (
                "o.c",
                "int f(int *p) {\n#pragma omp target map(tofrom : p[0])\n    *p = 1;\n    return 0;\n}\n",
            ),
            ("k.cu", "__global__ void k(int *p) { *p = 1; }"),
            ("d.c", "int device(int x) { return x; }"),
        ] {
            fs::write(directory.join(name), text)?;
        }
        Ok(maker)
    }

    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.tools.join(name));
        command.current_dir(&self.directory);
        command
    }

    fn run(&self, mut command: Command, words: &str, output: &str) -> Result<()> {
        let words = words.split(' ').filter(|word| !word.is_empty());
        succeed(
            command
                .current_dir(&self.directory)
                .args(words)
                .args(["-o", output]),
        )?;
        Ok(())
    }

    fn hip(&self, words: &str, output: &str) -> Result<()> {
        const OPTIONS: &str =
            "-x hip -nogpuinc -nogpulib --offload-arch=gfx90a --offload-arch=gfx1100";
        self.run(
            Clang::System(19).command()?,
            &format!("{OPTIONS} {words}"),
            output,
        )
    }

    pub fn make(&self, input: &Input) -> Result<()> {
        let name = input.name;
        match input.recipe {
            Hip(words) => self.hip(words, name),
            Recipe::Clang(words) => self.run(Clang::System(19).command()?, words, name),
            Tool(tool, words) => {
                self.hip(
                    "--no-offload-new-driver --cuda-device-only --gpu-bundle-output -c k.hip",
                    "linked.hipfb",
                )?;
                self.run(
                    Clang::System(19).command()?,
                    "-emit-llvm -c d.c",
                    "device.bc",
                )?;
                succeed(self.tool(tool).args(words.split(' ')))?;
                Ok(())
            }
            Nvcc(words) => {
                let mut nvcc = TOOLKIT_13.nvcc()?;
                nvcc.arg("-arch=sm_80");
                self.run(nvcc, words, name)
            }
            Nvcc12(words) => self.run(TOOLKIT_12.nvcc()?, words, name),
            Wheel(wheel, member) => {
                let wheel = only_entry(&component(wheel)?)?;
                let mut unzip = Command::new("python3");
                unzip.current_dir(&self.directory).args([
                    "-c",
                    "import sys, zipfile; open(sys.argv[3], 'wb').write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))",
                ]);
                succeed(unzip.arg(wheel).args([member, name]))?;
                Ok(())
            }
            Bytes(bytes) => Ok(fs::write(self.directory.join(name), bytes)?),
        }
    }
}
