//! The dynamic loader's account of a run, for images that may not load.

use std::path::Path;

use crate::command::Ran;

/// Whether the loader needs something outside of the image that this system lacks: a library, a
/// function, a version, a processor, memory. No tool can know them from the image.
pub fn needs_more(ran: &Ran) -> bool {
    let messages = [
        ": cannot open shared object file: No such file or directory",
        "undefined symbol: ",
        "' not found (required by ",
        ": CPU ISA level is lower than required",
        ": cannot map zero-fill pages",
    ];
    ran.status.code().is_some() && messages.iter().any(|message| ran.stderr.contains(message))
}

/// Whether the loader, with `LD_DEBUG=files`, has loaded an image, bound its functions, and called its code.
/// All images of a program (`library` is `None`) are bound before the first of its libraries is called.
pub fn is_started(ran: &Ran, library: Option<&Path>) -> bool {
    let path = library.map_or(String::new(), |path| path.display().to_string());
    ran.stderr
        .lines()
        .any(|line| line.contains("calling init: ") && line.ends_with(&path))
}
