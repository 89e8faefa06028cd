//! Initializers of C data.

use std::fmt::{Display, Write as _};

use crate::by_name::ByName;

/// Concatenated runs of rows, equal ones stored once.
#[derive(Default)]
pub(super) struct Runs {
    pub rows: String,
    len: usize,
    /// Index of the first row of each run, by the run's text.
    starts: ByName<usize>,
}

impl Runs {
    /// Index of the run's first row. `len`: number of its rows.
    pub(super) fn start(&mut self, run: &str, len: usize) -> usize {
        if len == 0 {
            return 0;
        }
        if let Some(start) = self.starts.get(run) {
            return *start;
        }
        let start = self.len;
        self.rows += run;
        self.len += len;
        self.starts.insert(run, start);
        start
    }
}

/// Strings in a row, each once.
pub(super) struct Texts {
    /// Members of a struct, since compilers need not take long string literals (C11 5.2.4.1).
    pub members: String,
    pub values: String,
    offsets: ByName<usize>,
    len: usize,
}

impl Texts {
    /// Only the empty string.
    pub(super) fn new() -> Self {
        let mut offsets = ByName::new();
        offsets.insert("", 0);
        Self {
            members: "    char n0[1];\n".to_owned(),
            values: "    \"\",\n".to_owned(),
            offsets,
            len: 1,
        }
    }

    /// Offset of a string.
    pub(super) fn offset(&mut self, name: &str) -> usize {
        if let Some(offset) = self.offsets.get(name) {
            return *offset;
        }
        let offset = self.len;
        self.offsets.insert(name, offset);
        // Writing to a String cannot fail.
        let _ = writeln!(self.members, "    char n{offset}[{}];", name.len() + 1);
        let _ = writeln!(self.values, "    {},", quote(name));
        self.len += name.len() + 1;
        offset
    }
}

/// The members of a designated initializer that are not zero.
pub(super) struct Members(String);

impl Members {
    pub(super) const fn new() -> Self {
        Self(String::new())
    }

    /// Adds a member with its value.
    pub(super) fn set(&mut self, name: &str, value: &dyn Display) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{comma}.{name} = {value}");
    }

    /// Adds a member, unless it has the value of a member that is left out.
    pub(super) fn set_number(&mut self, name: &str, value: usize) {
        if value != 0 {
            self.set(name, &value);
        }
    }

    /// Adds a member with a string, unless `None`.
    pub(super) fn set_string(&mut self, name: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.set(name, &quote(value));
        }
    }

    /// Row of an array.
    pub(super) fn finish(self) -> String {
        format!("    {{{}}},\n", self.0)
    }
}

/// A C `int` constant. The lowest one has no literal: its digits alone are out of range.
pub(super) fn int(value: i32) -> String {
    if value == i32::MIN {
        format!("({} - 1)", i32::MIN + 1)
    } else {
        value.to_string()
    }
}

/// A C string literal. Bytes that are not plain ASCII become octal escapes of three digits, which
/// no following digit can lengthen, as does `?`, so that no trigraph arises (C11 5.2.1.1).
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' if byte != b'?' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}
