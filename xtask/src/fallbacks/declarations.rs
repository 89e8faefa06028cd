//! Functions declared in C headers, from clang's syntax tree.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde::Deserialize;

/// Arguments of clang for Windows, with the headers of mingw-w64; those of CUPTI have `__pragma`.
pub const WINDOWS: &[&str] = &["--target=x86_64-w64-mingw32", "-fms-extensions"];

/// A declared function. Types are as C spells them.
#[derive(Debug)]
pub struct DeclaredFunction {
    pub returns: String,
    pub parameters: Vec<Parameter>,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Parameter {
    pub name: String,
    pub kind: String,
    /// Type without typedefs, as far as clang prints it.
    pub canonical: String,
}

/// The used part of clang's tree.
#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    ty: Option<Type>,
    #[serde(rename = "storageClass")]
    storage: Option<String>,
    #[serde(default)]
    inline: bool,
    /// Declaration that a type names.
    decl: Option<Box<Node>>,
    /// Value of a constant expression.
    value: Option<serde_json::Value>,
    #[serde(default)]
    inner: Vec<Node>,
}

#[derive(Deserialize)]
struct Type {
    #[serde(rename = "qualType")]
    spelled: String,
    #[serde(rename = "desugaredQualType")]
    canonical: Option<String>,
}

/// A source that includes the existing headers, which differ between versions.
pub fn source(include: &[String], macros: &[String]) -> String {
    let mut text = String::new();
    for name in macros {
        text += &format!("#define {name}\n");
    }
    text += "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n";
    for header in include {
        text += &format!("#if __has_include(<{header}>)\n#include <{header}>\n#endif\n");
    }
    text
}

/// Runs clang over a source, with more arguments.
pub fn clang(source: &str, directories: &[PathBuf], arguments: &[&str]) -> Result<Output, String> {
    let mut child = Command::new("clang")
        .args(["-x", "c", "-w", "-ferror-limit=0"])
        // Attributes of C23, as in rocsparse.h.
        .arg("-fdouble-square-bracket-attributes")
        .args(arguments)
        .args(
            directories
                .iter()
                .flat_map(|directory| ["-I".as_ref(), directory.as_os_str()]),
        )
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("`clang`: {e}"))?;
    let mut stdin = child.stdin.take().ok_or("`clang` takes no input")?;
    let source = source.to_owned();
    // clang writes while it reads.
    let writer = std::thread::spawn(move || stdin.write_all(source.as_bytes()));
    let output = child
        .wait_with_output()
        .map_err(|e| format!("`clang`: {e}"))?;
    // clang reports its own failure if it stops early.
    let _ = writer.join();
    Ok(output)
}

/// Clang's tree of a source.
fn tree(source: &str, directories: &[PathBuf], target: &[&str]) -> Result<Node, String> {
    let arguments = [&["-fsyntax-only", "-Xclang", "-ast-dump=json"], target].concat();
    let output = clang(source, directories, &arguments)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("clang's tree: {e}"))
}

/// The enumerators of an enumeration with their numbers, in the order of the header. `name`: its tag, or
/// of its typedef.
pub fn enumerators(
    source: &str,
    directories: &[PathBuf],
    name: &str,
) -> Result<Vec<(String, i32)>, String> {
    let tree = tree(source, directories, &[])?;
    let typedef = (tree.inner.iter())
        .rfind(|node| node.kind == "TypedefDecl" && node.name == name)
        .and_then(named_enumeration);
    let enumeration = (tree.inner.iter())
        .rfind(|node| {
            node.kind == "EnumDecl"
                && !node.inner.is_empty()
                && typedef.map_or(node.name == name, |id| node.id == id)
        })
        .ok_or_else(|| format!("no enumeration `{name}`"))?;
    let mut enumerators = Vec::new();
    let mut next = 0;
    for node in &enumeration.inner {
        if node.kind != "EnumConstantDecl" {
            continue;
        }
        let expression = node
            .inner
            .iter()
            .find_map(|node| node.value.as_ref()?.as_str());
        let number: i32 = match expression {
            Some(text) => code(text).map_err(|e| format!("{} = {text}: {e}", node.name))?,
            None => next,
        };
        enumerators.push((node.name.clone(), number));
        next = number.wrapping_add(1);
    }
    Ok(enumerators)
}

/// A status code as functions return it: 4294967295 (`0xFFFFFFFF` in rocm_smi.h) is -1.
#[expect(clippy::cast_possible_wrap, reason = "the same 32 bits")]
fn code(text: &str) -> Result<i32, std::num::ParseIntError> {
    text.parse::<u32>()
        .map(|bits| bits as i32)
        .or_else(|_| text.parse())
}

/// Id of the enumeration that a typedef names.
fn named_enumeration(node: &Node) -> Option<&str> {
    match &node.decl {
        Some(decl) if decl.kind == "EnumDecl" => Some(&decl.id),
        _ => node.inner.iter().find_map(named_enumeration),
    }
}

/// The functions that a source declares and that a library may export. `target`: arguments of clang.
pub fn read(
    source: &str,
    directories: &[PathBuf],
    target: &[&str],
) -> Result<BTreeMap<String, DeclaredFunction>, String> {
    let mut functions = BTreeMap::new();
    for node in tree(source, directories, target)?.inner {
        let is_static = node.storage.as_deref() == Some("static");
        if node.kind != "FunctionDecl" || is_static || node.inline {
            continue;
        }
        let name = node.name.clone();
        if let Some(function) = function(node) {
            functions.insert(name, function);
        }
    }
    Ok(functions)
}

fn function(node: Node) -> Option<DeclaredFunction> {
    let ty = node.ty?;
    // `tcuvidCreateDecoder` if a typedef declares the function.
    let spelled = if ty.spelled.contains('(') {
        ty.spelled
    } else {
        ty.canonical?
    };
    Some(DeclaredFunction {
        // `cudaError_t (void **, size_t)`; none of these functions returns a function pointer.
        returns: spelled.split('(').next()?.trim_end().to_owned(),
        parameters: (node.inner.into_iter())
            .filter(|node| node.kind == "ParmVarDecl")
            .filter_map(parameter)
            .collect(),
    })
}

fn parameter(node: Node) -> Option<Parameter> {
    let ty = node.ty?;
    Some(Parameter {
        name: node.name,
        canonical: ty.canonical.unwrap_or_else(|| ty.spelled.clone()),
        kind: ty.spelled,
    })
}
