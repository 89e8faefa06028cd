//! Files, standard streams, memory and panics of a warp with one lane.

#[path = "support/serve.rs"]
mod serve;

use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use gpurpc::libc::Services;
use gpurpc::server::Handlers;
use gpurpc_device::alloc::HostAllocator;
use gpurpc_device::fs::{File, OpenOptions, remove_file, rename};
use gpurpc_device::io::{self, Error, Read, Seek, SeekFrom, Write};
use gpurpc_device::{host, thread};
use tempfile::TempDir;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Runs a program with a directory for its files.
fn with_files<T>(program: impl FnOnce(&TempDir) -> T) -> T {
    let root = tempfile::tempdir().expect("a directory");
    let services = Services::new().files(root.path()).expect("it exists");
    serve::run(1, services, Handlers::new(), || program(&root)).0
}

#[test]
fn files_are_written_and_read() -> Result {
    with_files(|root| {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mut file = File::create("data")?;
        file.write_all(&bytes)?;
        file.flush()?;
        drop(file);
        assert_eq!(fs::read(root.path().join("data"))?, bytes);

        let mut file = File::open("data")?;
        let mut part = [0; 300];
        assert_eq!(file.read(&mut part)?, 300);
        assert_eq!(part, bytes[..300]);
        assert_eq!(file.stream_position()?, 300);
        assert_eq!(file.seek(SeekFrom::End(-3))?, 997);
        assert_eq!(file.read(&mut part)?, 3);
        assert_eq!(part[..3], bytes[997..]);
        assert_eq!(file.read(&mut part)?, 0);
        assert_eq!(file.seek(SeekFrom::Start(10))?, 10);
        assert_eq!(file.seek(SeekFrom::Current(5))?, 15);
        file.read_exact(&mut part[..2])?;
        assert_eq!(part[..2], bytes[15..17]);
        assert_eq!(file.read(&mut [])?, 0);
        // The file was opened for reading.
        assert_eq!(file.write(b"x"), Err(Error::Host));
        Ok(())
    })
}

#[test]
fn lines_are_read() -> Result {
    with_files(|root| {
        fs::write(root.path().join("text"), "one\n\nthree is longer\nlast")?;
        let mut file = File::open("text")?;
        let mut lines = Vec::new();
        let mut line = [0; 8];
        while let size @ 1.. = file.read_line(&mut line)? {
            lines.push(String::from_utf8(line[..size].to_vec())?);
        }
        assert_eq!(lines, ["one\n", "\n", "three i", "s longe", "r\n", "last"]);
        assert_eq!(file.read_line(&mut line[..1]), Err(Error::InvalidInput));
        Ok(())
    })
}

#[test]
fn write_formats() -> Result {
    with_files(|root| {
        let mut file = File::create("text")?;
        write!(file, "e {:>6}", 2.75)?;
        drop(file);
        assert_eq!(fs::read_to_string(root.path().join("text"))?, "e   2.75");
        Ok(())
    })
}

#[test]
fn options_are_modes_of_fopen() -> Result {
    with_files(|root| {
        let path = root.path().join("file");
        let content = || fs::read_to_string(&path);
        let open = |options: &mut OpenOptions| options.open("file");
        let options = OpenOptions::new;

        // Reading and updating create no file.
        assert_eq!(open(options().read(true)).err(), Some(Error::Host));
        let both = open(options().read(true).write(true));
        assert_eq!(both.err(), Some(Error::Host));
        open(options().write(true).create_new(true))?.write_all(b"new")?;
        assert_eq!(content()?, "new");
        let again = open(options().read(true).write(true).create_new(true));
        assert_eq!(again.err(), Some(Error::Host));
        open(options().append(true).create(true))?.write_all(b"er")?;
        assert_eq!(content()?, "newer");
        open(options().read(true).write(true))?.write_all(b"f")?;
        assert_eq!(content()?, "fewer");
        let mut both = open(options().read(true).append(true).create(true))?;
        both.write_all(b"!")?;
        both.seek(SeekFrom::Start(0))?;
        let mut bytes = [0; 8];
        assert_eq!(both.read(&mut bytes)?, 6);
        assert_eq!(&bytes[..6], b"fewer!");
        let whole = options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .clone();
        whole.open("file")?.write_all(b"w")?;
        assert_eq!(content()?, "w");

        let none = [
            options(),
            options().write(true).clone(),
            options().read(true).truncate(true).clone(),
            options().append(true).truncate(true).create(true).clone(),
            options().read(true).create(true).clone(),
        ];
        for options in none {
            assert_eq!(
                options.open("file").err(),
                Some(Error::InvalidInput),
                "{options:?}"
            );
        }
        Ok(())
    })
}

