//! Number of pages of a large file that one lookup reads.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
use memmap2::{Advice, Mmap, MmapMut};

use crate::data::plan;
use crate::{Library, families, views};

const FAMILIES: usize = 64;

pub fn print(library: &Library, work: &Path) -> Result<()> {
    let file = work.join("large.a");
    let families = families(library, FAMILIES, 0);
    let request = views(&families)?;
    let mut out = BufWriter::new(File::create(&file)?);
    plan(&request)?.write(&mut out)?;
    out.flush()?;
    drop(out);

    // SAFETY: no other process uses the file.
    let map = unsafe { Mmap::map(&File::open(&file)?)? };
    let (faults, start) = (page_faults()?, Instant::now());
    let size = lookup(&map)?;
    let (time, faults) = (start.elapsed(), page_faults()? - faults);
    println!(
        "\npages: {:.0} MB, {FAMILIES} views; opened, a view chosen, a symbol found, its member's header read ({size} bytes)",
        map.len() as f64 / 1e6
    );
    println!(
        "  of a fresh mapping: {faults} page faults, {:.0} µs",
        time.as_secs_f64() * 1e6
    );

    // The kernel marks accessed pages, but a huge page as one: the copy has none.
    let mut copy = MmapMut::map_anon(map.len())?;
    copy.advise(Advice::NoHugePage)?;
    copy.copy_from_slice(&map);
    drop(map);
    fs::write("/proc/self/clear_refs", "1")?;
    lookup(&copy)?;
    println!("  accessed: {} pages of 4 KB", referenced(&copy)? / 4);
    Ok(())
}

fn lookup(bytes: &[u8]) -> Result<usize> {
    let failed = |e: gpustub_archive::Error| e.to_string();
    let archive = SuperArchive::parse(bytes).map_err(failed)?;
    let view = archive.view("gfx37").map_err(failed)?.ok_or("gfx37")?;
    let member = view
        .find_symbol("printf")
        .map_err(failed)?
        .ok_or("printf")?;
    Ok(member.data().map_err(failed)?.len())
}

/// Minor and major page faults: fields 10 and 12 of `/proc/self/stat`, proc(5).
fn page_faults() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit(") ").next().ok_or("stat has no name")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    Ok(fields[7].parse::<u64>()? + fields[9].parse::<u64>()?)
}

/// `Referenced` of a mapping, in kilobytes.
fn referenced(map: &[u8]) -> Result<u64> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    let start = format!("{:x}-", map.as_ptr() as usize);
    let mut lines = maps.lines().skip_while(|line| !line.starts_with(&start));
    let line = lines.find_map(|line| line.strip_prefix("Referenced:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("the mapping is not in smaps")?.parse()?)
}
