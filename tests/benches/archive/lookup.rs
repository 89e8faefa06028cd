//! Lookup of one symbol, by both readers and in hash maps, one for each view.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{SuperArchive, View};
use gpustub_tests::command::succeed;
use gpustub_tests::measure::record;
use gpustub_tests::{Result, repository};
use libloading::os::unix::Library as Loaded;

use crate::data::{Set, written};
use crate::{Library, families, least, median, views};

const ROUNDS: usize = 31;
/// Number of families of a library, with one view each.
const FAMILIES: usize = 8;
/// Times that an archive is opened in a round.
const OPENED: usize = 1000;

pub fn print(libraries: &[Library], sets: &[Set], work: &Path) -> Result<()> {
    let header = CReader::compile(work)?;
    println!(
        "\nlookup: ns of one symbol, median (least) of {ROUNDS} rounds in turn; medians of the ratios to the map in a round"
    );
    println!("| what | Rust | C header | `HashMap` | Rust / map | C / map |");
    println!("|---|---|---|---|---|---|");
    let mut notes = Vec::new();
    let mut ratios = Ratios::default();
    for library in libraries {
        let families = families(library, FAMILIES, 500);
        let bytes = written(&views(&families)?)?;
        notes.push(compare(library.name, &bytes, &header, &mut ratios)?);
    }
    ratios.record()?;
    for set in sets {
        let sources = set.open()?;
        let bytes = written(&set.request(&sources)?)?;
        notes.push(compare(set.name, &bytes, &header, &mut ratios)?);
    }
    println!("\n{}", notes.join("\n"));
    Ok(())
}

/// Ratios of both readers to the map.
#[derive(Default)]
struct Ratios {
    one_view: Vec<f64>,
    in_turn: Vec<f64>,
}

impl Ratios {
    fn record(&self) -> Result<()> {
        for (row, ratios) in [
            ("lookup-one-view", &self.one_view),
            ("lookup-in-turn", &self.in_turn),
        ] {
            let most = ratios.iter().copied().fold(f64::MIN, f64::max);
            record(row, &[("least", least(ratios)), ("most", most)])?;
        }
        Ok(())
    }
}

/// A query, as in `c/archive_find.c`.
#[repr(C)]
struct Query {
    name: *const u8,
    length: usize,
    view: usize,
}

impl Query {
    fn name(&self) -> &[u8] {
        // SAFETY: `Queries` owns the name, which does not move.
        unsafe { std::slice::from_raw_parts(self.name, self.length) }
    }
}

/// Queries with their names, each in memory of its own, in an order unrelated to the tables.
struct Queries {
    list: Vec<Query>,
    _names: Vec<Vec<u8>>,
}

impl Queries {
    /// Query number n is about name number n of the next one of these views, so that no view is asked for a
    /// name twice before each was asked for all.
    fn new(names: &[Vec<&[u8]>], ending: &[u8]) -> Self {
        let count = names[0].len();
        let views = (0..names.len()).cycle();
        let queries = (0..count).zip(views).map(|(at, view)| {
            let name = names[view][at % names[view].len()];
            (view, [name, ending].concat())
        });
        let (views, names): (Vec<usize>, Vec<Vec<u8>>) = queries.unzip();
        let list = names.iter().zip(views).map(|(name, view)| Query {
            name: name.as_ptr(),
            length: name.len(),
            view,
        });
        Self {
            list: list.collect(),
            _names: names,
        }
    }
}

/// The C header, compiled with its loops.
struct CReader {
    library: Loaded,
}

impl CReader {
    fn compile(work: &Path) -> Result<Self> {
        let output = work.join("archive_find.so");
        let mut cc = Command::new("cc");
        cc.args([
            "-std=c99", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-I",
        ]);
        cc.arg(repository().join("crates/archive/c"));
        cc.arg(repository().join("tests/benches/c/archive_find.c"));
        succeed(cc.arg("-o").arg(&output))?;
        // SAFETY: the library has no constructors.
        let library = unsafe { Loaded::new(output)? };
        Ok(Self { library })
    }

    /// Makes an archive the current one. Its bytes must remain.
    fn open(&self, bytes: &[u8]) -> Result<()> {
        type Open = unsafe extern "C" fn(*const u8, usize) -> i32;
        // SAFETY: the declaration of the function in C.
        let status =
            unsafe { self.library.get::<Open>(b"bench_use")?(bytes.as_ptr(), bytes.len()) };
        if status == 0 {
            Ok(())
        } else {
            Err(format!("the C header returns {status}").into())
        }
    }

    /// Homes of the table of the first view, and names in it.
    fn table(&self) -> Result<(u32, u32)> {
        type Table = unsafe extern "C" fn(usize, *mut u32, *mut u32);
        let (mut homes, mut names) = (0, 0);
        // SAFETY: the declaration of the function in C; an archive is open, which has a view.
        unsafe { self.library.get::<Table>(b"bench_table")?(0, &raw mut homes, &raw mut names) };
        Ok((homes, names))
    }

    /// Number of queries that find a member in the current archive.
    fn find(&self, queries: &[Query]) -> usize {
        type Find = unsafe extern "C" fn(*const Query, usize) -> usize;
        // SAFETY: the declaration of the function in C; an archive is open, which has the views.
        unsafe {
            let find = self.library.get::<Find>(b"bench_find");
            find.map_or(0, |find| find(queries.as_ptr(), queries.len()))
        }
    }

