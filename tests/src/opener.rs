//! A program that opens libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::command::succeed;

/// A program that opens the libraries of its arguments, and calls `run` of each. With the environment
/// variable `GLOBAL` they see each other's functions.
pub fn host(directory: &Path) -> Result<PathBuf> {
    let code = "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
                int main(int n, char **words) {\n\
                \x20   int flag = getenv(\"GLOBAL\") ? RTLD_GLOBAL : RTLD_LOCAL;\n\
                \x20   for (int i = 1; i < n; i++) {\n\
                \x20       void *library = dlopen(words[i], RTLD_NOW | flag);\n\
                \x20       void (*run)(void) = library ? (void (*)(void))dlsym(library, \"run\") : 0;\n\
                \x20       if (!run) return puts(dlerror()), 1;\n\
                \x20       run();\n    }\n    return 0;\n}\n";
    fs::write(directory.join("host.c"), code)?;
    let mut cc = Command::new("cc");
    succeed(
        cc.current_dir(directory)
            .args(["host.c", "-ldl", "-o", "host"]),
    )?;
    Ok(directory.join("host"))
}
