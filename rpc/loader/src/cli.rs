//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{Error, ErrorKind};
use clap::{CommandFactory, Parser, ValueEnum};
use gpurpc::server;

use crate::constructors::Constructors;
use crate::image::Kind;

const AFTER: &str = "\
The program gets the arguments behind IMAGE, and the environment. It runs as LLVM's libc has it: the
kernels _begin, _start and _end, of which the first and last are run by one thread.

Exit codes: the program's own; 123 no driver or device that can run it, 124 timed out, 125 the loader
failed, 126 the image cannot be run, 127 no such image, 134 the program has aborted.";

/// Runs a GPU program, with host services: what it prints, reads and allocates
#[derive(Debug, Parser)]
#[command(name = "gpurpc-loader", version, after_help = AFTER)]
#[command(override_usage = "gpurpc-loader [OPTIONS] IMAGE [ARGUMENT]...")]
pub struct Cli {
    /// Blocks (work groups) of the program
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "1", value_parser = dimensions)]
    pub blocks: [u32; 3],
    /// Threads (work items) of each block
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "1", value_parser = dimensions)]
    pub threads: [u32; 3],
    /// A kernel to run in place of _begin, _start and _end; it takes
    /// (int argc, char **argv, char **envp, int *result)
    #[arg(long, value_name = "NAME")]
    pub entry: Option<OsString>,
    /// A folder whose files the program may use; without it, it has none
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Ends the process if the program has not ended by then, from its first kernel on; without it, it may run
    /// for ever
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// How many calls of the host may be under way, 1 to 4096 [default: as many as threads, at least 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ports: Option<u32>,
    /// Which device of the driver
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Who runs the image [default: what it is for]
    #[arg(long, value_name = "RUNTIME")]
    pub runtime: Option<Kind>,
    /// How the program writes opcodes: in 16 bits (LLVM 19), or in 32 [default: what its client says]
    #[arg(long, value_name = "OPCODES")]
    pub opcodes: Option<Opcodes>,
    /// Who runs global constructors and destructors [default: what the program is made for]
    #[arg(long, value_name = "WHO")]
    pub constructors: Option<Constructors>,
    /// The program, and its arguments
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "IMAGE [ARGUMENT]")]
    pub command: Vec<OsString>,
}

impl Cli {
    /// The command line of this process.
    ///
    /// # Errors
    ///
    /// For help, too.
    pub fn get(words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let cli = Self::try_parse_from(words)?;
        // All that follows the image is the program's, options of ours too; what comes before it is not.
        match cli.command.first() {
            Some(image) if image.as_encoded_bytes().starts_with(b"-") => {
                let message = format!(
                    "unexpected argument '{}'; an image of that name is ./{0}",
                    image.to_string_lossy()
                );
                Err(Self::command().error(ErrorKind::UnknownArgument, message))
            }
            _ => Ok(cli),
        }
    }
}

/// `--opcodes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Opcodes {
    /// In 32 bits
    Wide,
    /// In 16 bits
    Narrow,
}

impl From<Opcodes> for server::Opcodes {
    fn from(opcodes: Opcodes) -> Self {
        match opcodes {
            Opcodes::Wide => Self::Wide,
            Opcodes::Narrow => Self::Narrow,
        }
    }
}

/// Up to three numbers; those that are not given are 1.
fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let mut all = [1; 3];
    let mut parts = text.split(',');
    for (to, part) in all.iter_mut().zip(&mut parts) {
        *to = match part.parse() {
            Ok(0) | Err(_) => return Err(format!("`{part}` is no number from 1 on")),
            Ok(number) => number,
        };
    }
    match parts.next() {
        None => Ok(all),
        Some(_) => Err("there are three dimensions at most".into()),
    }
}

/// A time that is not nothing.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "a number of seconds above 0, such as 30 or 0.5".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_image_is_the_programs() {
        let cli = Cli::get(words("gpurpc-loader --threads 8,2 a.out --threads 3 -- -x"));
        let cli = cli.expect("a command line");
        assert_eq!(cli.threads, [8, 2, 1]);
        assert_eq!(cli.command, words("a.out --threads 3 -- -x"));
        for wrong in [
            "gpurpc-loader --tread 8 a.out",
            "gpurpc-loader",
            "gpurpc-loader -x",
        ] {
            assert!(Cli::get(words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!(dimensions("1,2,3"), Ok([1, 2, 3]));
        for wrong in ["", "0", "1,,2", "-1", "1,2,3,4", "4294967296"] {
            assert!(dimensions(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "nan", "inf", "1s", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
