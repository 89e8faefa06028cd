//! Stubs as a DLL for finished images of Windows.

use std::fs;
use std::path::Path;

use gpustub_core::by_name::ByName;

use super::{OBJECTS, Toolchain, absolute, tool_error};
use crate::error::Error;
use crate::files;

/// Options of the linker. The times and addresses of two links are the same; the address in memory is the system's choice.
const OPTIONS: [&str; 8] = [
    "-shared",
    // Windows has no DLL of the compiler.
    "-static-libgcc",
    "-Wl,-s",
    "-Wl,--gc-sections",
    "-Wl,--exclude-all-symbols",
    "-Wl,--no-insert-timestamp",
    "-Wl,--disable-auto-image-base",
    "-Wl,--dynamicbase,--high-entropy-va,--nxcompat",
];

impl Toolchain {
    /// Compiles the sources in `dir`, and links them into a DLL of this name. Its exports are those of all nodes: DLLs
    /// have no symbol versions. Returns the bytes of the DLL.
    pub fn stub_dll(
        &self,
        dir: &Path,
        library: &Path,
        exports: &ByName<Vec<String>>,
    ) -> Result<Vec<u8>, Error> {
        self.objects(dir, &[])?;
        let file = library.file_name().unwrap_or_default().to_string_lossy();
        let definitions = definitions(&file, exports);
        files::write_if_changed(&dir.join("gpustub.def"), definitions.as_bytes())?;
        let new = absolute(&files::sibling(library))?;
        let mut command = self.compiler.command(dir);
        command.args(OPTIONS).arg("-o").arg(&new);
        command.args(OBJECTS).arg("gpustub.def");
        let output = command.output().map_err(|e| self.no_compiler(&e))?;
        if !output.status.success() {
            files::remove(&new)?;
            let message = "the stubs could not be linked";
            return Err(tool_error(message, &command, &output));
        }
        let image = fs::read(&new).map_err(|e| Error::io("read", &new, &e))?;
        files::remove(&new)?;
        Ok(image)
    }
}

/// Module definition file with the name of the DLL and these functions.
fn definitions(file: &str, exports: &ByName<Vec<String>>) -> String {
    let mut text = format!("LIBRARY \"{file}\"\nEXPORTS\n");
    for function in exports.iter().flat_map(|(_, functions)| functions) {
        text += &format!(" {function}\n");
    }
    text
}
