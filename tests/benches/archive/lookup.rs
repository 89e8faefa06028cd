//! Lookup of one symbol in a view, compared with readers of ordinary archives.

use std::collections::HashMap;
use std::ffi::CStr;
use std::hint::black_box;
use std::time::Instant;

use gpustub_archive::SuperArchive;
use gpustub_archive::hash::hash_bytes;
use gpustub_tests::Result;

use crate::{Library, families, least, median, plan, views};

const ROUNDS: usize = 31;
/// Number of families, with one view each.
const FAMILIES: usize = 8;

pub fn print(libraries: &[Library]) -> Result<()> {
    println!("\nlookup: ns of one symbol, median (least) of {ROUNDS} rounds over all of a view");
    for library in libraries {
        let families = families(library, FAMILIES, 500);
        let request = views(&families)?;
        let mut bytes = Vec::new();
        plan(&request)?.write(&mut bytes)?;
        compare(library.name, &bytes)?;
    }
    Ok(())
}

fn compare(name: &str, bytes: &[u8]) -> Result<()> {
    let failed = |e: gpustub_archive::Error| format!("{name}: {e}");
    let archive = SuperArchive::parse(bytes).map_err(failed)?;
    let view = archive.view("gfx0").map_err(failed)?.ok_or("gfx0")?;
    let mut names: Vec<&[u8]> = Vec::new();
    for symbol in view.symbols() {
        names.push(symbol.map_err(failed)?.name);
    }
    // In an order unrelated to the tables, and not in the memory of the tables.
    names.sort_by_key(|name| hash_bytes(&[name, &b"order"[..]].concat()));
    let hits: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
    let misses: Vec<Vec<u8>> = names
        .iter()
        .map(|name| [name, &b"?"[..]].concat())
        .collect();

    let index = Index::parse(bytes)?;
    let mut build = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(index.map());
        build.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let map = index.map();
    let mut open = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..1000 {
            let archive = SuperArchive::parse(black_box(bytes)).map_err(failed)?;
            black_box(archive.view(black_box("gfx0")).map_err(failed)?);
        }
        open.push(start.elapsed().as_secs_f64() * 1e6);
    }

    let find = |name: &[u8]| view.find_symbol(name).is_ok_and(|found| found.is_some());
    println!(
        "{name}: {} symbols; the archive opened and a view chosen: {:.0} ns; map built: {:.0} µs",
        names.len(),
        median(&mut open),
        median(&mut build)
    );
    for (what, queries, expected) in [("hit", &hits, true), ("miss", &misses, false)] {
        println!(
            "  {what:4}  view {}   map {}   scan {}",
            per_query(queries, expected, find),
            per_query(queries, expected, |name| map.contains_key(name)),
            per_query(&queries[..queries.len().min(300)], expected, |name| index
                .scan(name)
                .is_some()),
        );
    }
    Ok(())
}

fn per_query(queries: &[Vec<u8>], expected: bool, find: impl Fn(&[u8]) -> bool) -> String {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let found = queries.iter().filter(|name| find(black_box(name))).count();
        times.push(start.elapsed().as_secs_f64() * 1e9 / queries.len() as f64);
        assert_eq!(found, if expected { queries.len() } else { 0 });
    }
    format!("{:7.1} ({:7.1})", median(&mut times), least(&times))
}

/// Symbol index of an ordinary archive, with 32-bit offsets.
struct Index<'a> {
    offsets: &'a [u8],
    names: &'a [u8],
}

impl<'a> Index<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self> {
        let size: usize = std::str::from_utf8(&bytes[56..66])?.trim().parse()?;
        let index = &bytes[68..68 + size];
        let (count, rest) = index.split_at(4);
        let count = u32::from_be_bytes(count.try_into()?) as usize;
        let (offsets, names) = rest.split_at(count * 4);
        Ok(Self { offsets, names })
    }

    fn names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.names;
        std::iter::repeat_with(move || {
            let name = CStr::from_bytes_until_nul(rest).ok()?.to_bytes();
            rest = &rest[name.len() + 1..];
            Some(name)
        })
        .take(self.offsets.len() / 4)
        .map_while(|name| name)
    }

    fn offset(&self, at: usize) -> u32 {
        let bytes = self.offsets[at * 4..][..4].try_into();
        u32::from_be_bytes(bytes.unwrap_or_default())
    }

    /// Linear search, as in LLVM's `Archive::findSym`.
    fn scan(&self, name: &[u8]) -> Option<u32> {
        let at = self.names().position(|one| one == name)?;
        Some(self.offset(at))
    }

    /// Hash map, as linkers build it.
    fn map(&self) -> HashMap<&'a [u8], u32> {
        let names = self.names().enumerate();
        names.map(|(at, name)| (name, self.offset(at))).collect()
    }
}
