//! libclc for its families.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
use gpustub_tests::bitcode::{CHAINS, Layer, SOME, layers, split_chain};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::naive::{Views, build, build_with, compare};

/// Each family with all its functions; a view is its archive, and those of the families before it.
fn whole(chains: &[&[&str]], directory: &Path, least: usize) -> Result<Whole> {
    let mut views = Views::new();
    for chain in chains {
        for (at, family) in chain.iter().enumerate() {
            Layer::from_directory(family, &directory.join(family))?.archive(directory)?;
            views.push((*family, chain[at..].to_vec()));
        }
    }
    let all = build(directory, &views)?;
    let compared = compare(directory, &views)?;
    assert!(compared >= least, "{compared} symbols");

    let canonical = directory.join("canonical.a");
    build_with(directory, &views, &canonical, &["--canonical-bitcode"])?;
    let defined = |file: &Path| -> Result<Vec<usize>> {
        let bytes = fs::read(file)?;
        let failed = |e: gpustub_archive::Error| e.to_string();
        let archive = SuperArchive::parse(&bytes).map_err(failed)?;
        let views = views.iter().map(|(name, _)| {
            let view = archive.view(name).map_err(failed)?.ok_or(*name)?;
            Ok(view.symbol_count())
        });
        views.collect()
    };
    assert_eq!(defined(&canonical)?, defined(&all)?);
    let sizes = Sizes::measure(&all, chains.concat().into_iter(), directory)?;
    Ok(Whole {
        canonical: fs::metadata(&canonical)?.len(),
        sizes,
    })
}

/// Each family with the functions that it overrides, and the functions common to all once. Each
/// view has its family's definition of each symbol.
fn overriding(chains: &[&[&str]], directory: &Path, least: usize) -> Result<Sizes> {
    let mut names = Vec::new();
    for chain in chains {
        let layers = layers(chain, directory)?;
        for layer in &layers {
            layer.archive(directory)?;
        }
        names.push(
            layers
                .into_iter()
                .map(|layer| layer.name)
                .collect::<Vec<_>>(),
        );
    }
    let mut views = Views::new();
    // Family whose directory has the members of a layer.
    let mut origins = BTreeMap::new();
    for (chain, names) in chains.iter().zip(&names) {
        for (at, family) in chain.iter().enumerate() {
            views.push((*family, names[at..].iter().map(String::as_str).collect()));
            origins.insert(names[at].as_bytes(), *family);
        }
        origins.insert(names[chain.len()].as_bytes(), chain[chain.len() - 1]);
    }
    let all = build(directory, &views)?;
    let compared = compare(directory, &views)?;
    assert!(compared >= least, "{compared} symbols");

    let bytes = fs::read(&all)?;
    let failed = |e: gpustub_archive::Error| e.to_string();
    let archive = SuperArchive::parse(&bytes).map_err(failed)?;
    for (family, _) in &views {
        let view = archive.view(family).map_err(failed)?.ok_or(*family)?;
        let layers: Vec<_> = view.layers().collect::<Result<_, _>>().map_err(failed)?;
        let own = Layer::from_directory(family, &directory.join(family))?;
        assert_eq!(view.symbol_count(), own.files.len(), "{family}");
        for file in &own.files {
            let symbol = file.file_stem().unwrap_or_default().to_string_lossy();
            let member = view
                .find_symbol(symbol.as_bytes())
                .map_err(failed)?
                .ok_or(&*symbol)?;
            let origin = origins[layers[member.layer()].name];
            let name = file.file_name().unwrap_or_default();
            let plain = |family: &str| fs::read(directory.join(family).join("plain").join(name));
            assert_eq!(
                member.data().map_err(failed)?,
                fs::read(directory.join(origin).join(name))?
            );
            assert!(
                plain(family)? == plain(origin)?,
                "{family}: {symbol} of {origin}"
            );
        }
    }
    let names = names.iter().flatten().map(|name| &name[..]);
    Sizes::measure(&all, names, directory)
}

