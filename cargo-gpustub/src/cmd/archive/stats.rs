//! `archive stats`: sizes of views, and bytes saved by sharing.

use gpustub_archive::SuperArchive;
use gpustub_report::error::Error;
use gpustub_report::report::json::FORMAT_VERSION;
use gpustub_report::shell::Shell;
use serde_json::json;

use super::{ArchiveResult, columns, list, text, views};
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
            own = (own.0 + 1, own.1.saturating_add(member?.0.size()));
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
    for member in archive.members() {
        unique = (unique.0 + 1, unique.1.saturating_add(member?.size()));
    }
    let ratio = match unique.1 {
        0 => 1.0,
        bytes => sum.1 as f64 / bytes as f64,
    };
    let file =
        std::fs::metadata(&options.file).map_err(|e| Error::io("read", &options.file, &e))?;
    if options.format == TextOrJson::Json {
        shell.json(&json!({
            "format_version": FORMAT_VERSION,
            "file_bytes": file.len(),
            "views": all,
            "total": { "members": sum.0, "bytes": sum.1 },
            "unique": { "members": unique.0, "bytes": unique.1 },
            "sharing_ratio": ratio,
        }))?;
        return Ok(true);
    }
    rows.push(row("all views", sum));
    rows.push(row("each once", unique));
    let mut shown = columns(&rows);
    shown += &format!(
        "\nsharing ratio {ratio:.2}; file size {} bytes\n",
        file.len()
    );
    shell.data(shown)?;
    Ok(true)
}
