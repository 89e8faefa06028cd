//! `cargo gpustub repair`: finished wheels, libraries, programs and directories that load GPU libraries
//! lazily.
//!
//! The inputs are read ([`input`]) and planned (gpustub-repair, `job`); only then files are written ([`output`]), by
//! the same values that `--dry-run` prints.

mod directory;
mod files;
mod input;
mod job;
mod output;
mod show;
mod stub;

use gpustub_core::diag::has_errors;
use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;

use crate::cli;

/// Runs the command. Returns whether everything was repaired.
pub fn run(options: &cli::Repair, shell: &mut Shell) -> Result<bool> {
    let mut jobs = Vec::new();
    let mut found = Vec::new();
    let mut sources = Sources::new();
    {
        let status = shell.status_line("Reading");
        for input in input::read(options, &status, &mut found)? {
            let job = job::plan(input, options, &status, &mut found, &mut sources)?;
            jobs.extend(job);
        }
    }
    shell.diagnostics(&found, &sources)?;
    output::refuse_to_replace(&jobs, options)?;
    for job in &jobs {
        show::plan(job, options, shell);
        if !options.dry_run {
            let stubs = {
                let status = shell.status_line("Compiling");
                stub::compile_all(&job.stubs, &status)?
            };
            {
                let status = shell.status_line("Writing");
                output::write(job, &stubs, &status)?;
            }
            show::written(job, shell);
        }
    }
    Ok(!has_errors(&found))
}
