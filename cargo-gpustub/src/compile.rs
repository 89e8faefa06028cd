//! Compilation of generated sources, outside of cargo.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gpustub_core::plan::{LibraryPlan, Plan};
use gpustub_core::sources::{SourceSet, functions_of};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::assembler::assemble;
use gpustub_engine::toolchain::{Index, Toolchain, help};
use gpustub_engine::write_sources;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::environment::variable;
use gpustub_workspace::error::{Error, Result};

use crate::scratch::scratch;

/// Converts an error of the engine, whose text has the label `error[CODE]: ` and its help already:
/// commands print both in their own way.
pub fn engine_error(error: gpustub_engine::Error) -> Error {
    let mut text = error.to_string();
    if let Some(code) = error.code()
        && let Some(unlabelled) = text.strip_prefix(&format!("error[{}]: ", code.id))
    {
        text = unlabelled.to_owned();
    }
    match text.rsplit_once("\n  help: ") {
        Some((message, help)) if !help.contains('\n') => Error::new(message).help(help),
        _ => Error::new(text),
    }
}

/// Compiles the sources in a temporary directory and returns the bytes of the archive.
pub fn archive(sources: &SourceSet, target: &Target, host: &str) -> Result<Vec<u8>> {
    let scratch = scratch()?;
    let directory = scratch.path();
    write_sources(directory, sources).map_err(engine_error)?;
    let tools = Toolchain::find(target, host, directory, None, None).map_err(engine_error)?;
    let file = directory.join("libgpustub_stubs.a");
    tools
        .static_library(directory, &file, Index::Write)
        .map_err(engine_error)?;
    read(&file)
}

/// Assembles the stubs for Windows in a temporary directory and returns the bytes of the object: by the C compiler, or
/// else by rustc, which needs no other program.
pub fn stubs(sources: &SourceSet, target: &Target, host: &str) -> Result<Vec<u8>> {
    let scratch = scratch()?;
    let directory = scratch.path();
    write_sources(directory, sources).map_err(engine_error)?;
    let object = "gpustub_stubs.o";
    let tools = Toolchain::find(target, host, directory, None, None);
    if tools
        .and_then(|tools| tools.stubs(directory, &[], object))
        .is_err()
    {
        let rustc = variable("RUSTC").unwrap_or_else(|| "rustc".into());
        assemble(&rustc, target, directory, "stubs.rs", object).map_err(|error| {
            let triple = &target.triple;
            engine_error(error).help(format!(
                "`rustup target add {triple}`, or set CC_{} to clang-cl",
                triple.replace('-', "_")
            ))
        })?;
    }
    read(&directory.join(object))
}

/// Contents of the files of a library of stubs.
pub struct StubFiles {
    /// The library to ship.
    pub library: Vec<u8>,
    /// The library for linkers, with the same soname.
    pub link_library: Vec<u8>,
    /// The object for each image that links it.
    pub client: Vec<u8>,
}

/// Compiles the sources in a temporary directory and links them into a shared library of this file name.
pub fn shared(sources: &SourceSet, target: &Target, host: &str, file: &str) -> Result<StubFiles> {
    let scratch = scratch()?;
    let directory = scratch.path();
    write_sources(directory, sources).map_err(engine_error)?;
    let tools = Toolchain::find(target, host, directory, None, None).map_err(engine_error)?;
    let library = directory.join(file);
    let linked = tools
        .shared_library(directory, &library)
        .map_err(engine_error)?;
    Ok(StubFiles {
        library: read(&library)?,
        link_library: read(&linked.link_library)?,
        client: read(&linked.client)?,
    })
}

/// Compiles the sources in a temporary directory and links them into a shared library with the file name and
/// the version script of a real one, and returns its bytes.
pub fn soname(
    sources: &SourceSet,
    target: &Target,
    host: &str,
    file: &str,
    script: &str,
) -> Result<Vec<u8>> {
    let scratch = scratch()?;
    let directory = scratch.path();
    write_sources(directory, sources).map_err(engine_error)?;
    let tools = Toolchain::find(target, host, directory, None, None).map_err(engine_error)?;
    // In a directory of its own: the name could be that of a source.
    let library = directory.join("lib").join(file);
    fs::create_dir(directory.join("lib")).map_err(|e| Error::io("create", directory, &e))?;
    tools
        .soname_library(directory, &library, script)
        .map_err(engine_error)?;
    read(&library)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|e| Error::io("read", file, &e))
}

