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
    let row = |name: &str, (members, bytes): (u64, u64)| {
        vec![name.to_owned(), members.to_string(), bytes.to_string()]
    };
    let mut all = Vec::new();
    let mut sum = (0_u64, 0_u64);
    for view in views(archive, None)? {
        let mut own = (0_u64, 0_u64);
        for member in view.members() {
            own = (own.0 + 1, own.1.saturating_add(member?.contents().size()));
        }
        sum = (sum.0 + own.0, sum.1.saturating_add(own.1));
        let name = text(view.name());
        let is_default = Some(view.name()) == default;
        let mut shown = row(&name, own);
        if is_default {
            shown.push("default".to_owned());
        }
        rows.push(shown);
        all.push(json!({
            "name": name, "default": is_default, "members": own.0, "bytes": own.1,
        }));
    }
    let mut unique = (0_u64, 0_u64);
    for contents in archive.contents() {
        unique = (
            unique.0 + 1,
            unique.1.saturating_add(contents?.stored_size()),
        );
    }
    let file =
        std::fs::metadata(&options.file).map_err(|e| Error::io("read", &options.file, &e))?;
    let tables = archive.tables_size();
    // Bytes of all views for each byte of the file.
    let ratio = match file.len() {
        0 => 1.0,
        bytes => sum.1 as f64 / bytes as f64,
    };
    if options.format == TextOrJson::Json {
        shell.json(&json!({
            "format_version": FORMAT_VERSION,
            "file_bytes": file.len(),
            "views": all,
            "total": { "members": sum.0, "bytes": sum.1 },
            "unique": { "members": unique.0, "bytes": unique.1 },
            "tables_bytes": tables,
            "sharing_ratio": ratio,
        }))?;
        return Ok(true);
    }
    rows.push(row("all views", sum));
    rows.push(row("each once", unique));
    let mut shown = columns(&rows);
    shown += &format!(
        "\nfile: {} bytes, of which tables {tables} and members {}; all views are {ratio:.2} times its size\n",
        file.len(),
        unique.1
    );
    shell.data(shown)?;
    Ok(true)
}
