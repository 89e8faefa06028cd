//! Programs for Windows (x86-64), compiled by mingw-w64 unless another module says so, and run by wine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use gpustub_core::target::Target;

use crate::command::{self, Ran, succeed};
use crate::components::target_dir;
use crate::scratch::scratch;
use crate::{Result, repository};

/// Triple of the target.
pub const TRIPLE: &str = "x86_64-pc-windows-gnu";

/// wine itself: `wine` prints advice about 32-bit programs on standard output.
pub const PROGRAM: &str = "/usr/lib/wine/wine64";

/// Wine's server.
const SERVER: &str = "/usr/lib/wine/wineserver";

const GCC: &str = "x86_64-w64-mingw32-gcc";
const GXX: &str = "x86_64-w64-mingw32-g++";

/// The target of the programs.
pub fn target() -> Target {
    Target::from_triple(TRIPLE).expect("a triple of rustc")
}

/// C (`c`) or C++ (`c++`) compiler.
pub fn compiler(language: &str) -> &'static str {
    if language == "c++" { GXX } else { GCC }
}

/// The name of a file of this machine for Windows programs: wine's drive Z is `/`.
pub fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}

/// Variables with which [`PROGRAM`] runs.
pub fn variables() -> Result<[(&'static str, OsString); 4]> {
    Ok(variables_of(&prefix()?))
}

/// A program under wine, with an empty environment and in its own directory.
pub fn wine(program: &Path) -> Result<Command> {
    Ok(command_of(PROGRAM, &prefix()?, program))
}

/// Directory of wine's own DLLs.
pub fn system_directory() -> Result<PathBuf> {
    Ok(prefix()?.join("drive_c/windows/system32"))
}

/// Runs a program under wine to its end. Text files and consoles of Windows end lines with `\r\n`.
pub fn run(command: &mut Command) -> Result<Ran> {
    let mut ran = command::run(command)?;
    for text in [&mut ran.stdout, &mut ran.stderr] {
        *text = text.replace("\r\n", "\n");
    }
    Ok(ran)
}

/// Compiles the DLL that Rust's standard library needs and wine 8 lacks, into the directory of a program.
pub fn install_random_numbers(directory: &Path) -> Result<()> {
    let source = repository().join("tests/programs/cross/bcryptprimitives.c");
    let mut gcc = Command::new(GCC);
    gcc.args(["-shared", "-o"])
        .arg(directory.join("bcryptprimitives.dll"));
    succeed(gcc.arg(source).arg("-ladvapi32"))?;
    Ok(())
}

/// Directory of the compiler's own DLLs.
pub fn compiler_libraries() -> Result<PathBuf> {
    let library = succeed(Command::new(GXX).arg("-print-file-name=libstdc++-6.dll"))?.stdout;
    let directory = Path::new(library.trim()).parent();
    Ok(directory.ok_or("no libstdc++-6.dll")?.to_owned())
}

/// The directory of wine's registry and drive C, which later test runs use again: 700 MB, made in some seconds.
fn prefix() -> Result<PathBuf> {
    static PREFIX: OnceLock<Result<(PathBuf, Child), String>> = OnceLock::new();
    let prefix = PREFIX.get_or_init(|| start(PROGRAM, SERVER, "wine").map_err(|failure| failure.0));
    prefix
        .as_ref()
        .map(|(path, _)| path.clone())
        .map_err(Into::into)
}

/// Starts the build of wine with these programs, in the directory of a name. The child keeps wine's server running, whose
/// start takes a second, until this process closes the child's input.
pub(crate) fn start(program: &str, server: &str, name: &str) -> Result<(PathBuf, Child)> {
    let prefix = make_prefix(program, server, name)?;
    let mut keeper = wine_in(program, &prefix);
    keeper.arg("cmd").stdin(Stdio::piped());
    keeper.stdout(Stdio::null()).stderr(Stdio::null());
    let child = keeper.spawn();
    let child = child.map_err(|e| format!("cannot run wine: {e}; ./tests/run installs it"))?;
    // Wine's services keep the standard output of the first program, whose reader would wait for their end.
    let mut first = wine_in(program, &prefix);
    first.args(["cmd", "/c", "exit"]).stdin(Stdio::null());
    first.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok((prefix, child))
}

fn make_prefix(program: &str, server: &str, name: &str) -> Result<PathBuf> {
    let prefix = target_dir().join("gpustub-tests").join(name);
    if prefix.exists() {
        return Ok(prefix);
    }
    let new = scratch()?;
    let mut wineboot = wine_in(program, new.path());
    wineboot.args(["wineboot", "--init"]);
    wineboot.stdout(Stdio::null()).stderr(Stdio::null());
    if !wineboot.status()?.success() {
        return Err("wine makes no prefix".into());
    }
    // It writes the registry when it ends.
    let mut server = Command::new(server);
    server.env("WINEPREFIX", new.path());
    succeed(server.arg("--wait"))?;
    // Another process may have been faster.
    match fs::rename(new.path(), &prefix) {
        Err(error) if !prefix.exists() => Err(format!("{}: {error}", prefix.display()).into()),
        _ => Ok(prefix),
    }
}

/// A program in its own directory, under the build of wine whose program is `wine`.
pub(crate) fn command_of(wine: &str, prefix: &Path, program: &Path) -> Command {
    let mut command = wine_in(wine, prefix);
    command.arg(program);
    command.current_dir(program.parent().unwrap_or(Path::new(".")));
    command
}

fn wine_in(program: &str, prefix: &Path) -> Command {
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["120", program]).env_clear();
    command.envs(variables_of(prefix));
    command
}

fn variables_of(prefix: &Path) -> [(&'static str, OsString); 4] {
    // Services that no test needs: a start takes half the time.
    let services = "explorer.exe,plugplay.exe,svchost.exe,rpcss.exe,winedevice.exe=d";
    [
        ("WINEPREFIX", prefix.into()),
        ("WINEDEBUG", "-all".into()),
        ("WINEDLLOVERRIDES", services.into()),
        ("LC_ALL", "C.UTF-8".into()),
    ]
}
