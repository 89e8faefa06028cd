//! Description of an entry, in its file `record`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gpustub_core::text::join;

use super::hash::hash_text;

/// File name of the record in its entry.
pub(super) const FILE_NAME: &str = "record";

const FIRST_LINE: &str = "gpustub-store 1";

/// Size above which a file is no record.
const MAX_SIZE: u64 = 16 << 20;

/// Hash of a file that does not exist.
pub(super) const ABSENT: &str = "absent";

/// Contents of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: String,
    /// Hash and path of each file that the command read, or would read in place of one.
    pub(super) inputs: Vec<(String, String)>,
    /// Hash of each output.
    pub(super) outputs: Vec<String>,
    /// Text that the command printed.
    pub(super) printed: String,
}

impl Record {
    /// Reads a record; `None` if it is not whole.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut text = String::new();
        let file = File::open(path).ok()?;
        file.take(MAX_SIZE).read_to_string(&mut text).ok()?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?;
        let mut record = Self {
            key: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            printed: String::new(),
        };
        for line in rest.strip_suffix("\nend\n")?.lines() {
            let (kind, value) = line.split_once(' ')?;
            match kind {
                "step" => record.key = value.to_owned(),
                "input" => {
                    let (hash, path) = value.split_once(' ')?;
                    record.inputs.push((hash.to_owned(), path.to_owned()));
                }
                "output" => record.outputs.push(value.to_owned()),
                "printed" => {
                    record.printed += value;
                    record.printed.push('\n');
                }
                _ => return None,
            }
        }
        Some(record)
    }

    /// The text of the record; `None` if a line break in a value would divide it.
    pub(super) fn render(&self) -> Option<String> {
        let mut lines = vec![FIRST_LINE.to_owned(), format!("step {}", self.key)];
        for (hash, path) in &self.inputs {
            lines.push(format!("input {hash} {path}"));
        }
        for hash in &self.outputs {
            lines.push(format!("output {hash}"));
        }
        let is_divided = lines.iter().any(|line| line.contains('\n'));
        for line in self.printed.lines() {
            lines.push(format!("printed {line}"));
        }
        lines.push("end\n".to_owned());
        (!is_divided).then(|| join(&lines, "\n"))
    }

    /// Name of its entry: a hash of the inputs.
    pub(super) fn name(&self) -> String {
        let lines: Vec<_> = (self.inputs.iter())
            .map(|(hash, path)| format!("{hash} {path}\n"))
            .collect();
        hash_text(&join(&lines, ""))
    }
}
