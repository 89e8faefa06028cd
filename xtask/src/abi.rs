//! `manifests/*.abi`, from the headers of all versions: ABI variants of each exported function.
//!
//! The packages are those of `tests/components/install DIR --headers`; without it, there are a few
//! versions, which the tests compare with the shipped files.

mod history;
#[cfg(test)]
mod imports;
pub mod programs;
mod recipes;
mod reviewed;
mod table;

use crate::manifests::diff;
use crate::recipes::{Options, root};
use history::History;
use recipes::{RECIPES, Recipe};

/// What every file says of itself.
const HEAD: &str = "\
ABI variants of exported functions, by version. Made by `cargo xtask abi`; not for editing.

`NAME VERSION=VARIANT ...`: from that version on the library's NAME has that ABI variant; `-`: it is
removed. In a group, equal numbers are the same variant, so that one can be bound in place of the
other. Listed are the groups in which a name changes its variant, takes the place of another, or in
which a macro means another name than before; every other function is stable.

The variant is the same if no memory is written beyond, and no argument misread by, what the types
of the caller's header hold. So these change it: another count, class or size of arguments; behind
a pointer, at any depth, a struct of another size, a field that moved, went away or took padding; an
enumerator with another number, unless both numbers keep what they meant under other names. These
do not: names of types, qualifiers, signs; a field renamed in place; a new field in bytes that the
older header names as reserved, or in a union that stays as large (callers set both to zero); new
enumerators, and those that count others (..._MAX). Two names that one library exports side by side
are never the same on account of their types alone: a reviewer must have decided so. A name that is
exported but no longer declared keeps the variant of its last declaration.

`@null-argument OLD NEW ARGUMENT`: in its group, a call of variant OLD is one of variant NEW with a null
pointer as this argument, counted from 0, and the caller's from there on behind it. The types show that
it fits (no other argument differs, and all go into registers), a reviewer that null keeps the effect.
";

/// `cargo xtask abi`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let Options {
        check, components, ..
    } = Options::parse("abi", arguments)?;
    let mut same = true;
    for recipe in RECIPES {
        let path = root()
            .join("manifests")
            .join(recipe.id)
            .with_extension("abi");
        let found = recipe.read(&components, |_| true)?;
        let text = recipe.text(&found);
        if check {
            let old =
                std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
            let changes = diff::lines(&old, &text);
            if !changes.is_empty() {
                print!(
                    "--- manifests/{}.abi\n+++ regenerated\n{changes}",
                    recipe.id
                );
                same = false;
            }
        } else {
            std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
        }
    }
    Ok(same)
}

impl Recipe {
    /// The file.
    fn text(&self, found: &History) -> String {
        let comments = format!("{HEAD}\nFrom {}\n", self.comment);
        found.table.to_text(&comments, &found.undeclared)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use gpustub_core::version::Version;

    use super::*;
    use table::{AbiTable, AbiVariant, Group};

    /// What a plain run of the tests has.
    pub const AT_HAND: [Version; 4] = [
        Version::new(11, 8),
        Version::new(12, 9),
        Version::new(13, 0),
        Version::new(13, 5),
    ];

    #[expect(
        clippy::disallowed_methods,
        reason = "the test says where the packages are"
    )]
    pub fn components() -> PathBuf {
        std::env::var("GPUSTUB_TEST_COMPONENTS")
            .expect("GPUSTUB_TEST_COMPONENTS names the folder of unpacked packages")
            .into()
    }

    pub fn shipped(recipe: &Recipe) -> String {
        let path = root()
            .join("manifests")
            .join(recipe.id)
            .with_extension("abi");
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn shipped_files_are_in_form() {
        assert!(RECIPES.is_sorted_by_key(|recipe| recipe.id));
        for recipe in RECIPES {
            assert!(recipe.versions.is_sorted());
            let table = AbiTable::parse(&shipped(recipe)).unwrap();
            let versions: Vec<_> = recipe
                .versions
                .iter()
                .map(|(a, b)| Version::new(*a, *b))
                .collect();
            assert_eq!(table.headers, versions, "{}", recipe.id);
            let mut seen = BTreeSet::new();
            for group in &table.groups {
                for (name, line) in &group.names {
                    assert!(seen.insert(name), "{name} stands in two groups");
                    assert!(line.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{name}");
                    assert!(line[0].1 != AbiVariant::Missing, "{name}");
                }
            }
        }
    }

    #[test]
    #[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their folder (tests/run)"]
    fn shipped_abi_tables_agree_with_the_headers_at_hand() {
        let components = components();
        for recipe in RECIPES {
            let found = recipe
                .read(&components, |version| AT_HAND.contains(&version))
                .unwrap()
                .table;
            let shipped = AbiTable::parse(&shipped(recipe)).unwrap();
            agree(&shipped, &found);
        }
    }

    /// Whether `all`, from many versions, says of some what `some` says, which is from these.
    fn agree(all: &AbiTable, some: &AbiTable) {
        let with = |table: &'_ AbiTable, name: &str| {
            table
                .groups
                .iter()
                .position(|group| group.names.contains_key(name))
        };
        for group in &all.groups {
            let Some(other) = group.names.keys().find_map(|name| with(some, name)) else {
                continue;
            };
            let other = &some.groups[other];
            // A name that none of the few headers declares is not in `some`.
            let known = Group {
                names: (group.names.iter())
                    .filter(|(name, _)| other.names.contains_key(*name))
                    .map(|(name, line)| (name.clone(), line.clone()))
                    .collect(),
                adapters: group.adapters.clone(),
                ..Group::default()
            };
            assert_eq!(
                known.adapted(&some.headers),
                other.adapted(&some.headers),
                "{:#?}",
                group.names
            );
            assert_eq!(
                known.partition(&some.headers),
                other.partition(&some.headers),
                "shipped: {:#?}\nfound: {:#?}",
                group.names,
                other.names
            );
        }
        for group in some.groups.iter().filter(|group| group.is_listed) {
            for name in group.names.keys() {
                assert!(
                    with(all, name).is_some(),
                    "{name} should be listed: {group:#?}"
                );
            }
        }
    }

    #[test]
    #[ignore = "needs the headers of all versions: GPUSTUB_TEST_COMPONENTS (tests/run --all)"]
    fn heavy_shipped_abi_tables_are_those_of_all_headers() {
        let components = components();
        for recipe in RECIPES {
            let found = recipe.read(&components, |_| true).unwrap();
            let changes = diff::lines(&shipped(recipe), &recipe.text(&found));
            assert!(
                changes.is_empty(),
                "`cargo xtask abi` changes {}:\n{changes}",
                recipe.id
            );
        }
    }
}