#[test]
fn paths_stay_below_the_root() -> Result {
    with_files(|root| {
        fs::write(root.path().join("here"), "")?;
        rename("here", "there")?;
        assert!(root.path().join("there").is_file());
        assert_eq!(rename("here", "there"), Err(Error::Host));
        remove_file("there")?;
        assert_eq!(remove_file("there"), Err(Error::Host));
        for path in ["../outside", "/etc/passwd", ""] {
            assert_eq!(File::open(path).err(), Some(Error::Host), "{path}");
        }
        assert_eq!(File::open("a\0b").err(), Some(Error::InvalidInput));
        assert_eq!(rename("a", "\0"), Err(Error::InvalidInput));
        assert_eq!(remove_file("\0"), Err(Error::InvalidInput));
        Ok(())
    })
}

/// Each lane has its own file, and its own result.
#[test]
fn lanes_open_their_own_files() -> Result {
    let root = tempfile::tempdir()?;
    let services = Services::new().files(root.path())?;
    for lane in (0..32).step_by(2) {
        fs::write(root.path().join(lane.to_string()), "x".repeat(lane))?;
    }
    let kernel = || {
        let lane = thread::lane() as usize;
        let mut text = [0; 64];
        // An error of a lane is no reason to leave: all lanes open, and those with a file read.
        let read = File::open(&lane.to_string()).and_then(|mut file| file.read(&mut text));
        let expected = if lane % 2 == 0 {
            Ok(lane)
        } else {
            Err(Error::Host)
        };
        assert_eq!(read, expected);
    };
    serve::run(32, services, Handlers::new(), || {
        host::launch(1, 32, 32, kernel)
    });
    Ok(())
}

#[test]
fn files_need_a_root() {
    let open = || File::create("file").err();
    let error = serve::run(1, Services::new(), Handlers::new(), open).0;
    assert_eq!(error, Some(Error::Host));
}

#[test]
fn standard_streams_are_those_of_the_host() -> Result {
    let services = Services::new().stdin("first line\nsecond".as_bytes());
    let program = || -> io::Result<()> {
        let mut bytes = [0; 32];
        assert_eq!(io::stdin().read_line(&mut bytes)?, 11);
        assert_eq!(&bytes[..11], b"first line\n");
        assert_eq!(io::stdin().read(&mut bytes)?, 6);
        assert_eq!(io::stdin().read(&mut bytes)?, 0);
        assert_eq!(io::stdin().read_line(&mut bytes)?, 0);
        io::stdout().write_all(b"out")?;
        io::stdout().flush()?;
        assert_eq!(io::stderr().write(b"")?, 0);
        io::stderr().write_all(&[b'e'; 1000])
    };
    let (result, served) = serve::run(1, services, Handlers::new(), program);
    result?;
    assert_eq!(served.stdout, "out");
    assert_eq!(served.stderr, "e".repeat(1000));
    Ok(())
}

/// Allocations of the host, by address.
type Allocations = Arc<Mutex<BTreeMap<u64, Layout>>>;

#[test]
fn allocations_are_aligned_and_freed() {
    let allocations = Allocations::default();
    let (made, freed) = (Arc::clone(&allocations), Arc::clone(&allocations));
    let alloc = move |size: u64| {
        let layout = Layout::from_size_align(size as usize, 16).expect("small");
        // SAFETY: the size is not zero.
        let address = unsafe { std::alloc::alloc(layout) } as u64;
        made.lock().expect("no panic").insert(address, layout);
        address
    };
    let free = move |address: u64| {
        let layout = freed.lock().expect("no panic").remove(&address);
        // SAFETY: made above.
        unsafe { std::alloc::dealloc(address as *mut u8, layout.expect("allocated")) };
    };
    let services = Services::new().memory(alloc, free);
    let program = || {
        for align in [1, 8, 16, 32, 256, 4096] {
            let layout = Layout::from_size_align(100, align).expect("small");
            // SAFETY: written within the size, and freed with the same layout.
            unsafe {
                let memory = HostAllocator.alloc(layout);
                assert_eq!(memory.addr() % align, 0);
                memory.write_bytes(0xa5, 100);
                let larger = HostAllocator.realloc(memory, layout, 1000);
                assert_eq!(larger.add(99).read(), 0xa5);
                let layout = Layout::from_size_align(1000, align).expect("small");
                HostAllocator.dealloc(larger, layout);
            }
        }
    };
    serve::run(1, services, Handlers::new(), program);
    assert_eq!(allocations.lock().expect("no panic").len(), 0);

    // A host without memory.
    let layout = Layout::new::<[u64; 100]>();
    // SAFETY: the size is not zero.
    let alloc = || unsafe { HostAllocator.alloc(layout) }.is_null();
    assert!(serve::run(1, Services::new(), Handlers::new(), alloc).0);
}
