//! Objects of the generated sources: at most two compilers at once.

use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{OBJECTS, Toolchain, tool_error};
use crate::error::Error;

/// Leaves libraries and adapters of the package out of the run time, whose unit includes them otherwise.
const LIBRARIES_APART: &str = "-DGPUSTUB_LIBRARIES_APART=1";

impl Toolchain {
    /// Compiles all sources in `dir`: the run time and its adapters only if the target directory does not have them.
    pub(super) fn objects(&self, dir: &Path, defines: &[&str]) -> Result<(), Error> {
        let [stubs, run_time, libraries, adapters] = OBJECTS;
        let run_time_defines = [defines, &[LIBRARIES_APART]].concat();
        // The longest first.
        two_at_once(&[
            &|| self.shared_object(dir, &run_time_defines, "runtime.c", run_time),
            &|| self.stubs(dir, defines, stubs),
            &|| self.shared_object(dir, defines, "adapters.c", adapters),
            &|| self.object(dir, defines, "libraries.c", libraries),
        ])
    }

    /// Compiles one source in `dir`, unless the target directory has its object.
    fn shared_object(
        &self,
        dir: &Path,
        defines: &[&str],
        source: &str,
        object: &str,
    ) -> Result<(), Error> {
        let path = dir.join(object);
        let mut entry = self.entry(dir, defines, source);
        if entry.as_mut().is_some_and(|entry| entry.fetch(&path)) {
            return Ok(());
        }
        let has_optional_flags = self.compile(dir, defines, source, object)?;
        // The key of the entry has these flags.
        if let Some(entry) = entry.filter(|_| has_optional_flags) {
            entry.keep(&path);
        }
        Ok(())
    }

    /// Compiles one source in `dir`.
    pub fn object(
        &self,
        dir: &Path,
        defines: &[&str],
        source: &str,
        object: &str,
    ) -> Result<(), Error> {
        self.compile(dir, defines, source, object).map(|_| ())
    }

    /// Compiles one source in `dir`. Returns whether it was compiled with the optional flags.
    fn compile(
        &self,
        dir: &Path,
        defines: &[&str],
        source: &str,
        object: &str,
    ) -> Result<bool, Error> {
        let optional_flags = self.optional_flags(dir);
        let run = |optional_flags| {
            let mut command = self.compile_command(dir, defines, optional_flags, object, source);
            let output = command.output().map_err(|e| self.no_compiler(&e));
            output.map(|output| (command, output))
        };
        let (mut command, mut output) = run(&optional_flags)?;
        // Options unknown to the oldest compilers are left out after a failure: that costs
        // nothing with other compilers, while querying first costs a compiler run each.
        let has_optional_flags = output.status.success();
        if !has_optional_flags && !optional_flags.is_empty() {
            (command, output) = run(&[])?;
        }
        if !output.status.success() {
            self.check_system(dir)?;
            let error = tool_error("the C compiler failed", &command, &output);
            return Err(self.explain(error, &output));
        }
        self.check_machine(&dir.join(object))?;
        Ok(has_optional_flags)
    }

    /// The command that compiles a source in `dir`.
    fn compile_command(
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

/// Runs all steps, and returns the error of the first one that failed.
fn two_at_once(steps: &[&(dyn Fn() -> Result<(), Error> + Sync)]) -> Result<(), Error> {
    let started = AtomicUsize::new(0);
    let work = || {
        let mut errors = Vec::new();
        loop {
            let index = started.fetch_add(1, Ordering::Relaxed);
            match steps.get(index) {
                Some(step) => errors.extend(step().err().map(|error| (index, error))),
                None => return errors,
            }
        }
    };
    let errors = thread::scope(|scope| {
        // Without a second thread the first one runs all steps.
        let second = thread::Builder::new().spawn_scoped(scope, work).ok();
        let mut errors = work();
        let others =
            second.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        errors.extend(others.into_iter().flatten());
        errors
    });
    let first = errors.into_iter().min_by_key(|(index, _)| *index);
    first.map_or(Ok(()), |(_, error)| Err(error))
}
