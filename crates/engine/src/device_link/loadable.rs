//! Linked libraries, read again: [`load_faults`] of files that the linker accepted.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gpustub_core::device_link::{LoadFacts, load_faults};

use super::exports::PREFIXES;
use crate::error::Error;
use crate::files;

/// Checks shared libraries of one process, which were linked or placed together: each finds the others that it needs, and
/// one of them defines what the objects of all call. Libraries of another build (`is_built` false) that have no run path
/// are meant to be found by other means, such as LD_LIBRARY_PATH.
///
/// # Errors
///
/// If a program could not load one of the libraries, or a library cannot be read.
pub fn check_loadable(libraries: &[PathBuf], is_built: bool) -> Result<(), Error> {
    let mut images = Vec::new();
    for path in libraries {
        if let Some(facts) = read_facts(path).map_err(|e| files::unread(path, &e))? {
            images.push((path.as_path(), facts));
        }
    }
    for (path, facts) in &images {
        let is_registered = |name: &str| {
            (images.iter()).any(|(_, image)| image.registered.iter().any(|known| known == name))
        };
        let is_unreachable = |name: &str| {
            let is_placed = (libraries.iter())
                .any(|library| library.file_name().is_some_and(|file| file == name));
            // The loader proceeds breadth first: another image may have loaded it before.
            let is_loaded = images.iter().any(|(path, image)| {
                image.needed.iter().any(|need| need == name) && is_reachable(path, image, name)
            });
            let has_run_path = facts.run_path.as_ref().is_some_and(|path| !path.is_empty());
            let is_by_run_path = is_built || has_run_path;
            is_placed && is_by_run_path && !is_loaded
        };
        if let Some(fault) = load_faults(facts, &is_registered, &is_unreachable).first() {
            return Err(fault.diagnostic(&path.display().to_string()).into());
        }
    }
    Ok(())
}

/// Directories that the loader searches without a run path (ld.so(8)), with those of multiarch below.
const DEFAULT_DIRECTORIES: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Whether an image leads the loader to a library of this name.
fn is_reachable(image: &Path, facts: &LoadFacts, name: &str) -> bool {
    let origin = image.parent().unwrap_or(Path::new(""));
    let is_default = DEFAULT_DIRECTORIES
        .iter()
        .any(|directory| origin.starts_with(directory));
    if is_default && origin.join(name).is_file() {
        return true;
    }
    let entries = facts.run_path.as_deref().unwrap_or_default().split(':');
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        let relative = ["$ORIGIN", "${ORIGIN}"]
            .iter()
            .find_map(|token| entry.strip_prefix(token));
        let directory = match relative {
            Some(rest) => origin.join(rest.trim_start_matches('/')),
            None => PathBuf::from(entry),
        };
        directory.join(name).is_file()
    })
}

/// Maximum size of a table: a library this large would have millions of symbols.
const MAX_TABLE: u64 = 256 << 20;

/// Section types and dynamic tags (gABI, "Sections" and "Dynamic Section").
const SHT_DYNAMIC: u64 = 6;
const SHT_DYNSYM: u64 = 11;
const DT_NEEDED: u64 = 1;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_PIE: u64 = 0x0800_0000;
const PT_INTERP: u64 = 3;

/// Reads a 64-bit little-endian image with section headers, which all targets of device links have. `None`: another file.
fn read_facts(path: &Path) -> io::Result<Option<LoadFacts>> {
    let mut file = File::open(path)?;
    let mut header = Vec::new();
    (&mut file).take(64).read_to_end(&mut header)?;
    if !header.starts_with(b"\x7fELF\x02\x01") || header.len() < 64 {
        return Ok(None);
    }
    let mut image = Image { file };
    let mut facts = LoadFacts::default();
    let segments = image.table(number(&header, 0x20, 8), number(&header, 0x38, 2) * 56)?;
    facts.has_interpreter = (segments.chunks(56)).any(|entry| number(entry, 0, 4) == PT_INTERP);
    facts.is_program = facts.has_interpreter;

    let sections = image.table(number(&header, 0x28, 8), number(&header, 0x3c, 2) * 64)?;
    let sections: Vec<&[u8]> = sections.chunks_exact(64).collect();
    for section in &sections {
        let kind = number(section, 4, 4);
        if kind != SHT_DYNAMIC && kind != SHT_DYNSYM {
            continue;
        }
        let table = image.section(section)?;
        let strings = sections.get(number(section, 0x28, 4) as usize);
        let strings = match strings {
            Some(strings) => image.section(strings)?,
            None => continue,
        };
        if kind == SHT_DYNAMIC {
            add_requests(&table, &strings, &mut facts);
        } else {
            add_functions(&table, &strings, &mut facts);
        }
    }
    Ok(Some(facts))
}

