//! Sorts a symbol list, and writes it as text.

use std::fmt::Write as _;

use super::{Symbol, SymbolKind, SymbolList};
use crate::version::Version;

impl SymbolList {
    /// Text of the list; `parse` of it gives the same list, provided that
    /// [`is_name`](super::is_name) accepts all names.
    pub fn to_text(&self) -> String {
        list(self)
    }

    /// Sorts and removes duplicates, as [`SymbolList::symbols`] requires: of several entries of one
    /// name and version, a default version wins over a compat one, a function over data and a
    /// strong symbol over a weak one.
    pub fn normalise(&mut self) {
        self.symbols.sort_by(|a, b| {
            (a.sort_key(), a.compat, a.kind, a.weak).cmp(&(b.sort_key(), b.compat, b.kind, b.weak))
        });
        self.symbols
            .dedup_by(|later, first| later.sort_key() == first.sort_key());
    }
}

fn list(list: &SymbolList) -> String {
    let mut text = String::from("@gpustub-symbols 1\n");
    if let Some(soname) = &list.soname {
        line(&mut text, format_args!("@soname {soname}"));
    }
    if let Some(machine) = &list.machine {
        line(&mut text, format_args!("@machine {machine}"));
    }
    if !list.releases.is_empty() {
        text.push_str("@releases");
        for release in &list.releases {
            let _ = write!(text, " {release}");
        }
        text.push('\n');
    }
    for entry in &list.symbols {
        symbol(&mut text, entry, list.releases.last());
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

fn symbol(text: &mut String, symbol: &Symbol, latest: Option<&Version>) {
    text.push_str(&symbol.name);
    if let Some((name, _)) = SymbolKind::NAMES
        .iter()
        .find(|(_, kind)| *kind == symbol.kind)
    {
        let _ = write!(text, " kind={name}");
    }
    if symbol.weak {
        text.push_str(" weak");
    }
    if let Some(version) = &symbol.version {
        let _ = write!(text, " version={version}");
    }
    if symbol.compat {
        text.push_str(" compat");
    }
    if symbol.kind.is_data() && symbol.size != 0 {
        let _ = write!(text, " size={}", symbol.size);
    }
    for (attribute, is_set) in [("copied", symbol.copied), ("updates", symbol.updates)] {
        if is_set {
            let _ = write!(text, " {attribute}");
        }
    }
    if let Some(index) = symbol.callback {
        let _ = write!(text, " callback={index}");
    }
    if let Some(system) = symbol.system {
        let _ = write!(text, " system={system}");
    }
    if let Some(returns) = &symbol.returns {
        let _ = write!(text, " returns={returns}");
    }
    for (index, (from, to)) in symbol.releases.iter().enumerate() {
        text.push_str(if index == 0 { " releases=" } else { "," });
        // Open at the end, so that a new release without changes changes no line.
        let _ = match (from, to) {
            (from, to) if Some(to) == latest => write!(text, "{from}-"),
            (from, to) if from == to => write!(text, "{from}"),
            (from, to) => write!(text, "{from}-{to}"),
        };
    }
    text.push('\n');
}