#[test]
#[ignore = "needs libclc, llvm: ./tests/run"]
fn views_of_some_of_libclc_are_what_the_layers_have() -> Result<()> {
    let dir = scratch()?;
    let chains = [&CHAINS[0][1..]];
    split_chain(chains[0], dir.path(), Some(SOME))?;
    whole(&chains, dir.path(), 3 * 200)?;
    overriding(&chains, dir.path(), 3 * 200)?;
    Ok(())
}

#[test]
#[ignore = "needs libclc, llvm, and minutes: ./tests/run --all"]
fn heavy_views_of_all_of_libclc_are_what_the_layers_have() -> Result<()> {
    let dir = scratch()?;
    for chain in CHAINS {
        split_chain(chain, dir.path(), None)?;
    }
    let directory = dir.path();
    let whole = whole(&CHAINS, directory, 100_000)?;
    let zip = zip(&CHAINS.concat(), directory)?;
    let plain = plain(&CHAINS.concat(), directory)?;
    let overriding = overriding(&CHAINS, directory, 100_000)?;
    // Row for BENCHMARKS.md.
    let row = |what: &str, bytes: u64| println!("{:7.1} MB  {what}", bytes as f64 / 1e6);
    row(
        "an archive each, or all in a fat file",
        whole.sizes.archives,
    );
    row("zip -9 of these", zip);
    row("super-archive of these", whole.sizes.all);
    row("the same, canonical", whole.canonical);
    row(
        "without the processors' names: an archive each",
        plain.archives,
    );
    row("super-archive of these", plain.all);
    row(
        "what families override, and what is common: an archive for each layer",
        overriding.archives,
    );
    row("super-archive of these", overriding.all);
    // Tables cost little if no member is shared, and equal members are stored once.
    for sizes in [&whole.sizes, &plain, &overriding] {
        assert!(sizes.all < sizes.archives + sizes.archives / 50);
    }
    assert!(whole.canonical < whole.sizes.all && whole.canonical <= plain.all);
    assert!(overriding.all < whole.sizes.all);
    Ok(())
}

/// Sizes if each family has all its functions.
struct Whole {
    sizes: Sizes,
    /// Bytes of a super-archive of the canonical bitcode.
    canonical: u64,
}

/// Sizes in bytes.
struct Sizes {
    /// Size of the super-archive.
    all: u64,
    /// Total size of the archives that it was built from.
    archives: u64,
}

impl Sizes {
    fn measure<'a>(
        all: &Path,
        names: impl Iterator<Item = &'a str>,
        directory: &Path,
    ) -> Result<Self> {
        let mut archives = 0;
        for name in names {
            archives += fs::metadata(directory.join(format!("{name}.a")))?.len();
        }
        let all = fs::metadata(all)?.len();
        Ok(Self { all, archives })
    }
}

/// Each family without processor attributes: equal members are stored once, without layers.
fn plain(families: &[&str], directory: &Path) -> Result<Sizes> {
    let plain = directory.join("plain");
    fs::create_dir(&plain)?;
    for family in families {
        Layer::from_directory(family, &directory.join(family).join("plain"))?.archive(&plain)?;
    }
    let views = families
        .iter()
        .map(|family| (*family, vec![*family]))
        .collect();
    let all = build(&plain, &views)?;
    Sizes::measure(&all, families.iter().copied(), &plain)
}

/// Size of the packed archives, one for each family.
fn zip(families: &[&str], directory: &Path) -> Result<u64> {
    let mut python = Command::new("python3");
    python.current_dir(directory).args(["-c", ZIP]);
    python.args(families.iter().map(|family| format!("{family}.a")));
    succeed(&mut python)?;
    Ok(fs::metadata(directory.join("all.zip"))?.len())
}

const ZIP: &str = "import sys, zipfile
with zipfile.ZipFile('all.zip', 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as zip:
    for name in sys.argv[1:]: zip.write(name)";
