//! Large files are reported while they are read, so that a caller can release mapped memory.

use std::cell::Cell;
use std::fs;
use std::process::Command;

use gpustub_image::{ElfImage, read_image};

/// Number of reports while a library with `count` functions is read.
fn reports(count: usize) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let name = "long".repeat(25);
    let function = |i| format!(".globl {name}{i}\n{name}{i}:\n");
    let code: String = (0..count).map(function).collect();
    let mark = ".section .note.GNU-stack,\"\",%progbits\n";
    fs::write(path("many.s"), format!(".text\n{code}{mark}")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-nostdlib", "-o"]);
    let status = cc.arg(path("many.so")).arg(path("many.s")).status();
    assert!(status.unwrap().success());
    let bytes = fs::read(path("many.so")).unwrap();
    let reports = Cell::new(0);
    let consumed = |part: &[u8]| {
        assert_eq!(part.as_ptr_range(), bytes.as_ptr_range());
        reports.set(reports.get() + 1);
    };
    let image = ElfImage::parse(&bytes).unwrap();
    let facts = read_image(&image, &|_, _| true, &consumed).unwrap();
    assert_eq!(facts.exports.len(), count);
    reports.get()
}

#[test]
fn images_with_many_symbols_are_reported_while_they_are_read() {
    assert_eq!(reports(100), 0);
    assert!(reports(100_000) > 0);
}
