//! Processor time for writing the same members with an index, by tool.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ar_archive_writer::{
    ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream,
};
use gpustub_superarchive::{Source, write_archive};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::measure::record;
use memmap2::Mmap;

use crate::data::{Set, plan};
use crate::{Library, least, median};

const ROUNDS: usize = 21;

/// Processor time and elapsed time in milliseconds.
type Cost = (f64, f64);

pub fn print(libraries: &[Library], sets: &[Set], work: &Path) -> Result<()> {
    println!(
        "\nwriting: ms of the processor, median (least), and elapsed, of {ROUNDS} rounds in turn; median of the ratios to ar_archive_writer in a round"
    );
    let mut figures = Vec::new();
    for (library, figure) in libraries.iter().zip(["c-library", "cpp-library"]) {
        let ratio = compare(&Set::directory(library.name, &library.dir)?, work)?;
        figures.push((figure, ratio));
    }
    record("writing", &figures)?;
    for set in sets {
        compare(set, work)?;
    }
    Ok(())
}

/// Writes archives that contain each distinct file once, except for the last writer. Returns the ratio of the
/// super-archive.
fn compare(set: &Set, work: &Path) -> Result<f64> {
    let out = work.join("written.a");
    let sizes = set.files.iter().map(|file| Ok(fs::metadata(file)?.len()));
    println!(
        "{}: {} views, {} distinct files, {} bytes",
        set.name,
        set.view_count(),
        set.files.len(),
        sizes.sum::<Result<u64>>()?
    );
    let writers: [(&str, &dyn Fn() -> Result<Cost>); 6] = [
        ("ar_archive_writer", &|| here(|| by_crate(&set.files, &out))),
        ("super-archive of all views", &|| {
            here(|| super_archive(set, &out))
        }),
        ("ordinary archive", &|| here(|| ordinary(set, &out))),
        ("GNU ar rcsD", &|| by_tool("ar", set, &out)),
        ("llvm-ar-19 rcsD", &|| by_tool("llvm-ar-19", set, &out)),
        ("ar_archive_writer, an archive for each view", &|| {
            here(|| (set.view_files()).try_for_each(|files| by_crate(&files, &out)))
        }),
    ];
    let count = if set.view_count() > 1 { 6 } else { 5 };
    let writers = &writers[..count];
    let mut costs = vec![Vec::new(); writers.len()];
    for _ in 0..ROUNDS {
        for ((_, writer), costs) in writers.iter().zip(&mut costs) {
            if out.exists() {
                fs::remove_file(&out)?;
            }
            costs.push(writer()?);
        }
    }
    let reference = costs[0].clone();
    let mut medians = Vec::new();
    for ((name, _), costs) in writers.iter().zip(costs) {
        let ratios = costs.iter().zip(&reference);
        let mut ratios: Vec<f64> = ratios.map(|(one, other)| one.0 / other.0).collect();
        let (mut cpu, mut wall): (Vec<f64>, Vec<f64>) = costs.into_iter().unzip();
        medians.push(median(&mut ratios));
        println!(
            "  {name:43} {:7.1} ({:6.1})   {:7.1}   {:.2}",
            median(&mut cpu),
            least(&cpu),
            median(&mut wall),
            median(&mut ratios)
        );
    }
    Ok(medians[1])
}

fn super_archive(set: &Set, out: &Path) -> Result<()> {
    let sources = set.open()?;
    let request = set.request(&sources)?;
    let mut out = BufWriter::new(File::create(out)?);
    plan(&request)?.write(&mut out)?;
    Ok(out.flush()?)
}

fn ordinary(set: &Set, out: &Path) -> Result<()> {
    let source = Source::files(set.files.clone()).map_err(|e| e.to_string())?;
    let layer = source.layer().map_err(|e| e.to_string())?;
    let mut out = BufWriter::new(File::create(out)?);
    write_archive(&layer.members, &mut out)?;
    Ok(out.flush()?)
}

fn by_crate(files: &[PathBuf], out: &Path) -> Result<()> {
    let member = |path: &PathBuf| {
        // SAFETY: no other process changes the files.
        let map = unsafe { Mmap::map(&File::open(path)?)? };
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        Ok(NewArchiveMember::new(map, &DEFAULT_OBJECT_READER, name))
    };
    let members = files.iter().map(member).collect::<Result<Vec<_>>>()?;
    let mut out = BufWriter::new(File::create(out)?);
    write_archive_to_stream(&mut out, &members, ArchiveKind::Gnu, false, None)?;
    Ok(out.flush()?)
}

/// Least processor time of a measurement in milliseconds: the kernel updates its counter only every few.
const MEASURED: f64 = 100.0;

fn here(write: impl Fn() -> Result<()>) -> Result<Cost> {
    let (before, start) = (own_cpu()?, Instant::now());
    let mut times = 0.0;
    loop {
        write()?;
        times += 1.0;
        let cpu = own_cpu()? - before;
        if cpu >= MEASURED {
            let wall = start.elapsed().as_secs_f64() * 1e3;
            return Ok((cpu / times, wall / times));
        }
    }
}

fn by_tool(tool: &str, set: &Set, out: &Path) -> Result<Cost> {
    let mut command = Command::new(tool);
    command.arg("rcsD").arg(out).args(&set.files);
    let (before, start) = (children_cpu()?, Instant::now());
    succeed(&mut command)?;
    let wall = start.elapsed().as_secs_f64() * 1e3;
    Ok((children_cpu()? - before, wall))
}

/// Processor time of this thread: `/proc/thread-self/schedstat`, proc(5).
fn own_cpu() -> Result<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().ok_or("schedstat is empty")?;
    Ok(first.parse::<f64>()? / 1e6)
}

/// Processor time of exited children, by 10 ms: fields 16, 17 of `/proc/self/stat`, proc(5).
fn children_cpu() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit(") ").next().ok_or("stat has no name")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) * 10.0)
}
