//! Runs a GPU program, as LLVM's libc builds them, on CUDA or HIP, with host services.
//!
//! The drivers are found when the program starts, through gpustub's own stubs: one binary for both, and for
//! machines that have neither.

mod arguments;
mod cli;
mod client;
mod constructors;
mod environment;
mod error;
mod image;
mod kernel;
mod run;
mod runtime;
mod services;

use std::ffi::c_int;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::arguments::Vector;
use crate::cli::Cli;
use crate::error::{Code, Error, Result};
use crate::image::Kind;
use crate::run::{Outcome, Program, c_string};
use crate::runtime::{Gpu, Shape};

fn main() -> ExitCode {
    let cli = match Cli::get(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and usage errors both arrive here; that nobody reads them is no error.
            let _ = error.print();
            return match error.use_stderr() {
                true => ExitCode::from(Code::Failed as u8),
                false => ExitCode::SUCCESS,
            };
        }
    };
    match run(&cli) {
        Ok(Outcome::Ended(code)) => ExitCode::from(code),
        Ok(Outcome::Left(code)) => leave(code),
        Err(error) => {
            eprintln!("{error}");
            leave(error.code as u8)
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome> {
    let path = Path::new(
        cli.command
            .first()
            .ok_or_else(|| Error::new(Code::Failed, "no image"))?,
    );
    let image = read(path)?;
    let kind = match cli.runtime {
        Some(kind) => kind,
        None => Kind::of(&image, &path.to_string_lossy())?,
    };
    let texts = cli.command.iter().map(|text| c_string(text));
    let arguments = Vector::new(texts.collect::<Result<_>>()?);
    let environment = environment::all()?;
    let entry = cli.entry.as_deref().map(c_string).transpose()?;
    if kind == Kind::Cuda {
        // SAFETY: this is the only thread yet.
        unsafe { environment::load_eagerly() };
    }
    let gpu = Arc::new(Gpu::open(kind, cli.device)?);
    let program = Program {
        image: &image,
        entry: entry.as_deref(),
        shape: Shape {
            blocks: cli.blocks,
            threads: cli.threads,
        },
        arguments,
        environment,
        ports: cli.ports,
        root: cli.root.as_deref(),
        opcodes: cli.opcodes.map(Into::into),
        constructors: cli.constructors,
        timeout: cli.timeout,
    };
    run::run(&gpu, &program)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            _ => Code::NotRunnable,
        };
        Error::new(
            code,
            format!("cannot read the image `{}`: {error}", path.display()),
        )
    })
}

/// Ends the process at once. The driver's own end would wait for kernels that still run, and they may run
/// for ever.
fn leave(code: u8) -> ! {
    unsafe extern "C" {
        safe fn _exit(status: c_int) -> !;
    }
    // That nobody reads it is no error.
    let _ = io::stdout().flush();
    _exit(code.into())
}