/// Reads the dynamic section.
fn add_requests(table: &[u8], strings: &[u8], facts: &mut LoadFacts) {
    let mut rpath = None;
    for entry in table.chunks_exact(16) {
        let (tag, value) = (number(entry, 0, 8), number(entry, 8, 8));
        match tag {
            0 => break,
            DT_NEEDED => facts.needed.push(string(strings, value)),
            DT_RUNPATH => facts.run_path = Some(string(strings, value)),
            DT_RPATH => rpath = Some(string(strings, value)),
            DT_FLAGS_1 => facts.is_program |= value & DF_1_PIE != 0,
            _ => {}
        }
    }
    facts.run_path = facts.run_path.take().or(rpath);
}

/// Reads the functions of device links among the dynamic symbols.
fn add_functions(table: &[u8], strings: &[u8], facts: &mut LoadFacts) {
    const STB_WEAK: u64 = 2;
    for symbol in table.chunks_exact(24) {
        let name = bytes(strings, number(symbol, 0, 4));
        if !(PREFIXES.iter()).any(|prefix| name.starts_with(prefix.as_bytes())) {
            continue;
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let is_undefined = number(symbol, 6, 2) == 0;
        if !is_undefined {
            facts.registered.push(name);
        } else if number(symbol, 4, 1) >> 4 != STB_WEAK {
            facts.unregistered.push(name);
        }
    }
}

struct Image {
    file: File,
}

impl Image {
    /// Reads a part of the file, or as much of it as there is.
    fn table(&mut self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let mut table = Vec::new();
        self.file.seek(SeekFrom::Start(offset))?;
        (&mut self.file)
            .take(size.min(MAX_TABLE))
            .read_to_end(&mut table)?;
        Ok(table)
    }

    fn section(&mut self, header: &[u8]) -> io::Result<Vec<u8>> {
        self.table(number(header, 0x18, 8), number(header, 0x20, 8))
    }
}

/// Little-endian number of some bytes; 0 where the table is cut off.
fn number(table: &[u8], offset: usize, size: usize) -> u64 {
    let bytes = table.get(offset..offset + size).unwrap_or_default();
    (bytes.iter().rev()).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Bytes of a string, without its end.
fn bytes(strings: &[u8], offset: u64) -> &[u8] {
    let rest = usize::try_from(offset)
        .ok()
        .and_then(|offset| strings.get(offset..));
    let rest = rest.unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0);
    &rest[..end.unwrap_or(rest.len())]
}

fn string(strings: &[u8], offset: u64) -> String {
    String::from_utf8_lossy(bytes(strings, offset)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Links code into a file of this name, and returns its path.
    fn link(dir: &Path, name: &str, code: &str, flags: &[&str]) -> PathBuf {
        std::fs::write(dir.join("a.c"), code).unwrap();
        let mut cc = Command::new("cc");
        cc.current_dir(dir)
            .args(["a.c", "-L.", "-Wl,--no-as-needed", "-o", name]);
        assert!(cc.args(flags).status().unwrap().success(), "{name}");
        dir.join(name)
    }

    /// Functions that objects of CUDA and of HIP call.
    const CALLED: [&str; 2] = ["__cudaRegisterLinkedBinary_1_a", "gpustub_hip_code_1_a"];

    fn calls(function: &str) -> String {
        format!("void {function}(void);\nvoid *call = {function};\n")
    }

    const SHARED: [&str; 3] = ["-shared", "-fPIC", "-nostdlib"];
    const FINAL: [&str; 4] = ["-shared", "-fPIC", "-nostdlib", "-l:liba.so"];

    fn fault(libraries: &[PathBuf]) -> String {
        check_loadable(libraries, true)
            .map_or_else(|error| error.to_string(), |()| "none".to_owned())
    }

    #[test]
    fn a_device_link_defines_what_objects_call() {
        let dir = tempfile::tempdir().unwrap();
        let flags = [&FINAL[..], &["-Wl,-rpath,$ORIGIN"]].concat();
        for function in CALLED {
            let middle = link(dir.path(), "liba.so", &calls(function), &SHARED);
            let unrelated = link(
                dir.path(),
                "libunrelated_final.so",
                "int unrelated;",
                &flags,
            );
            let defines = format!("void {function}(void) {{}}\n");
            let link = link(dir.path(), "liba_final.so", &defines, &flags);
            assert_eq!(fault(&[middle.clone(), link]), "none");
            let fault = fault(&[middle, unrelated]);
            let expected = format!("no device link defines `{function}`\n");
            assert!(fault.contains(&expected), "{fault}");
        }
    }

    /// As linker wrappers and packaging tools make it, that remove run paths.
    #[test]
    fn a_run_path_leads_to_placed_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let middle = link(dir.path(), "liba.so", "int a;", &SHARED);
        for (run_path, is_reachable) in [
            ("-Wl,-rpath,$ORIGIN", true),
            ("-Wl,-rpath,/nowhere:${ORIGIN}/.", true),
            ("-Wl,-rpath,$ORIGIN/../lib", false),
            ("-Wl,-rpath,", false),
        ] {
            for tags in ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"] {
                let flags = [&FINAL[..], &[run_path, tags]].concat();
                let r#final = link(dir.path(), "liba_final.so", "int f;", &flags);
                let fault = fault(&[middle.clone(), r#final.clone()]);
                let is_accepted = !fault.contains("no run path leads to liba.so\n");
                assert_eq!(is_accepted, is_reachable, "{run_path} {tags}: {fault}");
                assert_eq!(is_accepted, fault == "none");
                let has_run_path = run_path != "-Wl,-rpath,";
                let prebuilt = check_loadable(&[middle.clone(), r#final.clone()], false);
                assert_eq!(
                    prebuilt.is_ok(),
                    is_reachable || !has_run_path,
                    "{run_path}"
                );
                // A library of the system, which no other build made.
                assert!(check_loadable(&[r#final], true).is_ok());
            }
        }
    }

    #[test]
    fn a_static_program_has_nobody_to_load_libraries() {
        let dir = tempfile::tempdir().unwrap();
        link(dir.path(), "liba.so", "int a;", &SHARED);
        let code = "int main(void) { return 0; }";
        let program = link(dir.path(), "whole", code, &["-static-pie"]);
        assert_eq!(fault(&[program]), "none");
        // Command line of rustc's static programs over a shared library.
        let flags = ["-pie", "-Wl,--no-dynamic-linker", "-l:liba.so"];
        let program = link(dir.path(), "program", code, &flags);
        let fault = fault(&[program]);
        assert!(fault.contains("crashes before `main`"), "{fault}");
    }

    #[test]
    fn damaged_files_have_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let image = link(dir.path(), "liba.so", &calls(CALLED[0]), &SHARED);
        let whole = std::fs::read(&image).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&image, &whole[..length]).unwrap();
            let _ = check_loadable(std::slice::from_ref(&image), true);
        }
        // Each byte of the header set.
        for offset in 0..64 {
            let mut bytes = whole.clone();
            bytes[offset] = 0xff;
            std::fs::write(&image, bytes).unwrap();
            let _ = check_loadable(std::slice::from_ref(&image), true);
        }
        assert!(check_loadable(&[dir.path().join("none.so")], true).is_err());
    }
}
