//! Providers of stubs: exactly one in each linked image.
//!
//! Two archives of stubs in one image would both define the run time, and the linker would reject
//! them or, worse, use the first of each. No archive is a link error, or a cdylib with missing
//! symbols. Both are detected here before the build.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::MISSING_PROVIDER;
use gpustub_core::diag::{DYLIB_CRATE, Diagnostic, MULTIPLE_PROVIDERS, Origin};
use gpustub_core::ids::IndexVec;

use crate::package_index::PackageIndex;

/// A package of the graph.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Version, which distinguishes it from another package of its name.
    pub version: String,
    /// Whether another version with device code exists, which is a separate error.
    pub twice: bool,
    /// Libraries whose stubs the package provides, with the location of the declaration.
    pub provides: BTreeMap<String, Option<Origin>>,
    /// Libraries whose stubs another package has to provide.
    pub requires: BTreeMap<String, Option<Origin>>,
    /// Packages that its own code links; no build scripts, no procedural macros.
    pub dependencies: Vec<PackageIndex>,
    /// Packages that its tests and examples link in addition.
    pub dev_dependencies: Vec<PackageIndex>,
}

/// An output of the linker.
#[derive(Debug, Clone)]
pub struct Image {
    /// Human-readable name: ``bin `hello` ``.
    pub name: String,
    /// Package that owns it.
    pub package: PackageIndex,
    /// Whether dev-dependencies are linked: tests, examples and benchmarks.
    pub with_dev: bool,
    /// A Rust dylib.
    pub dylib: bool,
    /// Whether all symbols must be defined: not for the unit tests of a library whose stubs other
    /// packages provide.
    pub complete: bool,
}

/// Reports errors in the images of a workspace.
pub fn analyse(nodes: &IndexVec<PackageIndex, Node>, images: &[Image]) -> Vec<Diagnostic> {
    // Findings by their providers, with the images that they concern.
    let mut two: BTreeMap<Vec<PackageIndex>, Vec<&str>> = BTreeMap::new();
    let mut none: BTreeMap<(PackageIndex, &str), Vec<&str>> = BTreeMap::new();
    let mut dylibs = Vec::new();
    for image in images {
        let closure = closure(nodes, image);
        let providers: Vec<PackageIndex> = closure
            .iter()
            .copied()
            .filter(|&n| !nodes[n].provides.is_empty())
            .collect();
        if image.dylib && !providers.is_empty() {
            dylibs.push(dylib(&nodes[image.package], &nodes[providers[0]]));
        }
        for &node in &closure {
            for library in nodes[node].requires.keys() {
                if image.complete
                    && !providers
                        .iter()
                        .any(|&p| nodes[p].provides.contains_key(library))
                {
                    none.entry((node, library)).or_default().push(&image.name);
                }
            }
        }
        let mut all = providers.iter().map(|&p| &nodes[p]);
        let first = all.next();
        let is_reported =
            all.all(|node| node.twice && first.is_some_and(|one| one.name == node.name));
        if !is_reported {
            two.entry(providers).or_default().push(&image.name);
        }
    }
    let two = two.iter().map(|(providers, images)| {
        two_providers(
            &providers.iter().map(|&p| &nodes[p]).collect::<Vec<_>>(),
            images,
        )
    });
    let none = none
        .iter()
        .map(|((node, library), images)| no_provider(&nodes[*node], library, images));
    dylibs.into_iter().chain(two).chain(none).collect()
}

