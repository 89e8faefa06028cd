//! Objects and device links of the real compilers: nvcc, or clang for HIP.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::gpu_arch::Vendor;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::symbols;
use gpustub_tests::nvcc::{TOOLKIT_13, hip_recorder, recorder};
use gpustub_tests::opener::host;
use gpustub_tests::{Result, hip, repository};

/// Objects and device links, each made once.
pub struct Compiler {
    vendor: Vendor,
    directory: PathBuf,
    /// Recording runtime.
    pub runtime: PathBuf,
    pub host: PathBuf,
    links: RefCell<BTreeMap<Vec<String>, Vec<PathBuf>>>,
    middles: RefCell<BTreeMap<Vec<String>, PathBuf>>,
}

impl Compiler {
    /// Compiles an object for each name: a kernel, and a function `<name>_run` that launches it.
    pub fn new(directory: &Path, names: &[&str], vendor: Vendor) -> Result<Self> {
        let (include, api, extension, runtime) = match vendor {
            Vendor::Nvidia => ("", "cuda", "cu", recorder(directory, 13)?),
            Vendor::Amd => {
                hip::install(&directory.join("rocm"))?;
                let include = "#include <hip/hip_runtime.h>\n";
                (include, "hip", "hip", hip_recorder(directory)?)
            }
        };
        let compiler = Self {
            vendor,
            directory: directory.to_owned(),
            runtime,
            host: host(directory)?,
            links: RefCell::default(),
            middles: RefCell::default(),
        };
        for name in names {
            let source = directory.join(name).with_extension(extension);
            let text = format!(
                "{include}__global__ void {name}_kernel(int *p) {{ *p = 1; }}\n\
                 extern \"C\" int {name}_run(void) {{\n    {name}_kernel<<<1, 1>>>(nullptr);\n    \
                 return {api}GetLastError();\n}}\n"
            );
            fs::write(&source, text)?;
            let mut command = match vendor {
                Vendor::Nvidia => {
                    let mut nvcc = TOOLKIT_13.nvcc()?;
                    nvcc.args(["-dc", "-arch=sm_80", "-Xcompiler", "-fPIC"]);
                    nvcc
                }
                Vendor::Amd => {
                    let mut clang = compiler.clang();
                    clang.args(["-x", "hip", "-fPIC", "-c"]);
                    clang
                }
            };
            command.arg(&source).arg("-o");
            succeed(command.arg(compiler.object(name)))?;
            let mut ar = Command::new("ar");
            ar.arg("crsD").arg(compiler.archive(name));
            succeed(ar.arg(compiler.object(name)))?;
        }
        Ok(compiler)
    }

    fn clang(&self) -> Command {
        hip::clang(&self.directory.join("rocm"))
    }

    pub fn object(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("o")
    }

    pub fn archive(&self, name: &str) -> PathBuf {
        self.directory.join(format!("lib{name}.a"))
    }

    /// Objects of the device link over these nodes.
    pub fn device_link(&self, inputs: Vec<String>) -> Result<Vec<PathBuf>> {
        if let Some(link) = self.links.borrow().get(&inputs) {
            return Ok(link.clone());
        }
        let path = self.directory.join(format!("link-{}", inputs.join("-")));
        fs::create_dir(&path)?;
        let objects = match self.vendor {
            Vendor::Nvidia => {
                let object = path.join("link.o");
                let mut nvcc = TOOLKIT_13.nvcc()?;
                nvcc.args(["-dlink", "-arch=sm_80", "-Xcompiler", "-fPIC"]);
                nvcc.args(inputs.iter().map(|name| self.archive(name)));
                succeed(nvcc.arg("-o").arg(&object))?;
                vec![object]
            }
            Vendor::Amd => self.hip_link(&inputs, &path)?,
        };
        self.links.borrow_mut().insert(inputs, objects.clone());
        Ok(objects)
    }

