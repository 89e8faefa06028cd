//! Links the images of a plan as its host links say.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_core::device_link::{LinkItem, LinkPlan, LinkRole, NodeForm, NodeId, NodePlan};
use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run, succeed};

use crate::compiler::Compiler;

/// File of a node's image, or of its final.
pub fn file(plan: &LinkPlan<'_>, id: NodeId, is_final: bool) -> String {
    let node = plan.node(id);
    match node.form {
        NodeForm::Bin => node.name.clone(),
        _ if is_final => format!("lib{}_final.so", node.name),
        _ => format!("lib{}.so", node.name),
    }
}

/// The images of one graph, in a directory.
pub struct Images<'a> {
    pub compiler: &'a Compiler,
    pub directory: &'a Path,
    pub plan: &'a LinkPlan<'a>,
}

impl Images<'_> {
    fn name(&self, id: NodeId) -> &str {
        &self.plan.node(id).name
    }

    fn file(&self, id: NodeId, is_final: bool) -> String {
        file(self.plan, id, is_final)
    }

    /// Removes the image of a program.
    pub fn remove(&self, id: NodeId) {
        let _ = fs::remove_file(self.directory.join(self.file(id, false)));
    }

    /// Links all images of a node that do not exist yet. An error is the linker's.
    pub fn link(&self, planned: &NodePlan) -> Result<()> {
        let id = planned.node;
        match planned.role {
            LinkRole::Archive => Ok(()),
            LinkRole::Split => {
                self.image(planned, &planned.line, &self.file(id, false), &[])?;
                self.image(planned, &planned.final_line, &self.file(id, true), &[])
            }
            _ => self.program(planned),
        }
    }

    /// Links a program or cdylib, whose code calls all functions that it reaches.
    fn program(&self, planned: &NodePlan) -> Result<()> {
        let node = self.plan.node(planned.node);
        let reached = self.reached(planned.node);
        let called: Vec<&str> = (self.plan.nodes().iter())
            .filter(|node| node.form != NodeForm::Bin && reached.contains(&node.name))
            .map(|node| &*node.name)
            .collect();
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
        let (mut reached, mut pending) = (Vec::new(), vec![self.name(from).to_owned()]);
        while let Some(name) = pending.pop() {
            let Some(node) = self.plan.find(&name).map(|id| self.plan.node(id)) else {
                continue;
            };
            pending.extend(node.links.iter().map(|link| link.to.clone()));
            let is_rdc = node.kind == gpustub_core::device_link::NodeKind::Rdc;
            if is_rdc && !reached.contains(&name) {
                reached.push(name);
            }
        }
        reached
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
        let mut cc = Command::new("cc");
        cc.current_dir(self.directory)
            .args(words)
            .arg("-Wl,-rpath,$ORIGIN");
        if file.ends_with(".so") {
            cc.args(["-shared", "-fPIC", &format!("-Wl,-soname,{file}")]);
        }
        // Nodes whose objects are in the image.
        let mut nodes = Vec::new();
        for item in line {
            nodes.extend(match *item {
                LinkItem::Objects => Some(self.name(planned.node).to_owned()),
                LinkItem::Archive(id) | LinkItem::WholeArchive(id) => {
                    Some(self.name(id).to_owned())
                }
                _ => None,
            });
            match *item {
                LinkItem::Objects => cc.arg(self.compiler.object(self.name(planned.node))),
                LinkItem::LinkObject => {
                    let inputs = (planned.inputs.iter())
                        .map(|&id| self.name(id).to_owned())
                        .collect();
                    cc.args(self.compiler.device_link(inputs)?)
                }
                LinkItem::Final(id) => cc.args([
                    "-Wl,--push-state,--no-as-needed",
                    &self.file(id, true),
                    "-Wl,--pop-state",
                ]),
                LinkItem::Archive(id) => cc.arg(self.compiler.archive(self.name(id))),
                LinkItem::WholeArchive(id) => {
                    cc.arg("-Wl,--whole-archive");
                    cc.arg(self.compiler.archive(self.name(id)));
                    cc.arg("-Wl,--no-whole-archive")
                }
                LinkItem::Middle(id) => cc.arg(self.file(id, false)),
                LinkItem::Cudart(_) => &mut cc,
            };
        }
        if !line.contains(&LinkItem::LinkObject) && !nodes.is_empty() {
            cc.args(self.compiler.middle(nodes)?);
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
            for open in &node.opens {
                host.arg(self.directory.join(format!("lib{}.so", open.to)));
            }
            host
        };
        if let Some(directory) = self.compiler.runtime.parent() {
            command.env("LD_LIBRARY_PATH", directory);
        }
        command.envs(is_global.then_some(("GLOBAL", "1")));
        run(&mut command)
    }
}