/// Packages whose code is in the image.
fn closure(nodes: &IndexVec<PackageIndex, Node>, image: &Image) -> BTreeSet<PackageIndex> {
    let mut seen = BTreeSet::from([image.package]);
    let mut open = vec![image.package];
    if image.with_dev {
        open.extend(&nodes[image.package].dev_dependencies);
        seen.extend(&nodes[image.package].dev_dependencies);
    }
    while let Some(node) = open.pop() {
        for &next in &nodes[node].dependencies {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

fn two_providers(providers: &[&Node], images: &[&str]) -> Diagnostic {
    let called = |node: &Node| {
        let same = providers.iter().filter(|other| other.name == node.name);
        match same.count() {
            0 | 1 => format!("`{}`", node.name),
            _ => format!("`{} {}`", node.name, node.version),
        }
    };
    let who: Vec<String> = providers
        .iter()
        .map(|node| format!("{} ({})", called(node), names(node.provides.keys())))
        .collect();
    let message = format!(
        "{} packages provide stubs to {}: {}",
        who.len(),
        list(images),
        who.join(", ")
    );
    // Libraries that only the others provide would lose their stubs, so all move to one package.
    let (keep, others) = (providers[0], &providers[1..]);
    let missing: BTreeSet<&String> = others
        .iter()
        .flat_map(|node| node.provides.keys())
        .filter(|library| !keep.provides.contains_key(*library))
        .collect();
    let mut help = format!(
        "let one do it, for example {}, and set `provide = false` for each library of {}",
        called(keep),
        others
            .iter()
            .map(|node| called(node))
            .collect::<Vec<_>>()
            .join(" and "),
    );
    if !missing.is_empty() {
        help.push_str(&format!(
            "; {} then has to declare {}, too",
            called(keep),
            names(missing)
        ));
    }
    let origin = others
        .iter()
        .flat_map(|node| node.provides.values())
        .find_map(Option::clone);
    with_origin(
        Diagnostic::error(&MULTIPLE_PROVIDERS, message).help(help),
        origin,
        "provided a second time",
    )
}

fn no_provider(node: &Node, library: &str, images: &[&str]) -> Diagnostic {
    let message = format!(
        "`{}` requires the stubs of {library}, and nothing in {} provides them",
        node.name,
        list(images)
    );
    let help = format!("declare `[stub.{library}]` in the package that owns the image");
    let origin = node.requires.get(library).cloned().flatten();
    with_origin(
        Diagnostic::warning(&MISSING_PROVIDER.code, message).help(help),
        origin,
        "left to another package",
    )
}

fn dylib(owner: &Node, provider: &Node) -> Diagnostic {
    let message = format!(
        "the library of `{}` is a Rust dylib, which would hide the stubs of `{}` from the programs that link it",
        owner.name, provider.name
    );
    let help = "use `crate-type = [\"rlib\"]` for Rust dependents, `[\"cdylib\"]` for others";
    let origin = provider.provides.values().find_map(Option::clone);
    let error = Diagnostic::error(&DYLIB_CRATE, message).help(help);
    with_origin(error, origin, "provided here")
}

fn with_origin(mut diagnostic: Diagnostic, origin: Option<Origin>, label: &str) -> Diagnostic {
    if origin.is_some() {
        diagnostic.label = label.into();
    }
    diagnostic.origin = origin;
    diagnostic
}

fn names<'a>(ids: impl IntoIterator<Item = &'a String>) -> String {
    ids.into_iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A few images by name, many by number.
fn list(images: &[&str]) -> String {
    match images {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [first, rest @ ..] => format!("{first} and {} more images", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use gpustub_core::ids::Id;

    use super::*;

    /// Packages as `name provides requires dependencies dev-dependencies`, `-` for none.
    fn nodes(rows: &[&str]) -> IndexVec<PackageIndex, Node> {
        let words = |text: &str| -> Vec<String> {
            text.split(',')
                .filter(|word| *word != "-")
                .map(str::to_owned)
                .collect()
        };
        let all: Vec<Vec<&str>> = rows.iter().map(|row| row.split(' ').collect()).collect();
        let position = |name: &String| all.iter().position(|row| row[0] == name).unwrap();
        let index = |name: &String| PackageIndex::from_index(position(name));
        let stubs = |text: &str| words(text).into_iter().map(|id| (id, None)).collect();
        all.iter()
            .map(|row| Node {
                name: row[0].into(),
                provides: stubs(row[1]),
                requires: stubs(row[2]),
                dependencies: words(row[3]).iter().map(index).collect(),
                dev_dependencies: words(row[4]).iter().map(index).collect(),
                ..Node::default()
            })
            .collect()
    }

    fn image(package: usize) -> Image {
        let name = format!("bin `{package}`");
        Image {
            name,
            package: PackageIndex::from_index(package),
            with_dev: false,
            dylib: false,
            complete: true,
        }
    }

    fn found(nodes: &IndexVec<PackageIndex, Node>, images: &[Image]) -> Vec<String> {
        analyse(nodes, images)
            .iter()
            .map(|d| format!("{}: {}", d.code.id, d.message))
            .collect()
    }

    #[test]
    fn one_provider_is_accepted_anywhere() {
        for rows in [
            ["app cudart - lib -", "lib - cudart - -"],
            ["app - cudart lib -", "lib cudart - - -"],
            ["app - - lib -", "lib cudart - app -"],
        ] {
            assert_eq!(found(&nodes(&rows), &[image(0)]), [""; 0]);
        }
    }

    #[test]
    fn two_providers_are_one_error_for_all_their_images() {
        let nodes = nodes(&[
            "app cuda - lib -",
            "lib cudart,nvrtc - - -",
            "tool - - app -",
        ]);
        let images = [image(0), image(1), image(2)];
        let found = analyse(&nodes, &images);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].message,
            "2 packages provide stubs to bin `0` and bin `2`: `app` (cuda), `lib` (cudart, nvrtc)"
        );
        assert_eq!(
            found[0].help.as_deref().unwrap(),
            "let one do it, for example `app`, and set `provide = false` for each library of \
             `lib`; `app` then has to declare cudart, nvrtc, too"
        );
    }

    #[test]
    fn dev_dependencies_count_in_tests_only() {
        let nodes = nodes(&["app cuda - - fake", "fake cuda - - -"]);
        assert_eq!(found(&nodes, &[image(0)]), [""; 0]);
        let test = Image {
            with_dev: true,
            ..image(0)
        };
        assert_eq!(
            found(&nodes, &[test]),
            [
                "multiple-providers: 2 packages provide stubs to bin `0`: `app` (cuda), `fake` (cuda)"
            ]
        );
    }

    #[test]
    fn a_missing_provider_is_reported() {
        let nodes = nodes(&["app nvrtc - lib -", "lib - cudart - -"]);
        assert_eq!(
            found(&nodes, &[image(0)]),
            [
                "missing-provider: `lib` requires the stubs of cudart, and nothing in bin `0` provides them"
            ]
        );
        let unit_tests = Image {
            complete: false,
            ..image(1)
        };
        assert_eq!(found(&nodes, &[unit_tests]), [""; 0]);
    }

    #[test]
    fn a_dylib_hides_stubs() {
        let nodes = nodes(&["app - - lib -", "lib cudart - - -", "other - - - -"]);
        let dylib = |package| Image {
            dylib: true,
            ..image(package)
        };
        assert_eq!(found(&nodes, &[dylib(0), dylib(2)]).len(), 1);
        assert!(found(&nodes, &[dylib(0)])[0].starts_with("dylib-crate: "));
    }
}
