//! `archive find`: finds the member that defines a symbol.

use gpustub_archive::{SuperArchive, View};
use gpustub_core::diag::{Diagnostic, UNKNOWN_SYMBOL};
use gpustub_core::suggest::nearest;
use gpustub_workspace::error::Error;
use gpustub_workspace::report::{Sources, json::FORMAT_VERSION};
use gpustub_workspace::shell::Shell;
use serde_json::json;

use super::open::{ArchiveResult, Failure, columns, layers, text, views};
use crate::cli::{ArchiveFind, TextOrJson};

/// Runs the command.
pub fn run(
    archive: &SuperArchive<'_>,
    options: &ArchiveFind,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    let views = match &options.best {
        Some(target) => vec![best_view(archive, target)?],
        None => views(archive, options.view.as_deref())?,
    };
    if options.symbols.is_empty() {
        let names = Vec::from_iter(views.iter().map(|view| text(view.name())));
        match options.format {
            TextOrJson::Text => shell.data(names.join("\n") + "\n")?,
            TextOrJson::Json => {
                shell.json(&json!({ "format_version": FORMAT_VERSION, "views": names }))?
            }
        }
        return Ok(true);
    }
    let mut missing: Vec<&String> = options.symbols.iter().collect();
    let (mut rows, mut matches) = (Vec::new(), Vec::new());
    for view in &views {
        let layers = layers(view)?;
        for name in &options.symbols {
            let Some(member) = view.find_symbol(name)? else {
                continue;
            };
            missing.retain(|symbol| *symbol != name);
            let layer = layers.get(member.layer()).map_or("", String::as_str);
            matches.push(json!({
                "view": text(view.name()),
                "symbol": name,
                "member": text(member.name()),
                "index": member.position(),
                "layer": layer,
            }));
            rows.push(vec![
                text(view.name()),
                name.clone(),
                text(member.name()),
                layer.to_owned(),
            ]);
        }
    }
    match options.format {
        TextOrJson::Text => shell.data(columns(&rows))?,
        TextOrJson::Json => {
            shell.json(&json!({ "format_version": FORMAT_VERSION, "matches": matches }))?
        }
    }
    if missing.is_empty() {
        return Ok(true);
    }
    let mut known = Vec::new();
    for view in &views {
        for symbol in view.symbols() {
            known.push(text(symbol?.name));
        }
    }
    for name in missing {
        let message = match views.as_slice() {
            [view] => format!("view `{}` has no symbol `{name}`", text(view.name())),
            _ => format!("no view has a symbol `{name}`"),
        };
        let mut diagnostic = Diagnostic::error(&UNKNOWN_SYMBOL, message);
        let near = nearest(name, known.iter().map(String::as_str));
        diagnostic.help =
            mangled(name, &known).or_else(|| near.map(|near| format!("did you mean `{near}`?")));
        shell.diagnostics(&[diagnostic], &Sources::new())?;
    }
    Ok(false)
}

/// Help for the name of a C++ function as its source has it, such as `ns::f(float)`.
fn mangled(name: &str, known: &[String]) -> Option<String> {
    /// Maximum number of names in the help.
    const MAX_NAMES: usize = 4;
    let path = name.split_once('(').map_or(name, |(path, _)| path);
    let identifier = path.rsplit(':').next().filter(|text| !text.is_empty())?;
    let mut symbols = Vec::from_iter(
        known
            .iter()
            .filter(|symbol| has_identifier(symbol, identifier)),
    );
    symbols.sort_unstable();
    symbols.dedup();
    let names = symbols
        .iter()
        .take(MAX_NAMES)
        .map(|symbol| format!("`{symbol}`"));
    let names = Vec::from_iter(names).join(", ");
    match symbols.len() {
        0 => None,
        1..=MAX_NAMES => Some(format!("C++ symbols have mangled names: {names}")),
        count => Some(format!(
            "C++ symbols have mangled names: {names} and {} more; `archive nm` lists all",
            count - MAX_NAMES
        )),
    }
}

/// Whether a mangled name contains an identifier (Itanium C++ ABI, 5.1.2: it follows its length).
fn has_identifier(symbol: &str, identifier: &str) -> bool {
    let Some(mut rest) = symbol.strip_prefix("_Z") else {
        return false;
    };
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some((name, behind)) = (rest[..digits].parse().ok())
            .and_then(|length| rest[digits..].split_at_checked(length))
        else {
            return false;
        };
        if name == identifier {
            return true;
        }
        rest = behind;
    }
    false
}

/// View that a program would choose.
fn best_view<'a>(archive: &SuperArchive<'a>, target: &str) -> ArchiveResult<View<'a>> {
    if let Some(view) = archive.best_view(target)? {
        return Ok(view);
    }
    let names = Vec::from_iter(views(archive, None)?.iter().map(|view| text(view.name())));
    let error = Error::new(format!("no view serves `{target}`"));
    Err(Failure::Command(
        error.help(format!("views are: {}", names.join(", "))),
    ))
}

#[cfg(test)]
mod tests {
    use super::mangled;

    #[test]
    fn names_of_cpp_functions_have_their_mangled_ones() {
        // By g++ 12: f(float), ns::f(int), af(float), f1(float), operator of a class f, and a function of C.
        let symbols = ["_Z1ff", "_ZN2ns1fEi", "_Z2aff", "_Z2f1f", "_ZN1fclEi", "f2"];
        let symbols = symbols.map(str::to_owned);
        let with = |names| Some(format!("C++ symbols have mangled names: {names}"));
        for (name, help) in [
            ("f", with("`_Z1ff`, `_ZN1fclEi`, `_ZN2ns1fEi`")),
            ("ns::f(int)", with("`_Z1ff`, `_ZN1fclEi`, `_ZN2ns1fEi`")),
            ("f1", with("`_Z2f1f`")),
            ("ff", None),
            ("f2", None),
            ("", None),
            ("::", None),
        ] {
            assert_eq!(mangled(name, &symbols), help, "{name}");
        }
        let many = ["_Z1fc", "_Z1fd", "_Z1ff", "_Z1fi", "_Z1fs"].map(str::to_owned);
        let help = mangled("f", &many).unwrap();
        assert!(
            help.ends_with("`_Z1fi` and 1 more; `archive nm` lists all"),
            "{help}"
        );
    }
}