/// Compiles the stubs of each library into an archive, in a temporary directory, and returns its bytes. All
/// archives contain the same run time, so that the first one of a link serves all.
pub fn archives<'a>(
    plan: &'a Plan,
    sources: &SourceSet,
    target: &Target,
    host: &str,
) -> Result<Vec<(&'a LibraryPlan, Vec<u8>)>> {
    let scratch = scratch()?;
    let directory = scratch.path();
    write_sources(directory, sources).map_err(engine_error)?;
    let tools = Toolchain::find(target, host, directory, None, None).map_err(engine_error)?;
    let run_time = "gpustub_runtime.o";
    tools
        .object(directory, &[], "runtime.c", run_time)
        .map_err(engine_error)?;
    let mut archives = Vec::new();
    for library in plan.libraries.iter().filter(|library| library.stubbed) {
        let id = &library.library.id;
        let mut sources = sources.clone();
        let (path, functions) = functions_of(plan, id);
        sources.insert(path, functions);
        let library_directory = directory.join(id);
        write_sources(&library_directory, &sources).map_err(engine_error)?;
        let stubs = "gpustub_stubs.o";
        tools
            .stubs(&library_directory, &[], stubs)
            .map_err(engine_error)?;
        let file = directory.join(format!("{id}.a"));
        let objects = [Path::new(id).join(stubs), run_time.into()];
        tools
            .archive(directory, &objects, &file, Index::Write)
            .map_err(engine_error)?;
        archives.push((library, read(&file)?));
    }
    Ok(archives)
}

/// The C compiler for this machine, and the first line of its `--version`.
pub fn compiler(target: &Target, scratch: &Path) -> Result<(Command, String)> {
    let failed = |reason: String| {
        let message = format!("no C compiler for {}: {reason}", target.triple);
        Error::new(message).help(help::compiler(target, false))
    };
    let tool = cc::Build::new()
        .target(&target.triple)
        .host(&target.triple)
        .out_dir(scratch)
        .opt_level(0)
        .debug(false)
        .cargo_metadata(false)
        .cargo_warnings(false)
        .try_get_compiler()
        .map_err(|e| failed(e.to_string()))?;
    let path = slashes(tool.path());
    let output = Command::new(tool.path())
        .arg("--version")
        .output()
        .map_err(|e| failed(format!("cannot run `{path}`: {e}")))?;
    let version = String::from_utf8_lossy(&output.stdout);
    let first_line = version.lines().next().unwrap_or_default();
    Ok((tool.to_command(), format!("{path}: {first_line}")))
}

/// Links a C program with all stubs in an archive, also those that it does not call, and runs it.
pub fn run_with_stubs(
    main: &str,
    sources: &SourceSet,
    target: &Target,
    environment: &[(&str, &str)],
) -> Result<Output> {
    let scratch = scratch()?;
    let directory = scratch.path();
    let archive = archive(sources, target, &target.triple)?;
    for (name, bytes) in [("main.c", main.as_bytes()), ("stubs.a", &archive)] {
        fs::write(directory.join(name), bytes).map_err(|e| Error::io("write", directory, &e))?;
    }
    write_sources(directory, sources).map_err(engine_error)?;
    let (mut command, _) = compiler(target, directory)?;
    command
        .current_dir(directory)
        .args(["-o", "main", "main.c"]);
    match target.os.as_str() {
        "macos" => command.arg("-Wl,-force_load,stubs.a"),
        _ => command.args(["-Wl,--whole-archive", "stubs.a", "-Wl,--no-whole-archive"]),
    };
    if target.os == "linux" {
        command.arg("-ldl"); // a separate library up to glibc 2.33
    }
    let output = command
        .output()
        .map_err(|e| Error::new(format!("cannot run the C compiler: {e}")))?;
    if !output.status.success() {
        return Err(Error::new(format!(
            "the C compiler failed ({})\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    let program = directory.join("main");
    Command::new(&program)
        .envs(environment.iter().copied())
        .output()
        .map_err(|e| Error::io("run", &program, &e))
}
