//! Objects of the generated sources: at most two compilers at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::object_store::Entry;
use super::{OBJECTS, Toolchain, tool_error};
use crate::error::Error;

/// Leaves libraries and adapters of the package out of the run time, whose unit includes them otherwise.
const LIBRARIES_APART: &str = "-DGPUSTUB_LIBRARIES_APART=1";

/// An object that a compiler writes.
struct Compilation<'a> {
    tools: &'a Toolchain,
    dir: &'a Path,
    defines: &'a [&'a str],
    source: &'a str,
    object: &'a str,
    optional_flags: Vec<OsString>,
    command: Command,
    child: Child,
}

impl Compilation<'_> {
    /// Waits for the object.
    fn finish(mut self) -> Result<(), Error> {
        let tools = self.tools;
        let mut output = (self.child.wait_with_output()).map_err(|e| tools.no_compiler(&e))?;
        // Options unknown to the oldest compilers are left out after a failure: that costs
        // nothing with other compilers, while querying first costs a compiler run each.
        if !output.status.success() && !self.optional_flags.is_empty() {
            self.command = tools.compile(self.dir, self.defines, &[], self.object, self.source);
            output = (self.command.output()).map_err(|e| tools.no_compiler(&e))?;
        }
        if !output.status.success() {
            tools.check_system(self.dir)?;
            let error = tool_error("the C compiler failed", &self.command, &output);
            return Err(tools.explain(error, &output));
        }
        tools.check_machine(&self.dir.join(self.object))
    }
}

/// An object that a compiler writes, unless the target directory has it.
struct SharedCompilation<'a> {
    compilation: Option<Compilation<'a>>,
    entry: Option<Entry>,
    object: PathBuf,
}

impl SharedCompilation<'_> {
    fn finish(self) -> Result<(), Error> {
        let Some(compilation) = self.compilation else {
            return Ok(());
        };
        compilation.finish()?;
        if let Some(entry) = self.entry {
            entry.keep(&self.object);
        }
        Ok(())
    }
}

impl Toolchain {
    /// Compiles all sources in `dir`: the adapters at the same time as the run time or the others.
    pub(super) fn objects(&self, dir: &Path, defines: &[&str]) -> Result<(), Error> {
        let [stubs, run_time, libraries, adapters] = OBJECTS;
        let run_time_defines = [defines, &[LIBRARIES_APART]].concat();
        let adapters = self.start_shared(dir, defines, "adapters.c", adapters)?;
        let run_time = self.start_shared(dir, &run_time_defines, "runtime.c", run_time);
        let others = || {
            self.stubs(dir, defines, stubs)?;
            self.object(dir, defines, "libraries.c", libraries)
        };
        let are_two_running = matches!(&run_time, Ok(shared) if shared.compilation.is_some());
        let (first, second) = if are_two_running {
            (adapters.finish(), others())
        } else {
            (others(), adapters.finish())
        };
        let third = run_time.and_then(SharedCompilation::finish);
        first.and(second).and(third)
    }

    /// Compiles one source in `dir`.
    pub fn object(
        &self,
        dir: &Path,
        defines: &[&str],
        source: &str,
        object: &str,
    ) -> Result<(), Error> {
        self.start(dir, defines, source, object)?.finish()
    }

    fn start_shared<'a>(
        &'a self,
        dir: &'a Path,
        defines: &'a [&'a str],
        source: &'a str,
        object: &'a str,
    ) -> Result<SharedCompilation<'a>, Error> {
        let mut entry = self.entry(dir, defines, source);
        let path = dir.join(object);
        let is_fetched = entry.as_mut().is_some_and(|entry| entry.fetch(&path));
        let compilation = if is_fetched {
            None
        } else {
            Some(self.start(dir, defines, source, object)?)
        };
        Ok(SharedCompilation {
            compilation,
            entry,
            object: path,
        })
    }

    fn start<'a>(
        &'a self,
        dir: &'a Path,
        defines: &'a [&'a str],
        source: &'a str,
        object: &'a str,
    ) -> Result<Compilation<'a>, Error> {
        let optional_flags = self.optional_flags(dir);
        let mut command = self.compile(dir, defines, &optional_flags, object, source);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn();
        Ok(Compilation {
            tools: self,
            dir,
            defines,
            source,
            object,
            optional_flags,
            command,
            child: child.map_err(|e| self.no_compiler(&e))?,
        })
    }

    /// The command that compiles a source in `dir`.
    fn compile(
        &self,
        dir: &Path,
        defines: &[&str],
        optional_flags: &[OsString],
        object: &str,
        source: &str,
    ) -> Command {
        let is_assembly = source.ends_with(".S") || source.ends_with(".s");
        let mut command = if is_assembly {
            self.compiler.assembler_command(dir)
        } else {
            self.compiler.command(dir)
        };
        self.add_flags(&mut command, optional_flags, defines);
        command.args(self.family.output_flags(object));
        command.args(["-c", source]);
        command
    }

    /// Adds the flags for all sources.
    pub(super) fn add_flags(
        &self,
        command: &mut Command,
        optional_flags: &[OsString],
        defines: &[&str],
    ) {
        command
            .args(self.required_flags())
            .args(optional_flags)
            .args(defines);
    }
}
