//! Providers of stubs in each linked image.
//!
//! Linkers merge the stubs of several packages, but reject those for incompatible headers. No archive is
//! a link error as well, or a cdylib with missing symbols. Both are detected here before the build.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_check::MISSING_PROVIDER;
use gpustub_core::abi_table::headers::HeadersMark;
use gpustub_core::diag::{DUPLICATE_FUNCTION, DYLIB_CRATE, Diagnostic, INCOMPATIBLE_STUBS, Origin};
use gpustub_core::ids::IndexVec;
use gpustub_core::library::Library;

use crate::package_index::PackageIndex;

/// Stubs that a package provides.
#[derive(Debug, Clone)]
pub struct ProvidedStubs {
    /// Mark of the headers.
    pub headers: HeadersMark,
    /// Declared version of the headers, human-readable.
    pub header_version: String,
    /// Location of the declaration.
    pub origin: Option<Origin>,
}

/// A package of the graph.
#[derive(Debug, Clone, Default)]
pub struct PackageNode {
    /// Name.
    pub name: String,
    /// Version, which distinguishes it from another package of its name.
    pub version: String,
    /// Libraries whose stubs the package provides.
    pub provides: BTreeMap<String, ProvidedStubs>,
    /// Libraries whose stubs another package has to provide.
    pub requires: BTreeMap<String, Option<Origin>>,
    /// Packages that its own code links; no build scripts, no procedural macros.
    pub dependencies: Vec<PackageIndex>,
    /// Packages that its tests and examples link in addition.
    pub dev_dependencies: Vec<PackageIndex>,
}

/// An output of the linker.
#[derive(Debug, Clone)]
pub struct LinkedImage {
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
pub fn analyse(
    nodes: &IndexVec<PackageIndex, PackageNode>,
    images: &[LinkedImage],
) -> Vec<Diagnostic> {
    // The images that each finding concerns.
    let mut incompatible: BTreeMap<(&str, [PackageIndex; 2]), Vec<&str>> = BTreeMap::new();
    let mut missing: BTreeMap<(PackageIndex, &str), Vec<&str>> = BTreeMap::new();
    let mut duplicate: BTreeMap<[Provided<'_>; 2], Vec<&str>> = BTreeMap::new();
    let mut diagnostics = Vec::new();
    for image in images {
        let closure = closure(nodes, image);
        let providers: Vec<PackageIndex> = closure
            .iter()
            .copied()
            .filter(|&package| !nodes[package].provides.is_empty())
            .collect();
        if image.dylib && !providers.is_empty() {
            diagnostics.push(dylib(&nodes[image.package], &nodes[providers[0]]));
        }
        if image.complete {
            for requirement in missing_stubs(nodes, &closure, &providers) {
                let images = missing.entry(requirement).or_default();
                images.push(&image.name);
            }
        }
        for conflict in incompatible_pairs(nodes, &providers) {
            let images = incompatible.entry(conflict).or_default();
            images.push(&image.name);
        }
        for conflict in duplicates(nodes, &providers) {
            duplicate.entry(conflict).or_default().push(&image.name);
        }
    }
    for ((library, pair), images) in &incompatible {
        let pair = pair.map(|package| &nodes[package]);
        diagnostics.push(incompatible_stubs(library, pair, images));
    }
    for (&pair, images) in &duplicate {
        diagnostics.push(duplicate_functions(nodes, pair, images));
    }
    for (&(package, library), images) in &missing {
        diagnostics.push(no_provider(&nodes[package], library, images));
    }
    diagnostics
}

/// Packages whose code is in the image.
fn closure(
    nodes: &IndexVec<PackageIndex, PackageNode>,
    image: &LinkedImage,
) -> BTreeSet<PackageIndex> {
    let mut closure = BTreeSet::from([image.package]);
    let mut open = vec![image.package];
    if image.with_dev {
        open.extend(&nodes[image.package].dev_dependencies);
        closure.extend(&nodes[image.package].dev_dependencies);
    }
    while let Some(package) = open.pop() {
        for &dependency in &nodes[package].dependencies {
            if closure.insert(dependency) {
                open.push(dependency);
            }
        }
    }
    closure
}

/// Libraries that packages require and none provides.
fn missing_stubs<'n>(
    nodes: &'n IndexVec<PackageIndex, PackageNode>,
    packages: &BTreeSet<PackageIndex>,
    providers: &[PackageIndex],
) -> Vec<(PackageIndex, &'n str)> {
    let mut missing = Vec::new();
    for &package in packages {
        for library in nodes[package].requires.keys() {
            let is_provided = providers
                .iter()
                .any(|&provider| nodes[provider].provides.contains_key(library));
            if !is_provided {
                missing.push((package, library.as_str()));
            }
        }
    }
    missing
}

/// Libraries for which a package's stubs are incompatible with those of the first package that has any.
fn incompatible_pairs<'n>(
    nodes: &'n IndexVec<PackageIndex, PackageNode>,
    providers: &[PackageIndex],
) -> Vec<(&'n str, [PackageIndex; 2])> {
    let mut first_providers: BTreeMap<&str, PackageIndex> = BTreeMap::new();
    let mut pairs = Vec::new();
    for &package in providers {
        for (library, stubs) in &nodes[package].provides {
            let first = *first_providers.entry(library).or_insert(package);
            let first_headers = &nodes[first].provides[library].headers;
            if !stubs.headers.is_compatible(first_headers) {
                pairs.push((library.as_str(), [first, package]));
            }
        }
    }
    pairs
}

