//! `archive stats`: sizes of views, and bytes saved by sharing.

use gpustub_archive::SuperArchive;
use gpustub_workspace::error::Error;
use gpustub_workspace::report::json::FORMAT_VERSION;
use gpustub_workspace::shell::Shell;
use serde_json::json;

use super::list;
use super::open::{ArchiveResult, columns, text, views};
use crate::cli::{ArchiveStats, TextOrJson};

/// Runs the command. Sizes count the contents of members.
pub fn run(
    archive: &SuperArchive<'_>,
    options: &ArchiveStats,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    let default = list::default(archive)?;
    let mut rows = vec![["VIEW", "MEMBERS", "BYTES"].map(str::to_owned).to_vec()];
    let mut json_rows = Vec::new();
    let mut total = Size::default();
    for view in views(archive, None)? {
        let mut size = Size::default();
        for member in view.members() {
            let bytes = member?.contents().size();
            size.add(bytes);
            total.add(bytes);
        }
        let name = text(view.name());
        let is_default = Some(view.name()) == default;
        let mut row = size.row(&name);
        if is_default {
            row.push("default".to_owned());
        }
        rows.push(row);
        json_rows.push(json!({
            "name": name, "default": is_default, "members": size.members, "bytes": size.bytes,
        }));
    }
    let mut unique = Size::default();
    for contents in archive.contents() {
        unique.add(contents?.stored_size());
    }
    let file_bytes = std::fs::metadata(&options.file)
        .map_err(|e| Error::io("read", &options.file, &e))?
        .len();
    let tables_bytes = archive.tables_size();
    // Bytes of all views for each byte of the file.
    let ratio = match file_bytes {
        0 => 1.0,
        bytes => total.bytes as f64 / bytes as f64,
    };
    if options.format == TextOrJson::Json {
        shell.json(&json!({
            "format_version": FORMAT_VERSION,
            "file_bytes": file_bytes,
            "views": json_rows,
            "total": { "members": total.members, "bytes": total.bytes },
            "unique": { "members": unique.members, "bytes": unique.bytes },
            "tables_bytes": tables_bytes,
            "sharing_ratio": ratio,
        }))?;
        return Ok(true);
    }
    rows.push(total.row("all views"));
    rows.push(unique.row("each once"));
    shell.data(format!(
        "{}\nfile: {file_bytes} bytes, of which tables {tables_bytes} and members {}; \
         all views are {ratio:.2} times its size\n",
        columns(&rows),
        unique.bytes
    ))?;
    Ok(true)
}

/// Number of members and of the bytes of their contents.
#[derive(Default)]
struct Size {
    members: u64,
    bytes: u64,
}

impl Size {
    fn add(&mut self, bytes: u64) {
        self.members += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Row of the human-readable table.
    fn row(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            self.members.to_string(),
            self.bytes.to_string(),
        ]
    }
}
