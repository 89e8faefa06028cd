//! `cargo gpustub symbols`: symbols that a library exports.

use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList};
use gpustub_image::{SymbolRequirements, read_library_symbols_file, to_ifs};
use gpustub_workspace::error::Result;
use gpustub_workspace::report::{Sources, json::FORMAT_VERSION};
use gpustub_workspace::shell::Shell;
use serde_json::json;

use crate::cli::{self, SymbolsFormat};
use crate::exports;

/// Runs the command.
pub fn run(options: &cli::Symbols, shell: &mut Shell) -> Result<bool> {
    let read_options = SymbolRequirements {
        expect_machine: options.machine.as_deref(),
        require: &options.require,
    };
    match read_library_symbols_file(&options.file, read_options) {
        Ok(list) => {
            shell.data(match options.format {
                SymbolsFormat::List => list.to_text(),
                SymbolsFormat::Ifs => to_ifs(&list),
                SymbolsFormat::Json => json(&list),
            })?;
            let warning = exports::exported_data(&options.file, &list);
            shell.diagnostics(&Vec::from_iter(warning), &Sources::new())?;
            Ok(true)
        }
        Err(error) => {
            shell.diagnostics(&[error.diagnostic()], &Sources::new())?;
            Ok(false)
        }
    }
}

/// One document, with every symbol on a separate line.
fn json(list: &SymbolList) -> String {
    let mut text = json!({
        "format_version": FORMAT_VERSION,
        "soname": list.soname,
        "machine": list.machine,
    })
    .to_string();
    // Without the last brace.
    text.truncate(text.len() - 1);
    let rows: Vec<String> = list
        .symbols
        .iter()
        .map(|symbol| format!("  {}", row(symbol)))
        .collect();
    format!("{text},\"symbols\":[\n{}\n]}}\n", rows.join(",\n"))
}

fn row(symbol: &Symbol) -> serde_json::Value {
    let kind = match symbol.kind {
        SymbolKind::Function => "function",
        SymbolKind::Ifunc => "ifunc",
        SymbolKind::NoType => "notype",
        SymbolKind::Object => "object",
        SymbolKind::Tls => "tls",
    };
    let mut row = json!({ "name": symbol.name, "kind": kind });
    if symbol.weak {
        row["weak"] = true.into();
    }
    if let Some(version) = &symbol.version {
        row["version"] = version.as_str().into();
        row["default"] = (!symbol.compat).into();
    }
    if symbol.size > 0 {
        row["size"] = symbol.size.into();
    }
    row
}
