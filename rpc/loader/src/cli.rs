//! Command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{Error, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::constructors::Constructors;
use crate::image::Kind;

const AFTER: &str = "\
IMAGE - is read from standard input. The program receives the arguments after IMAGE and the environment. As in
LLVM's libc, the kernels _begin, _start and _end run in this order, the first and the last one on one thread.

Exit codes: that of the program; 123 no usable driver or device, 124 timeout, 125 error of the loader,
126 the image cannot be run, 127 the image does not exist, 134 the program aborted.

Examples:
  gpurpc-loader hello.ptx
  gpurpc-loader --blocks 4 --threads 32 --root data a.out --verbose
  gpurpc-loader --timeout 60 --device 1 test.cubin";

/// Run a GPU program with host services: output, files, memory
#[derive(Debug, Parser)]
#[command(name = "gpurpc-loader", version, after_help = AFTER)]
#[command(override_usage = "gpurpc-loader [OPTIONS] IMAGE [ARGUMENT]...")]
pub struct Cli {
    /// Number of blocks (work groups); --blocks-x, --blocks-y and --blocks-z set one dimension
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "1", value_parser = dimensions)]
    pub blocks: [u32; 3],
    #[command(flatten)]
    dimensions: Dimensions,
    /// Number of threads (work items) of each block; --threads-x, --threads-y and --threads-z set one dimension
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "1", value_parser = dimensions)]
    pub threads: [u32; 3],
    /// Kernel to run instead of _begin, _start and _end, with the parameters
    /// (int argc, char **argv, char **envp, int *result)
    #[arg(long, visible_alias = "kernel", value_name = "NAME")]
    pub entry: Option<OsString>,
    /// Directory of the files that the program may use [default: no files]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Time limit of the program, from its first kernel on [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Number of calls that may be open at once, 1 to 4096, with LLVM 23 to 16384 [default: number of threads, at
    /// least 64, at most the warps that the device runs at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub ports: Option<u32>,
    /// Index of the device
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// Driver that runs the image [default: that of the image]
    #[arg(long, value_name = "RUNTIME")]
    pub runtime: Option<Kind>,
    /// Code that runs global constructors and destructors [default: that of the image]
    #[arg(long, value_name = "CODE")]
    pub init: Option<Constructors>,
    /// Program and its arguments
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "IMAGE [ARGUMENT]")]
    pub command: Vec<OsString>,
}

/// Options of llvm-gpu-loader, one for each dimension.
#[derive(Debug, clap::Args)]
struct Dimensions {
    #[arg(long, hide = true, value_name = "X", value_parser = positive)]
    blocks_x: Option<u32>,
    #[arg(long, hide = true, value_name = "Y", value_parser = positive)]
    blocks_y: Option<u32>,
    #[arg(long, hide = true, value_name = "Z", value_parser = positive)]
    blocks_z: Option<u32>,
    #[arg(long, hide = true, value_name = "X", value_parser = positive)]
    threads_x: Option<u32>,
    #[arg(long, hide = true, value_name = "Y", value_parser = positive)]
    threads_y: Option<u32>,
    #[arg(long, hide = true, value_name = "Z", value_parser = positive)]
    threads_z: Option<u32>,
}

impl Cli {
    /// Number of blocks in each dimension.
    pub fn block_shape(&self) -> [u32; 3] {
        let Dimensions {
            blocks_x,
            blocks_y,
            blocks_z,
            ..
        } = self.dimensions;
        with_overrides(self.blocks, [blocks_x, blocks_y, blocks_z])
    }

    /// Number of threads of a block in each dimension.
    pub fn thread_shape(&self) -> [u32; 3] {
        let Dimensions {
            threads_x,
            threads_y,
            threads_z,
            ..
        } = self.dimensions;
        with_overrides(self.threads, [threads_x, threads_y, threads_z])
    }