/// A package, and a library whose stubs it provides.
type Provided<'n> = (PackageIndex, &'n str);

/// Different libraries of two packages that have functions of one name, such as NCCL and RCCL.
fn duplicates<'n>(
    nodes: &'n IndexVec<PackageIndex, PackageNode>,
    providers: &[PackageIndex],
) -> Vec<[Provided<'n>; 2]> {
    let mut provided: Vec<Provided<'n>> = Vec::new();
    for &package in providers {
        provided.extend(
            nodes[package]
                .provides
                .keys()
                .map(|id| (package, id.as_str())),
        );
    }
    let mut pairs = Vec::new();
    for (index, &first) in provided.iter().enumerate() {
        for &second in &provided[index + 1..] {
            // Those of one package are an error of its file.
            if first.0 != second.0
                && first.1 != second.1
                && common_function(first.1, second.1).is_some()
            {
                pairs.push([first, second]);
            }
        }
    }
    pairs
}

/// The first function that two shipped libraries have.
fn common_function(first: &str, second: &str) -> Option<&'static str> {
    let second = Library::builtin(second)?;
    let mut functions = Library::builtin(first)?.symbols.functions();
    functions
        .find(|function| !second.symbols.lookup(&function.name).is_empty())
        .map(|function| function.name.as_str())
}

