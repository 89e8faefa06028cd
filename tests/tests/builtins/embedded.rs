//! A shared library that contains a super-archive of libclc: every symbol is found in place,
//! without allocations, and no page of the archive is written.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use gpustub_archive::{Error, SuperArchive};
use gpustub_tests::Result;
use gpustub_tests::bitcode::{CHAINS, Layer, SOME, layers, split_chain};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::naive::{Views, build};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator with a counter.
pub struct Counting;

// SAFETY: forwards to the system's allocator; the counter needs no memory and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(pointer, layout) }
    }
}

// <dlfcn.h>
const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A shared library with an archive in its constants, at an odd address.
fn embed(archive: &Path, directory: &Path) -> Result<&'static [u8]> {
    let (source, library) = (directory.join("embed.s"), directory.join("libbuiltins.so"));
    let archive = archive.display();
    let text = format!(
        ".section .note.GNU-stack,\"\",%progbits\n.section .rodata\n.globl builtins, builtins_end\n.balign 16\n\
         .byte 0\nbuiltins: .incbin \"{archive}\"\nbuiltins_end: .byte 0\n"
    );
    fs::write(&source, text)?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-nostdlib", "-Wl,-z,separate-code", "-o"]);
    succeed(cc.arg(&library).arg(&source))?;
    let path = CString::new(library.as_os_str().as_bytes())?;
    // SAFETY: a NUL-terminated string; the library has no code.
    let handle = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    if handle.is_null() {
        return Err("the library cannot be loaded".into());
    }
    let [start, end] = [c"builtins", c"builtins_end"]
        // SAFETY: the handle is of a library, and the strings are NUL-terminated.
        .map(|name| unsafe { dlsym(handle, name.as_ptr()) } as usize);
    assert!(start % 2 == 1 && start < end);
    // SAFETY: the file is between the labels, until the process ends.
    Ok(unsafe { std::slice::from_raw_parts(start as *const u8, end - start) })
}

/// Kilobytes of a field of `/proc/self/smaps` in all mappings of these bytes, all read-only.
fn mapped(bytes: &[u8], field: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/self/smaps")?;
    let range = bytes.as_ptr_range();
    let (first, last) = (range.start as usize, range.end as usize);
    let (mut inside, mut sum) = (false, None);
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some((start, end)) = word.split_once('-') {
            inside =
                usize::from_str_radix(start, 16)? < last && first < usize::from_str_radix(end, 16)?;
            assert!(!inside || rest.starts_with("r--p "), "{line}");
        } else if inside && word.strip_suffix(':') == Some(field) {
            let kilobytes: u64 = rest.trim().trim_end_matches(" kB").parse()?;
            sum = Some(sum.unwrap_or(0) + kilobytes);
        }
    }
    Ok(sum.ok_or_else(|| format!("{field} of no mapping is in smaps"))?)
}

/// Finds each symbol in its view and reads all contents. Returns the number of nonzero bytes.
fn resolve(archive: &[u8], views: &[(&str, Vec<String>)]) -> Result<u64, Error> {
    let archive = SuperArchive::parse(archive)?;
    let mut nonzero = 0;
    for (family, symbols) in views {
        let view = archive.view(family)?.ok_or(Error::NoViews)?;
        for symbol in symbols {
            let member = view.find_symbol(symbol)?.ok_or(Error::NoViews)?;
            let data = member.data()?;
            nonzero += data.iter().filter(|byte| **byte != 0).count() as u64;
        }
    }
    archive.verify()?;
    Ok(nonzero)
}

fn embedded(pattern: Option<&str>, min_symbols: usize) -> Result<()> {
    let dir = scratch()?;
    let directory = dir.path();
    let chain = &CHAINS[0][1..];
    split_chain(chain, directory, pattern)?;
    let layers = layers(chain, directory)?;
    for layer in &layers {
        layer.archive(directory)?;
    }
    let mut views = Views::new();
    let mut symbols_by_view = Vec::new();
    for (index, family) in chain.iter().enumerate() {
        views.push((
            *family,
            layers[index..]
                .iter()
                .map(|layer| &layer.name[..])
                .collect(),
        ));
        let files = Layer::from_directory(family, &directory.join(family))?.files;
        let symbols: Vec<_> = files
            .iter()
            .filter_map(|file| file.file_stem())
            .map(|stem| stem.to_string_lossy().into_owned())
            .collect();
        assert!(symbols.len() >= min_symbols, "{} symbols", symbols.len());
        symbols_by_view.push((*family, symbols));
    }
    let bytes = embed(&build(directory, &views)?, directory)?;

    let before = ALLOCATIONS.get();
    let nonzero = resolve(bytes, &symbols_by_view);
    let allocations = ALLOCATIONS.get() - before;
    assert!(nonzero.map_err(|e| e.to_string())? > 0);
    assert_eq!(allocations, 0);

    // A private page becomes anonymous when it is written. `Private_Dirty` would also count pages
    // of the file that are not yet on disk.
    assert_eq!(mapped(bytes, "Anonymous")?, 0);
    let resident = mapped(bytes, "Rss")?;
    assert!(
        resident * 1024 >= bytes.len() as u64 / 2,
        "{resident} kB were read"
    );
    Ok(())
}

#[test]
#[ignore = "needs libclc, llvm: ./tests/run"]
fn functions_in_a_shared_library_are_found_without_allocation() -> Result<()> {
    embedded(Some(SOME), 200)
}

#[test]
#[ignore = "needs libclc, llvm, and a minute: ./tests/run --all"]
fn heavy_all_functions_in_a_shared_library_are_found_without_allocation() -> Result<()> {
    embedded(None, 7800)
}