    /// Parses the command line of this process.
    ///
    /// # Errors
    ///
    /// For a usage error, and for requested help.
    pub fn parse_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let cli = Self::try_parse_from(words)?;
        // All words after the image are the program's, even known options; words before it are not.
        match cli.command.first() {
            // `-` alone is standard input.
            Some(image) if image.as_encoded_bytes().starts_with(b"-") && image != "-" => {
                let message = match UNSUPPORTED.iter().find(|(option, _)| image == option) {
                    Some((option, help)) => {
                        format!("'{option}' of LLVM's loaders is not supported\n  help: {help}")
                    }
                    None => format!(
                        "unexpected argument '{}'; use ./{0} for an image of that name",
                        image.to_string_lossy()
                    ),
                };
                Err(Self::command().error(ErrorKind::UnknownArgument, message))
            }
            _ => Ok(cli),
        }
    }
}

/// Options of LLVM's loaders, which are refused, with what to use instead (`llvm/tools/llvm-gpu-loader`, before LLVM 21
/// `libc/utils/gpu/loader`).
const UNSUPPORTED: [(&str, &str); 2] = [
    (
        "--no-parallelism",
        "programs share the device with others: run them one after another, for example by flock(1) or ctest's RESOURCE_LOCK",
    ),
    (
        "--print-resource-usage",
        "`cuobjdump --dump-resource-usage` prints it for NVIDIA's GPUs, `llvm-readelf --notes` for AMD's",
    ),
];

/// The dimensions, with those that have an option of their own replaced.
fn with_overrides(dimensions: [u32; 3], overrides: [Option<u32>; 3]) -> [u32; 3] {
    std::array::from_fn(|index| overrides[index].unwrap_or(dimensions[index]))
}

/// Parses a number from 1 on.
fn positive(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a number from 1 on")),
        Ok(number) => Ok(number),
    }
}

/// Parses up to three numbers; missing ones are 1.
fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let mut dimensions = [1; 3];
    let mut parts = text.split(',');
    for (dimension, part) in dimensions.iter_mut().zip(&mut parts) {
        *dimension = positive(part)?;
    }
    match parts.next() {
        None => Ok(dimensions),
        Some(_) => Err("at most three dimensions are supported".into()),
    }
}

