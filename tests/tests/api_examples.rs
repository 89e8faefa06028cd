//! Examples in the documentation of the published crates: each public type, trait and function has one.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_tests::{Result, repository};
use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, UseTree, Visibility};

/// Crates whose interface is stable, and those that they export parts of.
const CRATES: [(&str, &str, bool); 5] = [
    ("gpustub", "crates/gpustub/src", true),
    ("gpustub_archive", "crates/archive/src", true),
    ("gpustub_build", "gpustub-build/src", true),
    ("gpustub_core", "crates/core/src", false),
    ("gpustub_engine", "crates/engine/src", false),
];

/// Crates of others whose items are exported; their documentation has the examples.
const OTHERS: [&str; 0] = [];

/// A module, the directory of the files of its modules, and that of the crate's root.
struct Module {
    items: Vec<Item>,
    directory: PathBuf,
    root: PathBuf,
}

/// Name of a public item, and whether its documentation has an example.
struct Documented {
    name: String,
    has_example: bool,
}

impl Module {
    fn of_crate(name: &str) -> Result<Option<Self>> {
        let found = CRATES.iter().find(|(crate_name, ..)| *crate_name == name);
        let directory = found.map(|(_, directory, _)| repository().join(directory));
        directory.map(|root| Self::read_root(&root)).transpose()
    }

    fn read_root(root: &Path) -> Result<Self> {
        Self::read(&root.join("lib.rs"), root.to_owned(), root)
    }

    fn read(file: &Path, directory: PathBuf, root: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let items = syn::parse_file(&text)?.items;
        let root = root.to_owned();
        Ok(Self {
            items,
            directory,
            root,
        })
    }

    /// Module of this name that this one declares.
    fn child(&self, name: &str) -> Result<Option<Self>> {
        let declared = self.items.iter().find_map(|item| match item {
            Item::Mod(module) if module.ident == name => Some(module),
            _ => None,
        });
        let Some(module) = declared else {
            return Ok(None);
        };
        let directory = self.directory.join(name);
        let Some((_, items)) = &module.content else {
            let file = directory.with_extension("rs");
            return Self::read(&file, directory, &self.root).map(Some);
        };
        let items = items.clone();
        let root = self.root.clone();
        Ok(Some(Self {
            items,
            directory,
            root,
        }))
    }

    /// Adds what the documentation lists for this module.
    fn list(&self, path: &str, found: &mut Vec<Documented>) -> Result<()> {
        for item in &self.items {
            match item {
                Item::Mod(module) if is_public(&module.vis) => {
                    let name = module.ident.to_string();
                    let child = self.child(&name)?.ok_or("no module")?;
                    child.list(&format!("{path}::{name}"), found)?;
                }
                Item::Use(exported) if is_public(&exported.vis) && !is_hidden(&exported.attrs) => {
                    for names in paths(&exported.tree)? {
                        if OTHERS.contains(&names[0].as_str()) {
                            continue;
                        }
                        let resolved = self.resolve(&names)?;
                        let resolved =
                            resolved.ok_or_else(|| format!("{path}: `{}`", names.join("::")))?;
                        found.extend(documented(path, &resolved));
                    }
                }
                _ => found.extend(documented(path, item)),
            }
        }
        Ok(())
    }

    /// Item that a path of a `use` names.
    fn resolve(&self, path: &[String]) -> Result<Option<Item>> {
        let (first, rest) = path.split_first().ok_or("empty path")?;
        if !rest.is_empty() {
            if first == "crate" {
                return Self::read_root(&self.root)?.resolve(rest);
            }
            let module = match self.child(first)? {
                None => Self::of_crate(first)?,
                child => child,
            };
            return module.map_or(Ok(None), |module| module.resolve(rest));
        }
        for item in &self.items {
            if let Item::Use(exported) = item {
                for names in paths(&exported.tree)? {
                    if names.last() == Some(first) && names.len() > 1 {
                        return self.resolve(&names);
                    }
                }
            }
            if name(item).is_some_and(|name| name == first) {
                return Ok(Some(item.clone()));
            }
        }
        Ok(None)
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether rustdoc leaves an item out.
fn is_hidden(attributes: &[Attribute]) -> bool {
    let mut lists = attributes
        .iter()
        .filter_map(|one| one.meta.require_list().ok());
    lists.any(|list| list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

/// Paths that a `use` declares.
fn paths(tree: &UseTree) -> Result<Vec<Vec<String>>> {
    Ok(match tree {
        UseTree::Path(path) => {
            let mut inner = paths(&path.tree)?;
            for names in &mut inner {
                names.insert(0, path.ident.to_string());
            }
            inner
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.ident.to_string()]],
        UseTree::Group(group) => {
            let inner: Result<Vec<_>> = group.items.iter().map(paths).collect();
            inner?.concat()
        }
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
    })
}

fn name(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Struct(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Const(item) => Some(&item.ident),
        Item::Static(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        _ => None,
    }
}

/// A public type, trait or function; constants and aliases need no example.
fn documented(path: &str, item: &Item) -> Option<Documented> {
    let (attributes, visibility) = match item {
        Item::Struct(item) => (&item.attrs, &item.vis),
        Item::Enum(item) => (&item.attrs, &item.vis),
        Item::Union(item) => (&item.attrs, &item.vis),
        Item::Trait(item) => (&item.attrs, &item.vis),
        Item::Fn(item) => (&item.attrs, &item.vis),
        _ => return None,
    };
    is_public(visibility).then(|| Documented {
        name: format!(
            "{path}::{}",
            name(item).map_or(String::new(), ToString::to_string)
        ),
        has_example: has_example(attributes),
    })
}

/// Whether the documentation has a block of Rust, which rustdoc compiles.
fn has_example(attributes: &[Attribute]) -> bool {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(line),
                    ..
                }) => Some(line.value()),
                _ => None,
            },
            _ => None,
        });
    // Every second fence ends a block.
    let fences = lines.filter_map(|line| line.trim().strip_prefix("```").map(str::to_owned));
    let mut languages = fences.step_by(2);
    languages.any(|language| language.is_empty() || language == "no_run")
}

#[test]
fn each_public_item_has_an_example() -> Result<()> {
    let mut found = Vec::new();
    for (name, _, is_stable) in CRATES {
        if is_stable {
            let root = Module::of_crate(name)?.ok_or("no crate")?;
            root.list(name, &mut found)?;
        }
    }
    assert!(found.len() > 30, "{} items were read", found.len());
    // A module in a module, and an item of another crate.
    let name = "gpustub_build::Env";
    assert!(found.iter().any(|item| item.name == name), "{name}");
    found.retain(|item| !item.has_example);
    let missing: Vec<&str> = found.iter().map(|item| item.name.as_str()).collect();
    assert!(missing.is_empty(), "no example: {}", missing.join("\n"));
    Ok(())
}

#[test]
fn only_blocks_of_rust_are_examples() -> Result<()> {
    for (comment, expected) in [
        ("/// ```\n/// f();\n/// ```", true),
        (
            "/// ```text\n/// f\n/// ```\n/// ```no_run\n/// f();\n/// ```",
            true,
        ),
        ("/// ```text\n/// f\n/// ```", false),
        ("/// Text.", false),
    ] {
        let function: syn::ItemFn = syn::parse_str(&format!("{comment}\nfn f() {{}}"))?;
        assert_eq!(has_example(&function.attrs), expected, "{comment}");
    }
    Ok(())
}
