//! Names of a library on the system that its file is for, and lists of functions on several systems.

use std::path::Path;

use gpustub_core::symbols::{SymbolList, is_name};
use gpustub_image::ImageFormat;
use gpustub_workspace::error::{Error, Result};
use toml_edit::{Array, InlineTable};

/// A file of a library, and its list.
pub struct LibraryFile<'a> {
    pub file: &'a Path,
    pub format: ImageFormat,
    pub list: &'a SymbolList,
}

impl LibraryFile<'_> {
    fn file_name(&self) -> String {
        let name = self.file.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Key of `load-names`.
    pub fn system(&self) -> &'static str {
        match self.format {
            ImageFormat::Elf => "linux",
            ImageFormat::Pe => "windows",
        }
    }

    /// Triple of a target of the system. `None`: the host.
    pub fn triple(&self) -> Option<&'static str> {
        match self.format {
            ImageFormat::Elf => None,
            ImageFormat::Pe => Some("x86_64-pc-windows-gnu"),
        }
    }

    /// Name to request from the loader. That of Windows compares the names of files, not those in the export tables.
    pub fn load_name(&self) -> String {
        let name = self.file_name();
        match &self.list.soname {
            Some(soname) if !is_dll(&name) => soname.clone(),
            _ => name,
        }
    }

    /// Whether the loader of the system regards two names as the same.
    pub fn is_same_name(&self, a: &str, b: &str) -> bool {
        a == b || (self.format == ImageFormat::Pe && a.eq_ignore_ascii_case(b))
    }

    /// The name to request from the loader, unless a symbol list cannot have it.
    pub fn usable_name(&self, id: &str) -> Result<String> {
        let name = self.load_name();
        if is_name(&name) {
            return Ok(name);
        }
        let message = format!(
            "`{}` has the name `{}`: names in symbol lists and after `-l` have no spaces",
            self.file.display(),
            name.escape_debug()
        );
        Err(Error::new(message).help(format!(
        "give a copy with a name without spaces, then write the name to `load-names` of `[stub.{id}]`"
    )))
    }

    /// Value of `load-names`.
    pub fn load_names(&self) -> InlineTable {
        InlineTable::from_iter([(self.system(), Array::from_iter([self.load_name()]))])
    }

    /// Name after `-l`, by the usual names of files.
    pub fn link_name(&self) -> Option<String> {
        let name = match self.format {
            ImageFormat::Elf => self.load_name(),
            ImageFormat::Pe => self.file_name(),
        };
        link_name(&name).map(str::to_owned)
    }

    /// The list for all systems, if the previous list is that of another system: its entries, and the others of this
    /// one.
    pub fn merged(&self, before: &SymbolList) -> Option<SymbolList> {
        let soname = before.soname.as_deref()?;
        if is_dll(soname) == (self.format == ImageFormat::Pe) {
            return None;
        }
        let mut merged = before.clone();
        for symbol in &mut merged.symbols {
            if let (None, Some(same)) = (&symbol.returns, self.list.lookup(&symbol.name).first()) {
                symbol.returns.clone_from(&same.returns);
            }
        }
        let others = self.list.symbols.iter();
        let others = others.filter(|symbol| before.lookup(&symbol.name).is_empty());
        merged.symbols.extend(others.cloned());
        merged.normalise();
        Some(merged)
    }
}

fn is_dll(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("dll"))
}

/// Name after `-l` of `libacme.so.3`, `acme64_3.dll`, `acme.lib` and `libacme.dll.a`. A DLL has numbers that its import
/// library lacks.
fn link_name(name: &str) -> Option<&str> {
    if let Some(rest) = name.strip_prefix("lib")
        && let Some((stem, _)) = rest.split_once(".so")
    {
        return Some(stem);
    }
    let (stem, _) = name.split_once('.')?;
    let stem = stem.strip_prefix("lib").unwrap_or(stem);
    if !is_dll(name) {
        return Some(stem);
    }
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '_' | '-');
    Some(stem.trim_end_matches(is_number)).filter(|stem| !stem.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_of_files() {
        for (name, expected) in [
            ("libacme.so.3", Some("acme")),
            ("acme.dll", Some("acme")),
            ("acme64_3.DLL", Some("acme")),
            ("libacme-3.dll", Some("acme")),
            ("nvJitLink_120_0.dll", Some("nvJitLink")),
            ("acme.lib", Some("acme")),
            ("vulkan-1.lib", Some("vulkan-1")),
            ("libacme.dll.a", Some("acme")),
            ("64.dll", None),
            ("acme", None),
        ] {
            assert_eq!(link_name(name), expected, "{name}");
        }
    }

    #[test]
    fn lists_of_two_systems_are_merged() {
        let parse_list =
            |text: &str| SymbolList::parse("x", &format!("@gpustub-symbols 1\n{text}")).0;
        let merged = |file: &str, list: &str, before: &str, format| {
            let library = LibraryFile {
                file: Path::new(file),
                format,
                list: &parse_list(list),
            };
            library
                .merged(&parse_list(before))
                .map(|list| list.to_text())
        };
        let linux = "@soname libacme.so.3\nacmeA weak\nacmeB\n";
        let windows = "@soname acme.dll\nacmeB returns=void\nacmeC\n";
        let both = merged("acme.dll", windows, linux, ImageFormat::Pe);
        let both = both.expect("lists of two systems");
        assert!(
            both.starts_with("@gpustub-symbols 1\n@soname libacme.so.3\nacmeA"),
            "{both}"
        );
        assert!(both.ends_with("\nacmeB returns=void\nacmeC\n"), "{both}");
        assert_eq!(merged("a.dll", windows, windows, ImageFormat::Pe), None);
        assert_eq!(merged("a.so", linux, linux, ImageFormat::Elf), None);
        assert_eq!(merged("a.so", linux, "acmeD\n", ImageFormat::Elf), None);
    }
}