/// Parses a positive time.
fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0, such as 30 or 0.5".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ABORTED, Code};

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn words_after_the_image_belong_to_the_program() {
        let cli = Cli::parse_words(words("gpurpc-loader --threads 8,2 a.out --threads 3 -- -x"));
        let cli = cli.expect("a command line");
        assert_eq!(cli.thread_shape(), [8, 2, 1]);
        assert_eq!(cli.command, words("a.out --threads 3 -- -x"));
        let cli = Cli::parse_words(words("gpurpc-loader --threads 8 - - -x"));
        assert_eq!(cli.expect("a command line").command, words("- - -x"));
        for wrong in [
            "gpurpc-loader --tread 8 a.out",
            "gpurpc-loader",
            "gpurpc-loader -x",
            "gpurpc-loader -- -x",
        ] {
            assert!(Cli::parse_words(words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn examples_of_the_help_parse() {
        let (_, examples) = AFTER.split_once("Examples:\n").expect("there are examples");
        assert!((2..=4).contains(&examples.lines().count()));
        for example in examples.lines() {
            let cli = Cli::parse_words(words(example.trim()));
            assert!(cli.is_ok(), "{example}: {:?}", cli.err());
        }
    }

    /// The README, and the crate's documentation.
    const PAGES: [(&str, &str); 2] = [
        ("README.md", include_str!("../README.md")),
        ("main.rs", include_str!("main.rs")),
    ];

    #[test]
    fn pages_show_each_option_of_the_help() {
        for (name, page) in PAGES {
            let examples: Vec<&str> = page
                .lines()
                .map(|line| line.trim_start_matches("//! "))
                .filter(|line| line.starts_with("gpurpc-loader --"))
                .collect();
            for example in &examples {
                let cli = Cli::parse_words(words(example));
                assert!(cli.is_ok(), "{name}: {example}: {:?}", cli.err());
            }
            let mut count = 0;
            for argument in Cli::command().get_arguments() {
                let Some(option) = argument.get_long().filter(|_| !argument.is_hide_set()) else {
                    continue;
                };
                let option = format!(" --{option} ");
                let has_example = examples.iter().any(|example| example.contains(&option));
                assert!(has_example, "{name} has no example of{option}");
                count += 1;
            }
            assert!(count >= 9, "{name}: {count}");
        }
    }

    #[test]
    fn pages_and_help_list_all_exit_codes() {
        let codes = [
            Code::NoGpu,
            Code::TimedOut,
            Code::Failed,
            Code::NotRunnable,
            Code::NotFound,
        ];
        for code in codes.map(|code| code as u8).into_iter().chain([ABORTED]) {
            for (name, page) in PAGES {
                assert!(page.contains(&format!("| {code} | ")), "{name}: {code}");
            }
            assert!(AFTER.contains(&format!("{code} ")), "help: {code}");
        }
    }

    /// Command lines of LLVM's loaders: `llvm-gpu-loader` since LLVM 21, before it `nvptx-loader` and `amdhsa-loader`.
    #[test]
    fn options_of_llvms_loaders_are_accepted() {
        for (releases, options, blocks, threads, entry) in [
            ("19 to 24", "--threads 8", [1; 3], [8, 1, 1], None),
            ("19 to 24", "--threads=8", [1; 3], [8, 1, 1], None),
            ("19 to 24", "--threads-x 8", [1; 3], [8, 1, 1], None),
            ("19 to 24", "--threads-y=8", [1; 3], [1, 8, 1], None),
            ("19 to 24", "--threads-z 8", [1; 3], [1, 1, 8], None),
            ("19 to 24", "--blocks 8", [8, 1, 1], [1; 3], None),
            ("19 to 24", "--blocks-x=8", [8, 1, 1], [1; 3], None),
            ("19 to 24", "--blocks-y 8", [1, 8, 1], [1; 3], None),
            ("19 to 24", "--blocks-z=8", [1, 1, 8], [1; 3], None),
            // Of LLVM's start-up tests.
            (
                "19 to 24",
                "--threads 32 --blocks 8",
                [8, 1, 1],
                [32, 1, 1],
                None,
            ),
            (
                "19 to 24",
                "--blocks-x 5 --blocks-y 6 --blocks-z 7 --threads-x 2 --threads-y 3 --threads-z 4",
                [5, 6, 7],
                [2, 3, 4],
                None,
            ),
            (
                "24",
                "--kernel test_main",
                [1; 3],
                [1; 3],
                Some("test_main"),
            ),
            (
                "24",
                "--kernel=test_main",
                [1; 3],
                [1; 3],
                Some("test_main"),
            ),
        ] {
            let line = format!("gpurpc-loader {options} a.out --blocks-x 9 --kernel other");
            let cli = Cli::parse_words(words(&line));
            let cli = cli.unwrap_or_else(|error| panic!("LLVM {releases}: {line}: {error}"));
            let shapes = (cli.block_shape(), cli.thread_shape());
            assert_eq!(shapes, (blocks, threads), "{line}");
            assert_eq!(cli.entry, entry.map(OsString::from), "{line}");
            assert_eq!(cli.command, words("a.out --blocks-x 9 --kernel other"));
        }
        for (option, help) in UNSUPPORTED {
            let line = format!("gpurpc-loader --threads 8 {option} a.out");
            let error = Cli::parse_words(words(&line)).expect_err(option);
            let message = error.to_string();
            assert!(
                message.contains(option) && message.contains(help),
                "{message}"
            );
            // Behind the image it is the program's.
            let line = format!("gpurpc-loader a.out {option}");
            assert!(Cli::parse_words(words(&line)).is_ok(), "{line}");
        }
    }

    #[test]
    fn options_of_one_dimension_win() {
        let line = "gpurpc-loader --threads 8,2 --threads-y 3 --blocks-z 4 a";
        let cli = Cli::parse_words(words(line)).expect("a command line");
        assert_eq!(cli.thread_shape(), [8, 3, 1]);
        assert_eq!(cli.block_shape(), [1, 1, 4]);
        for option in ["threads", "blocks"] {
            for dimension in ["x", "y", "z"] {
                for wrong in ["0", "-1", "1,2", "4294967296", "x"] {
                    let line = format!("gpurpc-loader --{option}-{dimension}={wrong} a");
                    assert!(Cli::parse_words(words(&line)).is_err(), "{line}");
                }
            }
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