    /// The code of a device link with symbols for each object, and its functions, which are those of the product.
    fn hip_link(&self, inputs: &[String], path: &Path) -> Result<Vec<PathBuf>> {
        let code = path.join("code.hipfb");
        let mut clang = self.clang();
        clang.args(["--hip-link", "--cuda-device-only", "-O1", "-o"]);
        clang.arg(&code);
        succeed(clang.args(inputs.iter().map(|name| self.object(name))))?;
        let (mut labels, mut handles) = (vec!["gpustub_hip_code".to_owned()], Vec::new());
        handles.push("gpustub_hip_handle".to_owned());
        for name in inputs {
            let id = self.id(name)?;
            labels.push(format!("__hip_fatbin{id}"));
            handles.push(format!("__hip_gpubin_handle{id}"));
        }
        let define = |names: &[String]| -> String {
            let names = names.iter();
            names
                .map(|name| format!(".globl {name}\n.hidden {name}\n{name}:\n"))
                .collect()
        };
        let text = format!(
            ".section .hip_fatbin, \"a\"\n.p2align 12\n{}.incbin \"{}\"\n.bss\n.p2align 3\n{}.zero 8\n\
             .section .note.GNU-stack, \"\"\n",
            define(&labels),
            code.display(),
            define(&handles)
        );
        fs::write(path.join("code.S"), text)?;
        let code = self.host_object(&path.join("code.S"), path)?;
        self.write_list(inputs, false, path)?;
        Ok(vec![
            code,
            self.host_object(&product_source("register.c"), path)?,
        ])
    }

    /// Object for a library with the objects of these nodes and without their device link.
    pub fn middle(&self, nodes: Vec<String>) -> Result<Option<PathBuf>> {
        if self.vendor == Vendor::Nvidia {
            return Ok(None);
        }
        if let Some(object) = self.middles.borrow().get(&nodes) {
            return Ok(Some(object.clone()));
        }
        let path = self.directory.join(format!("middle-{}", nodes.join("-")));
        fs::create_dir(&path)?;
        self.write_list(&nodes, true, &path)?;
        let object = self.host_object(&product_source("middle.c"), &path)?;
        self.middles.borrow_mut().insert(nodes, object.clone());
        Ok(Some(object))
    }

    fn write_list(&self, nodes: &[String], has_symbols: bool, path: &Path) -> Result<()> {
        let mut list = String::new();
        for name in nodes {
            for function in self.registration(name)? {
                list += &format!("FUNCTION({function})\n");
            }
            if has_symbols {
                let id = self.id(name)?;
                list += &format!("SYMBOL(__hip_fatbin{id})\nSYMBOL(__hip_gpubin_handle{id})\n");
            }
        }
        Ok(fs::write(path.join("gpustub_hip.inc"), list)?)
    }

    /// Compiles a source for the host.
    fn host_object(&self, source: &Path, path: &Path) -> Result<PathBuf> {
        let name = source.file_name().unwrap_or_default();
        let object = path.join(name).with_extension("o");
        let mut cc = Command::new("cc");
        cc.args(["-c", "-O2", "-Wall", "-fPIC", "-fvisibility=hidden"]);
        cc.arg("-iquote").arg(path).arg(source).arg("-o");
        succeed(cc.arg(&object))?;
        Ok(object)
    }

    /// Id of an object of HIP, with an underscore in front.
    fn id(&self, name: &str) -> Result<String> {
        let rows = symbols("--syms", &self.object(name))?;
        let mut ids = rows
            .iter()
            .filter_map(|row| row.name.strip_prefix("__hip_cuid"));
        Ok(ids.next().ok_or("an object without an id")?.to_owned())
    }

    /// Functions of a device link that an object calls.
    pub fn registration(&self, name: &str) -> Result<Vec<String>> {
        if self.vendor == Vendor::Amd {
            return Ok(vec![format!("gpustub_hip_code{}", self.id(name)?)]);
        }
        Ok(symbols("--syms", &self.object(name))?
            .into_iter()
            .map(|row| row.name)
            .filter(|name| name.starts_with("__cudaRegisterLinkedBinary"))
            .collect())
    }
}

/// A source of the engine.
fn product_source(name: &str) -> PathBuf {
    repository()
        .join("crates/engine/src/device_link/hip")
        .join(name)
}
