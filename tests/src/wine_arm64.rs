//! Programs for Windows on ARM64, compiled by zig, which brings mingw-w64, and run by wine for ARM64 Linux in an emulator.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

use gpustub_core::target::Target;

use crate::Result;
use crate::components::{component, target_dir};
use crate::scratch::scratch;
use crate::wine;

/// Triple of the target.
pub const TRIPLE: &str = "aarch64-pc-windows-gnullvm";

/// Compiler of the stubs, with [`headers`].
pub const CLANG: &str = "clang-19";

/// Flags with which clang finds the headers of mingw-w64, which all machines share.
pub fn headers() -> Vec<String> {
    vec![
        "-isystem".to_owned(),
        "/usr/share/mingw-w64/include".to_owned(),
    ]
}

/// The target of the programs.
pub fn target() -> Target {
    Target::from_triple(TRIPLE).expect("a triple of rustc")
}

/// C (`c`) or C++ (`c++`) compiler.
pub fn compiler(language: &str) -> Result<PathBuf> {
    let name = if language == "c++" { "c++" } else { "cc" };
    Ok(tools()?.join(name))
}

/// A program under wine, with an empty environment and in its own directory.
pub fn wine(program: &Path) -> Result<Command> {
    static PREFIX: OnceLock<Result<(PathBuf, Child), String>> = OnceLock::new();
    let programs = tools()?.join("usr/lib/wine");
    let [wine, server] =
        ["wine64", "wineserver"].map(|name| programs.join(name).to_string_lossy().into_owned());
    let prefix = PREFIX
        .get_or_init(|| wine::start(&wine, &server, "wine-arm64").map_err(|failure| failure.0));
    let (prefix, _) = prefix.as_ref().map_err(Clone::clone)?;
    Ok(wine::command_of(&wine, prefix, program))
}

/// Advice that wine prints, whose component has no library for fonts.
const NO_FONTS: &str = "Wine cannot find the FreeType font library.  To enable Wine to\nuse TrueType fonts please install a \
                        version of FreeType greater than\nor equal to 2.0.5.\nhttp://www.freetype.org\n";

/// Standard error without wine's advice.
pub fn without_advice(text: &str) -> String {
    text.replace(NO_FONTS, "")
}

/// Directory of the compilers, and of wine with scripts in the place of its programs: wine starts others by the names that
/// these have beside its libraries, and the kernel starts none for another machine.
fn tools() -> Result<PathBuf> {
    static TOOLS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let tools = TOOLS.get_or_init(|| make_tools().map_err(|failure| failure.0));
    tools.clone().map_err(Into::into)
}

fn make_tools() -> Result<PathBuf> {
    let tools = target_dir().join("gpustub-tests/wine-arm64-tools");
    if tools.exists() {
        return Ok(tools);
    }
    let (zig, component) = (component("ziglang")?, component("wine-arm64")?);
    let new = scratch()?;
    let programs = new.path().join("usr/lib/wine");
    let libraries = Path::new("usr/lib/aarch64-linux-gnu/wine");
    fs::create_dir_all(&programs)?;
    fs::create_dir_all(new.path().join(libraries).join("aarch64-unix"))?;
    symlink(component.join("usr/share"), new.path().join("usr/share"))?;
    fs::copy(
        component.join("usr/lib/ld-linux-aarch64.so.1"),
        programs.join("ld.so"),
    )?;
    // The libraries are found from the real paths of these.
    for entry in fs::read_dir(component.join(libraries).join("aarch64-unix"))? {
        let entry = entry?;
        let copy = new.path().join(libraries).join("aarch64-unix");
        fs::copy(entry.path(), copy.join(entry.file_name()))?;
    }
    let windows = libraries.join("aarch64-windows");
    symlink(component.join(&windows), new.path().join(&windows))?;
    for (name, program, variables) in [
        ("wine64", "wine64", "WINELOADERNOEXEC=1 "),
        ("wineserver", "wineserver64", ""),
    ] {
        let copy = programs.join(format!("{program}.program"));
        fs::copy(component.join("usr/lib/wine").join(program), &copy)?;
        // Not by the emulator's option -L, under which `/` is another directory. Without branch target identification: a
        // function of wine that its DLLs call has no landing pad.
        let text = format!(
            "{variables}exec /usr/bin/qemu-aarch64 -cpu cortex-a76 {0}/ld.so --library-path {1} --argv0 {0}/{name} \
             {0}/{program}.program \"$@\"",
            tools.join("usr/lib/wine").display(),
            component.join("usr/lib/aarch64-linux-gnu").display()
        );
        write_script(&programs.join(name), &text)?;
    }
    for name in ["cc", "c++"] {
        let text = format!(
            "PYTHONPATH={} ZIG_GLOBAL_CACHE_DIR={} exec python3 -m ziglang {name} -target aarch64-windows-gnu \"$@\"",
            zig.display(),
            target_dir().join("cross/zig").display()
        );
        write_script(&new.path().join(name), &text)?;
    }
    match fs::rename(new.path(), &tools) {
        Err(error) if !tools.exists() => Err(format!("{}: {error}", tools.display()).into()),
        _ => Ok(tools),
    }
}

fn write_script(path: &Path, text: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{text}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
