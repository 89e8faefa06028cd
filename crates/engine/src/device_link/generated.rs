//! Objects of small C sources, whose lists are generated.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files;
use crate::toolchain::Toolchain;

/// A source, and the file that it includes: their names and texts.
pub(super) type Sources<'a> = [(&'a str, &'a str); 2];

/// Compiles the first of the sources in `dir`, unless the object is of these texts.
pub(super) fn object(
    dir: &Path,
    sources: Sources,
    name: &str,
    tools: &dyn Fn() -> Result<Toolchain, Error>,
) -> Result<PathBuf, Error> {
    let object = dir.join(name);
    let mut texts = sources.iter();
    let is_fresh = object.exists()
        && texts.all(|(name, text)| {
            std::fs::read_to_string(dir.join(name)).is_ok_and(|old| old == *text)
        });
    if is_fresh {
        return Ok(object);
    }
    files::remove(&object)?;
    for (name, text) in sources {
        files::write_if_changed(&dir.join(name), text.as_bytes())?;
    }
    let new = files::sibling(&object);
    let new_name = new.file_name().unwrap_or_default().to_string_lossy();
    tools()?.object(dir, &[], sources[0].0, &new_name)?;
    files::rename(&new, &object)?;
    Ok(object)
}
