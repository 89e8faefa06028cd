//! Contents of ELF notes that name the libraries which an image opens.

use crate::plan::LibraryPlan;
use crate::text::join;

/// JSON of a library's note (UAPI.12, "dlopen() Metadata for ELF Files"): names that are alternatives of each
/// other, the most preferred first. `None`: the library has no note.
pub(super) fn json(planned: &LibraryPlan) -> Option<String> {
    let names = planned.noted_names();
    if names.is_empty() {
        return None;
    }
    let names: Vec<String> = names.into_iter().map(string).collect();
    Some(format!(
        "[{{\"soname\":[{}],\"feature\":{},\"description\":{},\"priority\":{}}}]",
        join(&names, ","),
        string(&planned.library.id),
        string(&planned.library.title),
        string(planned.dlopen_note.word()),
    ))
}

/// A JSON string. The specification excludes control characters, which names of files and titles lack.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}
