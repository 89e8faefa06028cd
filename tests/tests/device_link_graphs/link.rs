//! Links the images of a plan as its host links say, with objects of the real nvcc.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::device_link::{LinkItem, LinkPlan, LinkRole, NodeForm, NodeId, NodePlan};
use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::elf::symbols;
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};

/// Objects and device links, each made once.
pub struct Compiler {
    directory: PathBuf,
    /// Recording CUDA runtime.
    runtime: PathBuf,
    host: PathBuf,
    links: RefCell<BTreeMap<Vec<String>, PathBuf>>,
}

impl Compiler {
    /// Compiles an object for each name: a kernel, and a function `<name>_run` that launches it.
    pub fn new(directory: &Path, names: &[&str]) -> Result<Self> {
        let compiler = Self {
            directory: directory.to_owned(),
            runtime: recorder(directory, 13)?,
            host: host(directory)?,
            links: RefCell::default(),
        };
        for name in names {
            let source = directory.join(name).with_extension("cu");
            let text = format!(
                "__global__ void {name}_kernel(int *p) {{ *p = 1; }}\n\
                 extern \"C\" int {name}_run(void) {{\n    {name}_kernel<<<1, 1>>>(nullptr);\n    \
                 return cudaGetLastError();\n}}\n"
            );
            fs::write(&source, text)?;
            let mut nvcc = TOOLKIT_13.nvcc()?;
            nvcc.args(["-dc", "-arch=sm_80", "-Xcompiler", "-fPIC", "-o"]);
            succeed(nvcc.arg(compiler.object(name)).arg(&source))?;
            let mut ar = Command::new("ar");
            succeed(
                ar.arg("crsD")
                    .arg(compiler.archive(name))
                    .arg(compiler.object(name)),
            )?;
        }
        Ok(compiler)
    }

    fn object(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("o")
    }

    fn archive(&self, name: &str) -> PathBuf {
        self.directory.join(format!("lib{name}.a"))
    }

    /// The device link over these nodes.
    fn device_link(&self, inputs: Vec<String>) -> Result<PathBuf> {
        if let Some(known) = self.links.borrow().get(&inputs) {
            return Ok(known.clone());
        }
        let path = self.directory.join(format!("link-{}.o", inputs.join("-")));
        let mut nvcc = TOOLKIT_13.nvcc()?;
        nvcc.args(["-dlink", "-arch=sm_80", "-Xcompiler", "-fPIC"]);
        nvcc.args(inputs.iter().map(|name| self.archive(name)));
        succeed(nvcc.arg("-o").arg(&path))?;
        self.links.borrow_mut().insert(inputs, path.clone());
        Ok(path)
    }

    /// Functions of a device link that an object calls.
    fn registration(&self, name: &str) -> Result<Vec<String>> {
        let all = symbols("--syms", &self.object(name))?.into_iter();
        let names = all.map(|row| row.name);
        Ok(names
            .filter(|name| name.starts_with("__cudaRegisterLinkedBinary"))
            .collect())
    }
}

/// File of a node's image, or of its final.
pub fn file(plan: &LinkPlan<'_>, at: NodeId, is_final: bool) -> String {
    let node = plan.node(at);
    match node.form {
        NodeForm::Bin => node.name.clone(),
        _ if is_final => format!("lib{}_final.so", node.name),
        _ => format!("lib{}.so", node.name),
    }
}

