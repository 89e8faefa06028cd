//! Names of status codes, as C data.

use std::fmt::Write as _;

/// The status codes as consecutive strings, `35: cudaErrorInsufficientDriver`: the name is a part of the
/// text. Members of a struct, since compilers need not take string literals of more than 4095 characters
/// (C11 5.2.4.1).
pub(super) fn render(id: &str, errors: &str, is_windows: bool) -> String {
    let (mut members, mut values) = (String::new(), String::new());
    let mut number = 0;
    for line in errors.lines() {
        if let Some((code, name)) = line.split_once(' ').filter(|_| !line.starts_with('#')) {
            let size = code.len() + name.len() + 3;
            // Writing to a String cannot fail.
            let _ = writeln!(members, "    char e{number}[{size}];");
            let _ = writeln!(values, "    \"{code}: {name}\",");
            number += 1;
        }
    }
    let (linkage, name) = if is_windows {
        ("static", "errors_of")
    } else {
        ("MERGED_DATA", "gpustub1_errors") // the functions that need them refer to it
    };
    format!(
        "{linkage} const struct {{\n{members}    char end[1];\n}} {name}_{id} = {{\n{values}    \"\",\n}};\n"
    )
}
