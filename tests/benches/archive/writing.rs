//! Processor time for writing the same members with an index, by tool.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ar_archive_writer::{
    ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream,
};
use gpustub_superarchive::write_archive;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;

use crate::{Library, inputs, least, median, plan, views};

const ROUNDS: usize = 21;

/// Processor time and elapsed time in milliseconds.
type Cost = (f64, f64);

pub fn print(libraries: &[Library], work: &Path) -> Result<()> {
    println!(
        "\nwriting: ms of the processor, median (least), and passed, of {ROUNDS} rounds in turn"
    );
    for library in libraries {
        let out = work.join("written.a");
        println!(
            "{}: {} members, {} bytes",
            library.name,
            library.files.len(),
            library.size()
        );
        let writers: [(&str, &dyn Fn() -> Result<Cost>); 6] = [
            ("super-archive of one view", &|| {
                here(|| super_archive(library, &out))
            }),
            ("ordinary archive", &|| here(|| ordinary(library, &out))),
            ("ar_archive_writer", &|| here(|| by_crate(library, &out))),
            ("GNU ar rcsD", &|| by_tool("ar", library, &out)),
            ("llvm-ar-19 rcsD", &|| by_tool("llvm-ar-19", library, &out)),
            ("cp", &|| by_tool("cp", library, &work.join("copied"))),
        ];
        let mut costs = vec![Vec::new(); writers.len()];
        fs::create_dir_all(work.join("copied"))?;
        for _ in 0..ROUNDS {
            for ((_, writer), costs) in writers.iter().zip(&mut costs) {
                if out.exists() {
                    fs::remove_file(&out)?;
                }
                costs.push(writer()?);
            }
        }
        for ((name, _), costs) in writers.iter().zip(costs) {
            let (mut cpu, mut wall): (Vec<f64>, Vec<f64>) = costs.into_iter().unzip();
            println!(
                "  {name:26} {:7.1} ({:6.1})   {:7.1}",
                median(&mut cpu),
                least(&cpu),
                median(&mut wall)
            );
        }
    }
    Ok(())
}

/// Reads the files. Every writer reads them, as tools do.
fn read(library: &Library) -> Result<Vec<(String, Vec<u8>)>> {
    let names = library.files.iter().map(|(name, _)| name);
    names
        .map(|name| Ok((name.clone(), fs::read(library.dir.join(name))?)))
        .collect()
}

fn super_archive(library: &Library, out: &Path) -> Result<()> {
    let families = [read(library)?];
    let request = views(&families)?;
    let mut out = BufWriter::new(File::create(out)?);
    plan(&request)?.write(&mut out)?;
    Ok(out.flush()?)
}

fn ordinary(library: &Library, out: &Path) -> Result<()> {
    let files = read(library)?;
    let members = inputs(&files)?;
    let mut out = BufWriter::new(File::create(out)?);
    write_archive(&members, &mut out)?;
    Ok(out.flush()?)
}

fn by_crate(library: &Library, out: &Path) -> Result<()> {
    let members: Vec<_> = read(library)?
        .into_iter()
        .map(|(name, data)| NewArchiveMember::new(data, &DEFAULT_OBJECT_READER, name))
        .collect();
    let mut out = BufWriter::new(File::create(out)?);
    write_archive_to_stream(&mut out, &members, ArchiveKind::Gnu, false, None)?;
    Ok(out.flush()?)
}

/// Writes per round: the kernel updates its counter only every few milliseconds.
const TIMES: u8 = 8;

fn here(write: impl Fn() -> Result<()>) -> Result<Cost> {
    let (before, start) = (own_cpu()?, Instant::now());
    for _ in 0..TIMES {
        write()?;
    }
    let wall = start.elapsed().as_secs_f64() * 1e3;
    let times = f64::from(TIMES);
    Ok(((own_cpu()? - before) / times, wall / times))
}

fn by_tool(tool: &str, library: &Library, out: &Path) -> Result<Cost> {
    let mut command = Command::new(tool);
    let names = library.files.iter().map(|(name, _)| name);
    command.current_dir(&library.dir);
    match tool {
        "cp" => command.args(names).arg(out),
        _ => command.arg("rcsD").arg(out).args(names),
    };
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
