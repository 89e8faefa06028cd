//! Descriptions of user-defined libraries, read from their files and headers.

mod system;

use std::collections::BTreeMap;
use std::path::Path;

use gpustub_cdecl::{ResultClass, Results};
use gpustub_core::library::{Returns, is_id};
use gpustub_core::manifest::Spanned;
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_image::ImageFormat;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;

use crate::c_headers::{self, HeaderRequest};
use crate::{cli, exports};
pub use system::LibraryFile;

/// A library as its file and headers describe it.
pub struct DescribedLibrary {
    /// The functions that can be stubbed, with their results as far as they are known.
    pub list: SymbolList,
    /// Exports without a stub: data and weak C++ symbols.
    pub left_out: Vec<Symbol>,
    /// Format of the file.
    pub format: ImageFormat,
    /// Results by the headers.
    pub results: Results,
    /// Functions for which the previous list and the headers have different results.
    pub kept: Vec<String>,
}

/// Rejects a name that cannot be the id of a library.
pub fn check_id(id: &str) -> Result<()> {
    if is_id(id) {
        return Ok(());
    }
    let message = format!("`{}` cannot be the name of a library", id.escape_debug());
    let help = "a name has lower-case letters, digits, `-` and `_`, and begins with a letter";
    Err(Error::new(message).help(help))
}

/// Reads a library. Attributes in the list `before` win over those of file and headers. `None`: the file cannot be read,
/// which was reported.
pub fn read(
    file: &Path,
    allowed_symbols: &[Spanned<String>],
    before: &SymbolList,
    headers: &cli::LibraryHeaders,
    shell: &mut Shell,
) -> Result<Option<DescribedLibrary>> {
    let is_allowed = |name: &str| allowed_symbols.iter().any(|symbol| symbol.value == name);
    let read = match exports::read(file, &is_allowed, before) {
        Ok((read, diagnostics)) => {
            shell.diagnostics(&diagnostics, &Sources::new())?;
            read
        }
        Err(error) => {
            shell.diagnostics(&[error.diagnostic()], &Sources::new())?;
            return Ok(None);
        }
    };
    let (mut list, format) = (read.exports.list, read.exports.format);
    let results = results(headers, &list, format)?;
    let kept = classify(&mut list, before, &results.classes);
    Ok(Some(DescribedLibrary {
        list,
        left_out: read.left_out,
        format,
        results,
        kept,
    }))
}

/// Results of the functions by their headers.
fn results(
    headers: &cli::LibraryHeaders,
    list: &SymbolList,
    format: ImageFormat,
) -> Result<Results> {
    if headers.paths.is_empty() {
        return Ok(Results::default());
    }
    let request = HeaderRequest {
        paths: &headers.paths,
        include: &headers.include,
        clang_arg: &headers.clang_arg,
        windows_machine: list
            .machine
            .as_deref()
            .filter(|_| format == ImageFormat::Pe),
        known: list.soname.as_deref().and_then(c_headers::known),
        option: "`--headers`",
        without: "results stay unknown",
    };
    let declarations = request.read(&|name| !list.lookup(name).is_empty())?;
    Ok(Results::new(&declarations))
}

/// Sets the classes of functions: those of the previous list, else those of the headers. Returns the
/// functions for which the two differ. Attributes that a file cannot have stay.
fn classify(
    list: &mut SymbolList,
    before: &SymbolList,
    classes: &BTreeMap<String, ResultClass>,
) -> Vec<String> {
    let mut kept = Vec::new();
    for symbol in &mut list.symbols {
        let lines = before.lookup(&symbol.name);
        if let Some(line) = lines.first() {
            symbol.updates = line.updates;
            symbol.callback = line.callback;
            symbol.system = line.system;
        }
        let old = lines.iter().find_map(|line| line.returns.clone());
        let new = classes.get(&symbol.name).and_then(|class| returns(*class));
        if old.is_some() && new.is_some() && old != new {
            kept.push(symbol.name.clone());
        }
        symbol.returns = old.or(new);
    }
    kept
}

/// `None`: the struct is larger than a stub fills.
fn returns(class: ResultClass) -> Option<Returns> {
    let text = match class {
        ResultClass::Void => "void".to_owned(),
        ResultClass::Status => "status".to_owned(),
        ResultClass::String => "string".to_owned(),
        ResultClass::Null => "null".to_owned(),
        ResultClass::Struct(size) => format!("zeroed-struct:{size}"),
        ResultClass::Hfa(size) => format!("zeroed-hfa:{size}"),
    };
    Returns::parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_wins_over_the_headers() {
        let parse_list =
            |text: &str| SymbolList::parse("x", &format!("@gpustub-symbols 1\n{text}")).0;
        let mut list = parse_list("a\nb\nc\nd\n");
        let before = parse_list(
            "a returns=null\nb returns=value:-1\nd updates callback=1 system=linux\nz returns=void\n",
        );
        let classes = BTreeMap::from([
            ("a".to_owned(), ResultClass::Null),
            ("b".to_owned(), ResultClass::Status),
            ("c".to_owned(), ResultClass::Hfa(32)),
        ]);
        assert_eq!(classify(&mut list, &before, &classes), ["b"]);
        assert_eq!(
            list.to_text(),
            "@gpustub-symbols 1\na returns=null\nb returns=value:-1\nc returns=zeroed-hfa:32\n\
             d updates callback=1 system=linux\n"
        );
    }
}