/// A program that opens the libraries of its arguments, and calls `run` of each. With the environment
/// variable `GLOBAL` they see each other's functions.
pub fn host(directory: &Path) -> Result<PathBuf> {
    let code = "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
                int main(int n, char **words) {\n\
                \x20   int flag = getenv(\"GLOBAL\") ? RTLD_GLOBAL : RTLD_LOCAL;\n\
                \x20   for (int i = 1; i < n; i++) {\n\
                \x20       void *library = dlopen(words[i], RTLD_NOW | flag);\n\
                \x20       void (*run)(void) = library ? (void (*)(void))dlsym(library, \"run\") : 0;\n\
                \x20       if (!run) return puts(dlerror()), 1;\n\
                \x20       run();\n    }\n    return 0;\n}\n";
    fs::write(directory.join("host.c"), code)?;
    let mut cc = Command::new("cc");
    succeed(
        cc.current_dir(directory)
            .args(["host.c", "-ldl", "-o", "host"]),
    )?;
    Ok(directory.join("host"))
}

/// The images of one graph, in a directory.
pub struct Images<'a> {
    pub compiler: &'a Compiler,
    pub directory: &'a Path,
    pub plan: &'a LinkPlan<'a>,
}

impl Images<'_> {
    fn name(&self, at: NodeId) -> &str {
        &self.plan.node(at).name
    }

    fn file(&self, at: NodeId, is_final: bool) -> String {
        file(self.plan, at, is_final)
    }

    /// Removes the image of a program.
    pub fn remove(&self, at: NodeId) {
        let _ = fs::remove_file(self.directory.join(self.file(at, false)));
    }

    /// Links all images of a node that do not exist yet. An error is the linker's.
    pub fn link(&self, planned: &NodePlan) -> Result<()> {
        let at = planned.node;
        match planned.role {
            LinkRole::Archive => Ok(()),
            LinkRole::Split => {
                self.image(planned, &planned.line, &self.file(at, false), &[])?;
                self.image(planned, &planned.final_line, &self.file(at, true), &[])
            }
            _ => self.program(planned),
        }
    }

    /// Links a program or cdylib, whose code calls all functions that it reaches.
    fn program(&self, planned: &NodePlan) -> Result<()> {
        let node = self.plan.node(planned.node);
        let below = self
            .plan
            .nodes()
            .iter()
            .filter(|other| other.form != NodeForm::Bin);
        let mut called: Vec<&str> = below.map(|other| &*other.name).collect();
        let reached = self.reached(planned.node);
        called.retain(|name| reached.contains(&(*name).to_owned()));
        let mut code = String::from("#include <stdio.h>\n");
        for name in &called {
            code += &format!("extern int {name}_run(void);\n");
        }
        code += "void run(void) {\n";
        for name in &called {
            code += &format!("    printf(\"{name} %d\\n\", {name}_run());\n");
        }
        code += "}\n";
        let mut words = Vec::new();
        if node.form == NodeForm::Bin {
            code += "int main(void) { run(); return 0; }\n";
        } else {
            // As rustc does, with the functions that a finalizer crate adds.
            let mut script = String::from("{ global: run;\n");
            for &export in &planned.exports {
                for function in self.compiler.registration(self.name(export))? {
                    script += &format!("{function};\n");
                }
            }
            let file = self.directory.join(format!("{}.map", node.name));
            fs::write(&file, script + "local: *; };\n")?;
            words.push(format!("-Wl,--version-script={}", file.display()));
        }
        let source = self.directory.join(format!("{}.c", node.name));
        fs::write(&source, code)?;
        words.push(source.display().to_string());
        self.image(
            planned,
            &planned.line,
            &self.file(planned.node, false),
            &words,
        )
    }

    /// Names of the libraries with code that a program reaches, its own first.
    fn reached(&self, from: NodeId) -> Vec<String> {
        let (mut all, mut open) = (Vec::new(), vec![self.name(from).to_owned()]);
        while let Some(name) = open.pop() {
            let Some(node) = self.plan.find(&name).map(|at| self.plan.node(at)) else {
                continue;
            };
            open.extend(node.links.iter().map(|link| link.to.clone()));
            let is_rdc = node.kind == gpustub_core::device_link::NodeKind::Rdc;
            if is_rdc && !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    fn image(
        &self,
        planned: &NodePlan,
        line: &[LinkItem],
        file: &str,
        words: &[String],
    ) -> Result<()> {
        let output = self.directory.join(file);
        if output.exists() {
            return Ok(());
        }
        let names = |nodes: &[NodeId]| nodes.iter().map(|&at| self.name(at).to_owned()).collect();
        let mut cc = Command::new("cc");
        cc.current_dir(self.directory)
            .args(words)
            .arg("-Wl,-rpath,$ORIGIN");
        if file.ends_with(".so") {
            cc.args(["-shared", "-fPIC", &format!("-Wl,-soname,{file}")]);
        }
        for item in line {
            match *item {
                LinkItem::Objects => cc.arg(self.compiler.object(self.name(planned.node))),
                LinkItem::LinkObject => cc.arg(self.compiler.device_link(names(&planned.inputs))?),
                LinkItem::Final(at) => cc.args([
                    "-Wl,--push-state,--no-as-needed",
                    &self.file(at, true),
                    "-Wl,--pop-state",
                ]),
                LinkItem::Archive(at) => cc.arg(self.compiler.archive(self.name(at))),
                LinkItem::WholeArchive(at) => {
                    cc.arg("-Wl,--whole-archive");
                    cc.arg(self.compiler.archive(self.name(at)));
                    cc.arg("-Wl,--no-whole-archive")
                }
                LinkItem::Middle(at) => cc.arg(self.file(at, false)),
                LinkItem::Cudart(_) => &mut cc,
            };
        }
        cc.arg(&self.compiler.runtime);
        succeed(cc.args(["-lstdc++", "-o"]).arg(&output))?;
        Ok(())
    }

    /// Runs the program, or a program that opens these cdylibs.
    pub fn run(&self, process: NodeId, is_global: bool) -> Result<Ran> {
        let node = self.plan.node(process);
        let mut command = if node.opens.is_empty() {
            Command::new(self.directory.join(&node.name))
        } else {
            let mut host = Command::new(&self.compiler.host);
            let opened = node.opens.iter();
            host.args(opened.map(|open| self.directory.join(format!("lib{}.so", open.to))));
            host
        };
        if let Some(directory) = self.compiler.runtime.parent() {
            command.env("LD_LIBRARY_PATH", directory);
        }
        command.envs(is_global.then_some(("GLOBAL", "1")));
        run(&mut command)
    }
}
