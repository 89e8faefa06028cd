//! Runs a GPU program, as LLVM's libc builds them, on CUDA or HIP, with host services.
//!
//! Stubs of gpustub find the drivers at run time: one binary works with both, and on machines that have neither.
//!
//! ```text
//! gpurpc-loader --blocks 4 --threads 32,2 a.out --verbose
//! gpurpc-loader --entry test_main --init kernels test.cubin
//! gpurpc-loader --runtime hip --device 1 a.out
//! gpurpc-loader --root data --ports 256 a.out
//! gpurpc-loader --timeout 0.5 test.cubin
//! gpurpc-loader --threads-x 32 - < a.out
//! ```
//!
//! # Exit codes
//!
//! | | |
//! |---|---|
//! | 0 to 255 | the program's own |
//! | 123 | no GPU can run the image: [`Code::NoGpu`] |
//! | 124 | the program was still running at the end of `--timeout`: [`Code::TimedOut`] |
//! | 125 | the loader failed: [`Code::Failed`] |
//! | 126 | the image cannot be run: [`Code::NotRunnable`] |
//! | 127 | the image does not exist: [`Code::NotFound`] |
//! | 134 | the program aborted: [`error::ABORTED`] |

mod amdgpu_metadata;
mod arguments;
mod cli;
mod client;
mod constructors;
mod environment;
mod error;
mod image;
mod image_kernels;
mod image_lanes;
mod kernel;
mod msgpack;
mod run;
mod runtime;
mod services;
mod test_services;

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::arguments::{CStringArray, c_string};
use crate::cli::Cli;
use crate::error::{Code, Error, Result};
use crate::image::Kind;
use crate::run::{Outcome, Program};
use crate::runtime::{Gpu, Shape};

fn main() -> ExitCode {
    let cli = match Cli::parse_words(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Both help and usage errors; a closed output is not an error.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(Code::Failed as u8)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run(&cli) {
        Ok(Outcome::Exited(code)) => ExitCode::from(code),
        Ok(Outcome::StillRunning(code)) => exit_now(code),
        Err(error) => {
            eprintln!("{error}");
            exit_now(error.code as u8)
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
        None => Kind::detect(&image, &path.to_string_lossy())?,
    };
    let words = cli.command.iter().map(|word| c_string(word));
    let arguments = CStringArray::new(words.collect::<Result<_>>()?);
    let environment = environment::process_environment()?;
    let entry = cli.entry.as_deref().map(c_string).transpose()?;
    kernel::check_image(&image, entry.as_deref())?;
    if kind == Kind::Cuda {
        // SAFETY: no other thread has started yet.
        unsafe { environment::disable_lazy_loading() };
    }
    let gpu = Arc::new(Gpu::open(kind, cli.device)?);
    let program = Program {
        image: &image,
        entry: entry.as_deref(),
        shape: Shape {
            blocks: cli.block_shape(),
            threads: cli.thread_shape(),
        },
        arguments,
        environment,
        ports: cli.ports,
        root: cli.root.as_deref(),
        constructors: cli.init,
        timeout: cli.timeout,
    };
    run::run(&gpu, &program)
}

/// Reads the image; `-` is standard input, which the program then finds at its end.
fn read(path: &Path) -> Result<Vec<u8>> {
    let mut image = Vec::new();
    let result = if path.as_os_str() == "-" {
        io::stdin().read_to_end(&mut image).map(|_| image)
    } else {
        std::fs::read(path)
    };
    result.map_err(|error| {
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

/// Exits without exit handlers. Those of the driver would wait for running kernels, which may run
/// indefinitely.
fn exit_now(code: u8) -> ! {
    unsafe extern "C" {
        safe fn _exit(status: c_int) -> !;
    }
    // A closed output is not an error.
    let _ = io::stdout().flush();
    _exit(code.into())
}
