//! ELF files as the platform's own tools show them: the other side of differential tests.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::command::succeed;

/// Output of `readelf` with these options, one line per record.
pub fn readelf(options: &[&str], file: &Path) -> Result<String> {
    Ok(succeed(Command::new("readelf").arg("-W").args(options).arg(file))?.stdout)
}

/// The `DT_NEEDED` libraries of an image.
pub fn needed(file: &Path) -> Result<Vec<String>> {
    Ok(readelf(&["-d"], file)?
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(bracketed)
        .map(str::to_owned)
        .collect())
}

/// The soname of a shared library.
pub fn soname(file: &Path) -> Result<Option<String>> {
    Ok(readelf(&["-d"], file)?
        .lines()
        .find(|line| line.contains("(SONAME)"))
        .and_then(bracketed)
        .map(str::to_owned))
}

fn bracketed(line: &str) -> Option<&str> {
    Some(line.split_once('[')?.1.split_once(']')?.0)
}

/// Line of a symbol table, as `readelf` shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Name, with `@version` or `@@version`.
    pub name: String,
    /// `FUNC`, `OBJECT`, …
    pub kind: String,
    /// `GLOBAL`, `WEAK`, `LOCAL`, …
    pub binding: String,
    /// `DEFAULT`, `HIDDEN`, …
    pub visibility: String,
    /// Section, `UND` or `ABS`.
    pub section: String,
    /// Size in bytes.
    pub size: u64,
    /// Value.
    pub value: u64,
}

/// Rows of a symbol table: `--symbols` or `--dyn-syms`.
pub fn symbols(table: &str, file: &Path) -> Result<Vec<Row>> {
    let text = readelf(&[table], file)?;
    Ok(text.lines().filter_map(row).collect())
}

/// `Num: Value Size Type Bind Vis Ndx Name`; AArch64 may put `[VARIANT_PCS]` before the section, POWER `[<localentry>: 8]`.
fn row(line: &str) -> Option<Row> {
    let (number, rest) = line.trim_start().split_once(": ")?;
    number.parse::<u32>().ok()?;
    let words: Vec<&str> = rest
        .split_whitespace()
        .filter(|word| !word.starts_with('[') && !word.ends_with(']'))
        .collect();
    let [value, size, kind, binding, visibility, section, name, ..] = words[..] else {
        return None;
    };
    let size = match size.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => size.parse().ok()?,
    };
    Some(Row {
        name: name.to_owned(),
        kind: kind.to_owned(),
        binding: binding.to_owned(),
        visibility: visibility.to_owned(),
        section: section.to_owned(),
        size,
        value: u64::from_str_radix(value, 16).ok()?,
    })
}