fn duplicate_functions(
    nodes: &IndexVec<PackageIndex, PackageNode>,
    pair: [Provided<'_>; 2],
    images: &[&str],
) -> Diagnostic {
    let [(first, first_library), (second, library)] = pair;
    let message = format!(
        "`{}` brings stubs of {first_library} and `{}` of {library} into {}: both have {}",
        nodes[first].name,
        nodes[second].name,
        list(images),
        common_function(first_library, library).unwrap_or_default()
    );
    let help = "one program has one of the two: make them features that exclude each other, or build two programs";
    let error = Diagnostic::error(&DUPLICATE_FUNCTION, message).help(help);
    let declared = nodes[second].provides[library].origin.clone();
    with_origin(
        error,
        declared,
        &format!("has functions of {first_library}"),
    )
}

fn incompatible_stubs(library: &str, pair: [&PackageNode; 2], images: &[&str]) -> Diagnostic {
    let [first, second] = pair.map(|node| {
        let version = &node.provides[library].header_version;
        let package = if pair[0].name == pair[1].name {
            format!("{} {}", node.name, node.version)
        } else {
            node.name.clone()
        };
        format!("`{package}` (header version {version})")
    });
    let message = format!(
        "{first} and {second} bring incompatible stubs of {library} into {}",
        list(images)
    );
    let help =
        "compile both packages against compatible headers or bindings, and declare their version";
    let error = Diagnostic::error(&INCOMPATIBLE_STUBS, message).help(help);
    let declared = pair[1].provides[library].origin.clone();
    with_origin(error, declared, &format!("incompatible with {first}"))
}

fn no_provider(node: &PackageNode, library: &str, images: &[&str]) -> Diagnostic {
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

fn dylib(owner: &PackageNode, provider: &PackageNode) -> Diagnostic {
    let message = format!(
        "the library of `{}` is a Rust dylib, which would hide the stubs of `{}` from the programs that link it",
        owner.name, provider.name
    );
    let help = "use `crate-type = [\"rlib\"]` for Rust dependents, `[\"cdylib\"]` for others";
    let origin = provider
        .provides
        .values()
        .find_map(|stubs| stubs.origin.clone());
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

/// A few images by name, many by number.
fn list(images: &[&str]) -> String {
    match images {
        [] => String::new(),
        [image] => (*image).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, rest @ ..] => format!("{first} and {} more images", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use gpustub_core::ids::Id;
    use gpustub_core::library::Library;
    use gpustub_core::version::HeaderVersion;

    use super::*;

    /// Packages as `name provides requires dependencies dev-dependencies`, `-` for none. A provided
    /// library is `cudart=12` with the version of its headers.
    fn nodes(rows: &[&str]) -> IndexVec<PackageIndex, PackageNode> {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(' ').collect()).collect();
        let indices = |column: &str| -> Vec<PackageIndex> {
            words(column)
                .map(|name| rows.iter().position(|row| row[0] == name).unwrap())
                .map(PackageIndex::from_index)
                .collect()
        };
        rows.iter()
            .map(|row| PackageNode {
                name: row[0].into(),
                provides: words(row[1]).map(provided).collect(),
                requires: words(row[2]).map(|id| (id.to_owned(), None)).collect(),
                dependencies: indices(row[3]),
                dev_dependencies: indices(row[4]),
                ..PackageNode::default()
            })
            .collect()
    }

    /// Words of a column of [`nodes`].
    fn words(column: &str) -> impl Iterator<Item = &str> {
        column.split(',').filter(|word| *word != "-")
    }

    /// Stubs that a word of [`nodes`] names.
    fn provided(word: &str) -> (String, ProvidedStubs) {
        let (id, header) = word.split_once('=').unwrap_or((word, "none"));
        let stubs = ProvidedStubs {
            headers: HeadersMark::new(Library::builtin(id), HeaderVersion::parse(header)),
            header_version: header.to_owned(),
            origin: None,
        };
        (id.to_owned(), stubs)
    }

    fn image(package: usize) -> LinkedImage {
        let name = format!("bin `{package}`");
        LinkedImage {
            name,
            package: PackageIndex::from_index(package),
            with_dev: false,
            dylib: false,
            complete: true,
        }
    }

    fn messages(
        nodes: &IndexVec<PackageIndex, PackageNode>,
        images: &[LinkedImage],
    ) -> Vec<String> {
        analyse(nodes, images)
            .iter()
            .map(|diagnostic| format!("{}: {}", diagnostic.code.id, diagnostic.message))
            .collect()
    }

    #[test]
    fn compatible_providers_are_accepted_anywhere() {
        for rows in [
            ["app cudart=12 - lib -", "lib - cudart - -"],
            ["app - cudart lib -", "lib cudart - - -"],
            ["app - - lib -", "lib cudart - app -"],
            ["app cudart=12 - lib -", "lib cudart=12.4 - - -"],
            // No function of the driver has another ABI variant.
            ["app cuda=12 - lib -", "lib cuda=13,nvml - - -"],
            // Neither in a toolkit nor with an ABI table.
            ["app opencl - lib -", "lib opencl=3 - - -"],
        ] {
            assert_eq!(messages(&nodes(&rows), &[image(0)]), [""; 0], "{rows:?}");
        }
    }

    #[test]
    fn incompatible_stubs_are_one_error_for_all_their_images() {
        let nodes = nodes(&[
            "app cudart=12 - lib -",
            "lib cudart=13,nvrtc=13 - - -",
            "tool - - app -",
        ]);
        let images = [image(0), image(1), image(2)];
        assert_eq!(
            messages(&nodes, &images),
            [
                "incompatible-stubs: `app` (header version 12) and `lib` (header version 13) bring \
                 incompatible stubs of cudart into bin `0` and bin `2`"
            ]
        );
    }

    #[test]
    fn libraries_with_functions_of_one_name_are_an_error() {
        let nodes = nodes(&["app nccl=2 - lib -", "lib rccl=7 - - -"]);
        assert_eq!(
            messages(&nodes, &[image(0), image(1)]),
            [
                "duplicate-function: `app` brings stubs of nccl and `lib` of rccl into bin `0`: both have \
                 ncclAllGather"
            ]
        );
    }

    #[test]
    fn headers_that_are_declared_once_are_an_error() {
        let nodes = nodes(&["app cudart=12 - lib -", "lib cudart - - -"]);
        let messages = messages(&nodes, &[image(0)]);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(
            messages[0].contains("`lib` (header version none)"),
            "{messages:?}"
        );
    }

    #[test]
    fn dev_dependencies_count_in_tests_only() {
        let nodes = nodes(&["app cudart=12 - - fake", "fake cudart=13 - - -"]);
        assert_eq!(messages(&nodes, &[image(0)]), [""; 0]);
        let test = LinkedImage {
            with_dev: true,
            ..image(0)
        };
        assert_eq!(messages(&nodes, &[test]).len(), 1);
    }

    #[test]
    fn a_missing_provider_is_reported() {
        let nodes = nodes(&["app nvrtc - lib -", "lib - cudart - -"]);
        assert_eq!(
            messages(&nodes, &[image(0)]),
            [
                "missing-provider: `lib` requires the stubs of cudart, and nothing in bin `0` provides them"
            ]
        );
        let unit_tests = LinkedImage {
            complete: false,
            ..image(1)
        };
        assert_eq!(messages(&nodes, &[unit_tests]), [""; 0]);
    }

    #[test]
    fn a_dylib_hides_stubs() {
        let nodes = nodes(&["app - - lib -", "lib cudart - - -", "other - - - -"]);
        let images = [0, 2].map(|package| LinkedImage {
            dylib: true,
            ..image(package)
        });
        assert_eq!(messages(&nodes, &images).len(), 1);
        assert!(messages(&nodes, &images[..1])[0].starts_with("dylib-crate: "));
    }
}