    /// Number of times that a view of an archive is found.
    fn open_often(&self, bytes: &[u8], view: &[u8]) -> usize {
        type Open = unsafe extern "C" fn(*const u8, usize, *const u8, usize, usize) -> usize;
        // SAFETY: the declaration of the function in C.
        unsafe {
            let open = self.library.get::<Open>(b"bench_open");
            open.map_or(0, |open| {
                open(
                    bytes.as_ptr(),
                    bytes.len(),
                    view.as_ptr(),
                    view.len(),
                    OPENED,
                )
            })
        }
    }
}

/// Prints the rows of an archive, and returns a note about its tables.
fn compare(what: &str, bytes: &[u8], header: &CReader, ratios: &mut Ratios) -> Result<String> {
    let failed = |e: gpustub_archive::Error| format!("{what}: {e}");
    header.open(bytes)?;
    let archive = SuperArchive::parse(bytes).map_err(failed)?;
    let views: Vec<View<'_>> = archive.views().collect::<Result<_, _>>().map_err(failed)?;
    let mut names = Vec::new();
    for view in &views {
        let all = view
            .symbols()
            .map(|symbol| Ok(symbol.map_err(failed)?.name));
        let mut all = all.collect::<Result<Vec<&[u8]>, String>>()?;
        all.sort_by_key(|name| hash_bytes(&[name, &b"order"[..]].concat()));
        names.push(all);
    }
    // As the index of an archive for each view would have them.
    let indices: Vec<Vec<u8>> = names.iter().map(|names| names.concat()).collect();
    let map = |view: usize| {
        let mut rest = &indices[view][..];
        let entries = names[view].iter().zip(0_u32..).map(|(name, offset)| {
            let (name, behind) = rest.split_at(name.len());
            rest = behind;
            (name, offset)
        });
        entries.collect::<HashMap<&[u8], u32>>()
    };
    let maps: Vec<HashMap<&[u8], u32>> = (0..views.len()).map(map).collect();

    let find = |queries: &[Query]| {
        let found = |query: &&Query| {
            let found = views[query.view].find_symbol(black_box(query.name()));
            found.is_ok_and(|found| found.is_some())
        };
        queries.iter().filter(found).count()
    };
    let in_map = |queries: &[Query]| {
        let found = |query: &&Query| maps[query.view].contains_key(black_box(query.name()));
        queries.iter().filter(found).count()
    };
    for (which, asked) in [("one view", 1), ("views in turn", views.len())] {
        for (result, ending) in [("found", &b""[..]), ("absent", b"?")] {
            let queries = Queries::new(&names[..asked], ending);
            let list = &queries.list[..];
            let expected = if ending.is_empty() { list.len() } else { 0 };
            let (row, pair) = row(
                [&|| find(list), &|| header.find(list), &|| in_map(list)],
                list.len(),
                expected,
            );
            println!("| {what}, {which}, {result} {row}");
            match asked {
                1 => ratios.one_view.extend(pair),
                _ => ratios.in_turn.extend(pair),
            }
        }
    }

    let opened = |view: &[u8]| {
        let found = || {
            SuperArchive::parse(black_box(bytes))
                .ok()?
                .view(black_box(view))
                .ok()?
        };
        (0..OPENED).filter(|_| found().is_some()).count()
    };
    let last = views.last().ok_or("no view")?.name();
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(time(OPENED, OPENED, || opened(last)));
        times[1].push(time(OPENED, OPENED, || header.open_often(bytes, last)));
        times[2].push(time(1, names[0].len(), || black_box(map(0)).len()) / 1e3);
    }
    let [rust, c, map] = times.each_mut().map(|times| median(times));
    let (homes, in_table) = header.table()?;
    Ok(format!(
        "{what}: {} views, {} symbols in the first; {in_table} names in its table, {homes} homes, load {:.3}; opened and a view chosen in {rust:.0} ns, by C in {c:.0}; a map built in {map:.0} µs",
        views.len(),
        names[0].len(),
        f64::from(in_table) / f64::from(homes),
    ))
}

/// Nanoseconds of each of so many calls, which together have an expected result.
fn time(calls: usize, expected: usize, run: impl Fn() -> usize) -> f64 {
    let start = Instant::now();
    let result = run();
    let elapsed = start.elapsed().as_secs_f64() * 1e9 / calls as f64;
    assert_eq!(result, expected);
    elapsed
}

/// The row of three ways to find symbols, the last of which is the reference, and the ratios of the others to it.
fn row(ways: [&dyn Fn() -> usize; 3], count: usize, expected: usize) -> (String, [f64; 2]) {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut times) {
            times.push(time(count, expected, way));
        }
    }
    let ratio = |way: usize| {
        let pairs = times[way].iter().zip(&times[2]);
        median(&mut pairs.map(|(one, map)| one / map).collect::<Vec<f64>>())
    };
    let ratios = [ratio(0), ratio(1)];
    let cells = times
        .iter_mut()
        .map(|times| format!("| {:.1} ({:.1}) ", median(times), least(times)));
    let text = format!(
        "{}| {:.2} | {:.2} |",
        cells.collect::<String>(),
        ratios[0],
        ratios[1]
    );
    (text, ratios)
}
