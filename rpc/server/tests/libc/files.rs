//! Files below a directory.

use std::fs;

use gpurpc::libc::LibcLimits;
use gpurpc::opcode;

use crate::rig::{
    ByLane, FAILED, Program, Result, for_lanes, layout_of, layouts, masks, quiet, run_program,
};

/// Data of a different size for each lane: none, of one packet, of more.
fn data(lane: u32) -> Vec<u8> {
    let size = [0, 1, 56, 57, 64, 120, 500, 9000][lane as usize % 8] + lane as usize;
    (0..size).map(|at| (at as u32 * 7 + lane) as u8).collect()
}

fn close(program: &Program, file: u64) -> u64 {
    program.one(opcode::CLOSE_FILE, [file, 0, 0])
}

#[test]
fn each_lane_has_its_own_file() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let directory = tempfile::tempdir()?;
        run_program(layout, quiet().files(directory.path())?, |program| {
            for mask in masks(lanes) {
                let files = program.fopen(mask, |lane| format!("{lane}"), |_| "w+b");
                let file = |lane: u32| files[&lane];
                let mut seen: Vec<_> = files.values().collect();
                seen.dedup();
                assert_eq!(seen.len(), files.len());
                assert!(files.values().all(|file| *file != 0 && file & 3 == 0));

                let written =
                    program.write(opcode::WRITE_TO_STREAM, mask, file, &for_lanes(mask, data));
                let sizes = for_lanes(mask, |lane| data(lane).len() as u64);
                assert_eq!(written, sizes);
                let position = || program.ask(opcode::FTELL, mask, |lane| [file(lane), 0, 0]);
                assert_eq!(position(), sizes);
                for lane in sizes.keys() {
                    assert_eq!(
                        fs::read(directory.path().join(lane.to_string()))?,
                        data(*lane)
                    );
                }

                // All lanes seek back from the end: some to the beginning, others less.
                let seek = |lane| [file(lane), (data(lane).len() as u64).wrapping_neg(), 2];
                assert_eq!(
                    program.ask(opcode::FSEEK, mask, seek),
                    for_lanes(mask, |_| 0)
                );
                let size = |lane| u64::from(lane) * 20;
                let read = program.read(mask, size, file);
                let first = |lane| {
                    let data = data(lane);
                    data[..data.len().min(size(lane) as usize)].to_owned()
                };
                assert_eq!(read, for_lanes(mask, first));
                assert_eq!(position(), for_lanes(mask, |lane| first(lane).len() as u64));
                let ends = |lane| u64::from(first(lane).len() as u64 != size(lane));
                let feof = program.ask(opcode::FEOF, mask, |lane| [file(lane), 0, 0]);
                assert_eq!(feof, for_lanes(mask, ends));

                for result in [0, FAILED] {
                    let closed = program.ask(opcode::CLOSE_FILE, mask, |lane| [file(lane), 0, 0]);
                    assert_eq!(closed, for_lanes(mask, |_| result));
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn lanes_share_a_file_in_their_order() -> Result {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("f"), "0\n1\n2\n3\n4\n")?;
    run_program(layout_of(32), quiet().files(directory.path())?, |program| {
        let file = program.open("f", "r+");
        let lines = program.fgets(0b1011, |_| 10, |_| file);
        let expected = [(0, b"0\n\0"), (1, b"1\n\0"), (3, b"2\n\0")];
        assert_eq!(
            lines,
            expected
                .into_iter()
                .map(|(lane, line)| (lane, line.to_vec()))
                .collect()
        );
        // Writes at the position of the reads, although more was read ahead.
        assert_eq!(
            program.one(opcode::UNGETC, [u64::from(b'?'), file, 0]),
            u64::from(b'?')
        );
        assert_eq!(program.one(opcode::FTELL, [file, 0, 0]), 5);
        let letters = for_lanes(0b11, |lane| vec![b'a' + lane as u8]);
        program.write(opcode::WRITE_TO_STREAM, 0b11, |_| file, &letters);
        assert_eq!(
            fs::read_to_string(directory.path().join("f"))?,
            "0\n1\n2ab\n4\n"
        );
        assert_eq!(program.read_one(100, file), b"\n4\n");
        // Two lanes close one file: the first does.
        let closed = program.ask(opcode::CLOSE_FILE, 0b11, |_| [file, 0, 0]);
        assert_eq!(closed, ByLane::from([(0, 0), (1, FAILED)]));
        Ok(())
    })
}

#[test]
fn positions_are_those_of_c() -> Result {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("f"), "0123456789")?;
    run_program(layout_of(1), quiet().files(directory.path())?, |program| {
        let file = program.open("f", "r");
        let seek =
            |offset: i64, whence: u64| program.one(opcode::FSEEK, [file, offset as u64, whence]);
        let position = || program.one(opcode::FTELL, [file, 0, 0]);
        assert_eq!(program.read_one(3, file), b"012");
        // Relative to the position of the reads, not to the end of the data read ahead.
        assert_eq!((seek(2, 1), position()), (0, 5));
        assert_eq!((seek(-1, 1), position()), (0, 4));
        assert_eq!(program.read_one(1, file), b"4");
        assert_eq!(
            program.one(opcode::UNGETC, [u64::from(b'x'), file, 0]),
            u64::from(b'x')
        );
        assert_eq!((seek(0, 1), position()), (0, 4));
        assert_eq!(
            program.read_one(1, file),
            b"4",
            "seeking discards the pushed-back byte"
        );
        assert_eq!((seek(-3, 2), position()), (0, 7));
        assert_eq!(program.read_one(9, file), b"789");
        assert_eq!(program.one(opcode::FEOF, [file, 0, 0]), 1);
        for (offset, whence) in [
            (-1, 0),
            (-11, 2),
            (-11, 1),
            (i64::MIN, 1),
            (i64::MIN, 2),
            (0, 3),
        ] {
            assert_eq!(seek(offset, whence), FAILED, "{offset} {whence}");
            assert_eq!(
                (position(), program.one(opcode::FEOF, [file, 0, 0])),
                (10, 1)
            );
        }
        assert_eq!((seek(1 << 40, 0), position()), (0, 1 << 40));
        assert_eq!(program.one(opcode::FEOF, [file, 0, 0]), 0);
        assert_eq!(program.read_one(1, file), b"");
        Ok(())
    })
}

#[test]
fn modes_are_those_of_c() -> Result {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("f");
    run_program(layout_of(1), quiet().files(directory.path())?, |program| {
        assert_eq!(program.open("f", "r"), 0);
        assert_eq!(program.open("f", "r+"), 0);
        let file = program.open("f", "wx");
        assert_eq!(program.write_one(file, b"abc"), 3);
        assert_eq!(program.read_one(1, file), b"");
        assert_eq!(program.one(opcode::FERROR, [file, 0, 0]), 1);
        assert_eq!(program.open("f", "w+x"), 0, "it is there");
        assert_eq!(fs::read_to_string(&path)?, "abc");

        let file = program.open("f", "a+");
        assert_eq!(program.read_one(2, file), b"ab");
        program.one(opcode::FSEEK, [file, 0, 0]);
        assert_eq!(program.write_one(file, b"d"), 1);
        assert_eq!(program.one(opcode::FTELL, [file, 0, 0]), 4);
        assert_eq!(fs::read_to_string(&path)?, "abcd");

        let file = program.open("f", "rb");
        assert_eq!(program.write_one(file, b"x"), 0);
        assert_eq!(program.one(opcode::FERROR, [file, 0, 0]), 1);
        assert_eq!(program.read_one(9, file), b"abcd");

        let file = program.open("f", "w");
        assert_eq!(fs::read_to_string(&path)?, "");
        assert_eq!(close(program, file), 0);
        for mode in ["", "x", "q", "rx", "r,ccs=UTF-8"] {
            assert_eq!(program.open("f", mode), 0, "{mode:?}");
        }
        // No NUL in all of the packet.
        let long = "r                                                               ";
        assert_eq!((long.len(), program.open("f", long)), (64, 0));
        Ok(())
    })
}

#[test]
fn no_path_leaves_the_directory() -> Result {
    let outer = tempfile::tempdir()?;
    let root = outer.path().join("root");
    fs::create_dir_all(root.join("sub"))?;
    fs::write(outer.path().join("secret"), "secret")?;
    fs::write(root.join("sub/inside"), "inside")?;
    let mut paths = vec![
        "../secret".to_owned(),
        "sub/../../secret".to_owned(),
        "sub/../../root/../secret".to_owned(),
        outer.path().join("secret").display().to_string(),
        root.join("sub/inside").display().to_string(),
        "/etc/passwd".to_owned(),
        "..".to_owned(),
        "/".to_owned(),
        String::new(),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(outer.path().join("secret"), root.join("absolute"))?;
        symlink("../secret", root.join("relative"))?;
        symlink("..", root.join("up"))?;
        symlink("../up/secret", root.join("sub/chain"))?;
        symlink("../made", root.join("dangling"))?;
        let links = [
            "absolute",
            "relative",
            "up/secret",
            "sub/chain",
            "dangling",
            "up/made",
        ];
        paths.extend(links.map(str::to_owned));
        symlink("sub/inside", root.join("within"))?;
    }
    run_program(layout_of(32), quiet().files(&root)?, |program| {
        for path in &paths {
            for mode in ["r", "w", "a", "r+", "wx"] {
                assert_eq!(program.open(path, mode), 0, "{path} {mode}");
            }
        }
        for path in paths.iter().filter(|path| path.contains("secret")) {
            let result = program.messages(opcode::REMOVE, 1, &[&|_| path.clone()]);
            assert_eq!(result[&0], FAILED, "{path}");
            for (old, new) in [(path.as_str(), "taken"), ("sub/inside", path)] {
                let sent: [&dyn Fn(u32) -> String; 2] = [&|_| old.to_owned(), &|_| new.to_owned()];
                let result = program.messages(opcode::RENAME, 1, &sent);
                assert_eq!(result[&0], FAILED, "{old} {new}");
            }
        }
        // Paths that stay inside exist.
        for path in ["sub/inside", "./sub/../sub/inside"] {
            let file = program.open(path, "r");
            assert_eq!(program.read_one(10, file), b"inside", "{path}");
        }
        #[cfg(unix)]
        assert_eq!(program.read_one(10, program.open("within", "r")), b"inside");
        // A path without a NUL is invalid.
        let mut call = program.open_call(opcode::OPEN_FILE, 1);
        call.send_n(|_| b"sub/inside");
        call.send(|packets| packets.write(0, 0, b"r"));
        assert_eq!(crate::rig::word(&mut call)[&0], 0);
        Ok(())
    })?;
    assert_eq!(fs::read_to_string(outer.path().join("secret"))?, "secret");
    assert!(!outer.path().join("made").exists());
    Ok(())
}

#[test]
fn files_are_renamed_and_removed() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let directory = tempfile::tempdir()?;
        run_program(layout, quiet().files(directory.path())?, |program| {
            for mask in masks(lanes) {
                let old = |lane| format!("{lane}{}", "-".repeat(lane as usize));
                let new = |lane| format!("new {lane}");
                // Every third lane has no file.
                for lane in for_lanes(mask, |_| ())
                    .into_keys()
                    .filter(|lane| lane % 3 != 1)
                {
                    fs::write(directory.path().join(old(lane)), "")?;
                }
                let result = |lane| if lane % 3 == 1 { FAILED } else { 0 };
                let renamed = program.messages(opcode::RENAME, mask, &[&old, &new]);
                assert_eq!(renamed, for_lanes(mask, result));
                let removed = program.messages(opcode::REMOVE, mask, &[&new]);
                assert_eq!(removed, for_lanes(mask, result));
                assert_eq!(fs::read_dir(directory.path())?.count(), 0);
            }
            Ok(())
        })?;
        // C's `remove` also removes empty directories.
        fs::create_dir_all(directory.path().join("a/b"))?;
        run_program(layout, quiet().files(directory.path())?, |program| {
            let remove =
                |path: &str| program.messages(opcode::REMOVE, 1, &[&|_| path.to_owned()])[&0];
            assert_eq!(
                (remove("a"), remove("a/b"), remove("a"), remove("a")),
                (FAILED, 0, 0, FAILED)
            );
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn the_number_of_open_files_is_limited() -> Result {
    let directory = tempfile::tempdir()?;
    let limits = LibcLimits {
        files: 3,
        ..LibcLimits::default()
    };
    run_program(
        layout_of(32),
        quiet().files(directory.path())?.limits(limits),
        |program| {
            let mut last = 0;
            for _ in 0..3 {
                let files = program.fopen(0xff, |lane| format!("{lane}"), |_| "w");
                let open: Vec<u64> = files.values().copied().filter(|file| *file != 0).collect();
                assert_eq!(open.len(), 3, "{files:?}");
                assert_eq!(program.open("f", "w"), 0);
                // Handles are not reused.
                assert!(open.iter().all(|file| *file > last), "{open:?} {last}");
                last = open.iter().copied().max().unwrap_or(last);
                for file in open {
                    assert_eq!(close(program, file), 0);
                }
                // A file that cannot be opened does not count.
                assert_eq!(
                    program.fopen(0xff, |_| "none".to_owned(), |_| "r"),
                    for_lanes(0xff, |_| 0)
                );
            }
            Ok(())
        },
    )
}

/// A FIFO would block its thread until another process opens the other end, a socket or a device may do so at any
/// time: none of them is a file for the program.
#[cfg(unix)]
#[test]
fn only_files_and_directories_are_opened() -> Result {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    let made = std::process::Command::new("mkfifo")
        .arg(path("fifo"))
        .status()?;
    assert!(made.success());
    let _socket = UnixListener::bind(path("socket"))?;
    symlink("fifo", path("link"))?;
    fs::create_dir(path("directory"))?;
    fs::write(path("file"), "text")?;
    run_program(layout_of(1), quiet().files(directory.path())?, |program| {
        for name in ["fifo", "link", "socket"] {
            for mode in ["r", "w", "a", "r+", "w+", "a+"] {
                assert_eq!(program.open(name, mode), 0, "{name} {mode}");
            }
        }
        // As with fopen of a host: it opens, and cannot be read.
        let opened = program.open("directory", "r");
        assert_ne!(opened, 0);
        assert_eq!(program.read_one(10, opened), b"");
        assert_eq!(program.one(opcode::FERROR, [opened, 0, 0]), 1);
        let file = program.open("file", "r");
        assert_eq!(program.read_one(10, file), b"text");
        Ok(())
    })
}
