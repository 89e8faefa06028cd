//! Our client, with warps of many lanes, and the servers of LLVM's libc.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use gpurpc::client::{Call, Client, HostDoorbell, HostLocks, Locks};
use gpurpc::memory::Region;
use gpurpc::{Lanes, Layout, PortIndex, opcode};
use gpurpc_tests::{Result, scratch};

use crate::programs::{EVENT, Llvm, doorbell_words, mapped};

const STDIN: u64 = 1;

/// Process of the server, watched while a client waits for it.
struct Process(Mutex<Child>);

impl Process {
    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Locks of one thread, which stops waiting for an exited server.
struct Waiting<'p> {
    locks: HostLocks,
    process: &'p Process,
}

impl Locks for Waiting<'_> {
    fn try_lock(&self, port: PortIndex) -> bool {
        self.locks.try_lock(port)
    }

    fn unlock(&self, port: PortIndex) {
        self.locks.unlock(port);
    }

    fn relax(&self) {
        self.locks.relax();
        let ended = self.process.child().try_wait();
        assert!(
            matches!(ended, Ok(None)),
            "LLVM's server has ended: {ended:?}"
        );
    }
}

type OneCall<'c> = Call<'c, Region, Waiting<'c>>;

/// Requests of a program. The lanes of its mask call together.
struct Program<'p> {
    llvm: Llvm,
    client: Client<Region, Waiting<'p>>,
    mask: u64,
}

fn send(call: &mut OneCall<'_>, words: impl Fn(u64) -> [u64; 3]) {
    call.send(|packets| {
        for lane in packets.lanes() {
            for (word, value) in words(lane.into()).into_iter().enumerate() {
                packets.set_word(lane, word, value);
            }
        }
    });
}

fn word(call: &mut OneCall<'_>, word: usize) -> Vec<u64> {
    let read = |packets: &gpurpc::Packets<'_, _>| {
        packets
            .lanes()
            .map(|lane| packets.word(lane, word))
            .collect()
    };
    call.recv(read).expect("the call is open")
}

impl Program<'_> {
    fn open(&self, opcode: u32) -> OneCall<'_> {
        let opcode = if self.llvm.is_narrow() {
            opcode & 0xffff
        } else {
            opcode
        };
        self.client.open(opcode, self.mask)
    }

    /// Value for each active lane.
    fn per_lane<T>(&self, value: impl Fn(u64) -> T) -> Vec<T> {
        Lanes::from_mask(self.mask)
            .map(|lane| value(lane.into()))
            .collect()
    }

    fn send_n(&self, call: &mut OneCall<'_>, message: impl Fn(u64) -> Vec<u8>) {
        let messages: Vec<_> = (0..64).map(message).collect();
        call.send_n(|lane| &messages[lane as usize]);
    }

    fn recv_n(&self, call: &mut OneCall<'_>) -> Vec<Vec<u8>> {
        let mut messages = vec![Vec::new(); 64];
        call.recv_n(|lane, _, bytes| messages[lane as usize].extend(bytes));
        self.per_lane(|lane| messages[lane as usize].clone())
    }

    fn ask(&self, opcode: u32, words: impl Fn(u64) -> [u64; 3]) -> Vec<u64> {
        let mut call = self.open(opcode);
        send(&mut call, words);
        word(&mut call, 0)
    }

    /// Checks the status of each lane. C's results are signed, and some have 32 bits.
    fn expect_status(&self, expected: i32, opcode: u32, words: impl Fn(u64) -> [u64; 3]) {
        let answers = self.ask(opcode, words);
        assert!(
            answers.iter().all(|answer| *answer as i32 == expected),
            "{opcode:x}: {answers:x?}"
        );
    }

    fn write(&self, opcode: u32, to: &[u64], bytes: impl Fn(u64) -> Vec<u8>) {
        let mut call = self.open(opcode);
        if opcode == opcode::WRITE_TO_STREAM {
            send(&mut call, |lane| [to[lane as usize], 0, 0]);
        }
        let end = u64::from(opcode == opcode::WRITE_TO_STDOUT_NEWLINE);
        self.send_n(&mut call, &bytes);
        let counts = self.per_lane(|lane| bytes(lane).len() as u64 + end);
        assert_eq!(word(&mut call, 0), counts, "{opcode:x}");
    }

    /// Files of each of 64 lanes, by number.
    fn fopen(&self, name: impl Fn(u64) -> String, mode: &str) -> Vec<u64> {
        let mut call = self.open(opcode::OPEN_FILE);
        self.send_n(&mut call, |lane| (name(lane) + "\0").into_bytes());
        call.send(|packets| {
            for lane in packets.lanes() {
                packets.write(lane, 0, mode.as_bytes());
            }
        });
        let opened = word(&mut call, 0);
        let mut files = vec![0; 64];
        for (lane, file) in Lanes::from_mask(self.mask).zip(opened) {
            files[lane as usize] = file;
        }
        files
    }

    fn read(&self, size: u64, from: &[u64]) -> Vec<Vec<u8>> {
        let mut call = self.open(opcode::READ_FROM_STREAM);
        send(&mut call, |lane| [size, from[lane as usize], 0]);
        let data = self.recv_n(&mut call);
        let sizes: Vec<_> = data.iter().map(|data| data.len() as u64).collect();
        assert_eq!(word(&mut call, 0), sizes);
        data
    }

    fn fgets(&self, size: u64, from: &[u64]) -> Vec<Vec<u8>> {
        let mut call = self.open(opcode::READ_FGETS);
        send(&mut call, |lane| [size, from[lane as usize], 0]);
        self.recv_n(&mut call)
    }

    /// Prints a number, a string and a character for each lane.
    fn print(&self, opcode: u32, packed: bool, to: Option<&[u64]>) {
        let text = |lane: u64| "t".repeat(lane as usize * 3 % 90);
        let mut call = self.open(opcode);
        if let Some(to) = to {
            send(&mut call, |lane| [to[lane as usize], 0, 0]);
        }
        self.send_n(&mut call, |_| b"%d %s %c\n\0".to_vec());
        let size = if packed { 16 } else { 20 };
        assert_eq!(word(&mut call, 0), self.per_lane(|_| size));
        self.send_n(&mut call, |lane| {
            let mut bytes = (lane as u32).to_ne_bytes().to_vec();
            bytes.resize(if packed { 4 } else { 8 }, 0);
            bytes.extend((0x1000 + lane).to_ne_bytes());
            bytes.extend(u32::from(b'c').to_ne_bytes());
            bytes
        });
        assert_eq!(word(&mut call, 1), self.per_lane(|lane| 0x1000 + lane));
        self.send_n(&mut call, |lane| (text(lane) + "\0").into_bytes());
        let ends = call.recv(|packets| {
            let read = |lane| (packets.word(lane, 0), packets.word(lane, 1));
            packets.lanes().map(read).collect::<Vec<_>>()
        });
        let printed = |lane| format!("{lane} {} c\n", text(lane)).len() as u64;
        assert_eq!(
            ends.unwrap_or_default(),
            self.per_lane(|lane| (printed(lane), 0))
        );
    }

    fn paths(&self, opcode: u32, names: &[&dyn Fn(u64) -> String]) -> Vec<i32> {
        let mut call = self.open(opcode);
        for name in names {
            self.send_n(&mut call, |lane| (name(lane) + "\0").into_bytes());
        }
        word(&mut call, 0)
            .iter()
            .map(|status| *status as i32)
            .collect()
    }

    fn files(&self) {
        let name = |lane| format!("file-{lane}");
        let text = |lane: u64| {
            format!("line {lane}\n")
                .repeat(lane as usize % 13 + 2)
                .into_bytes()
        };
        let files = self.fopen(name, "w+");
        let file = |lane: u64| [files[lane as usize], 0, 0];
        self.write(opcode::WRITE_TO_STREAM, &files, text);
        assert_eq!(
            self.ask(opcode::FTELL, file),
            self.per_lane(|lane| text(lane).len() as u64)
        );
        self.expect_status(0, opcode::FFLUSH, file);
        self.expect_status(0, opcode::FSEEK, file);
        assert_eq!(self.read(1000, &files), self.per_lane(text));
        assert!(
            self.ask(opcode::FEOF, file)
                .iter()
                .all(|end| *end as i32 != 0)
        );
        self.expect_status(0, opcode::FERROR, file);
        self.ask(opcode::CLEARERR, file);
        self.expect_status(0, opcode::FEOF, file);
        self.expect_status(0, opcode::FSEEK, |lane| [files[lane as usize], 5, 0]);
        let rest = |lane| format!("{lane}\n\0").into_bytes();
        assert_eq!(self.fgets(100, &files), self.per_lane(rest));
        self.expect_status(88, opcode::UNGETC, |lane| [88, files[lane as usize], 0]);
        assert_eq!(self.fgets(5, &files), self.per_lane(|_| b"Xlin\0".to_vec()));
        self.expect_status(0, opcode::FSEEK, |lane| [files[lane as usize], 0, 2]);
        assert_eq!(self.fgets(5, &files), self.per_lane(|_| Vec::new()));
        self.print(opcode::PRINTF_TO_STREAM, false, Some(&files));
        self.print(opcode::PRINTF_TO_STREAM_PACKED, true, Some(&files));
        self.expect_status(0, opcode::CLOSE_FILE, file);

        let mut last: &dyn Fn(u64) -> String = &name;
        let other = |lane| format!("other-{lane}");
        if !self.llvm.is_narrow() {
            assert_eq!(
                self.paths(opcode::RENAME, &[&name, &other]),
                self.per_lane(|_| 0)
            );
            assert_eq!(
                self.paths(opcode::RENAME, &[&name, &other]),
                self.per_lane(|_| -1)
            );
            last = &other;
            let command = |lane| format!("exit {}", lane % 7);
            let statuses = self.per_lane(|lane| (lane as i32 % 7) << 8);
            assert_eq!(self.paths(opcode::SYSTEM, &[&command]), statuses);
        }
        assert_eq!(self.paths(opcode::REMOVE, &[last]), self.per_lane(|_| 0));
        assert_eq!(self.paths(opcode::REMOVE, &[last]), self.per_lane(|_| -1));
        assert!(self.fopen(last, "r").iter().all(|file| *file == 0));
    }

    fn all(&self) {
        self.open(opcode::NOOP).send(|_| {});
        let increments = self.ask(opcode::TEST_INCREMENT, |lane| [lane * 1000, 0, 0]);
        assert_eq!(increments, self.per_lane(|lane| lane * 1000 + 1));
        for n in [0, 1, 55, 56, 57, 400] {
            let text = |lane: u64| vec![lane as u8; ((n + lane * 37) % 500) as usize];
            let mut call = self.open(opcode::TEST_STREAM);
            self.send_n(&mut call, text);
            assert_eq!(self.recv_n(&mut call), self.per_lane(text));
        }
        let addresses = self.ask(opcode::MALLOC, |lane| [100 + lane, 0, 0]);
        assert!(addresses.iter().all(|address| *address != 0));
        let mut addresses = addresses.iter();
        self.open(opcode::FREE).send(|packets| {
            for lane in packets.lanes() {
                packets.set_word(lane, 0, addresses.next().copied().unwrap_or(0));
            }
        });
        self.files();
        for opcode in [opcode::WRITE_TO_STDOUT, opcode::WRITE_TO_STDERR] {
            self.write(opcode, &[], |lane| format!("write {lane}\n").into_bytes());
        }
        self.write(opcode::WRITE_TO_STDOUT_NEWLINE, &[], |lane| {
            format!("puts {lane}").into_bytes()
        });
        self.print(opcode::PRINTF_TO_STDOUT, false, None);
        self.print(opcode::PRINTF_TO_STDOUT_PACKED, true, None);
        self.print(opcode::PRINTF_TO_STDERR, false, None);
        self.print(opcode::PRINTF_TO_STDERR_PACKED, true, None);
        // Lines of the input, in the order of lanes.
        let lines = Lanes::from_mask(self.mask).enumerate();
        let lines: Vec<_> = lines
            .map(|(n, _)| format!("line {n}\n\0").into_bytes())
            .collect();
        assert_eq!(self.fgets(100, &[STDIN; 64]), lines);
    }

    /// Output of all calls of the program to a stream.
    fn written(&self, to_stdout: bool) -> String {
        let each = |line: &dyn Fn(u64) -> String| self.per_lane(line).concat();
        let printed = each(&|lane| format!("{lane} {} c\n", "t".repeat(lane as usize * 3 % 90)));
        let puts = each(&|lane| format!("puts {lane}\n"));
        let written = each(&|lane| format!("write {lane}\n"));
        let puts = if to_stdout { puts } else { String::new() };
        written + &puts + &printed + &printed
    }
}

fn is_asked(llvm: Llvm) -> Result<()> {
    let dir = scratch()?;
    let (server, generation) = (llvm.server(dir.path())?, llvm.generation()?);
    for (ports, lanes, mask) in [
        (1, 1, 1),
        (1, 32, u64::MAX),
        (64, 32, 0x9e37_79b9),
        (3, 64, u64::MAX),
        (generation.max_ports, 64, 0x9e37_79b9_7f4a_7c15),
    ] {
        let directory = tempfile::tempdir_in(dir.path())?;
        let layout = Layout::with_generation(generation, ports, lanes)?;
        one_program(llvm, &server, directory.path(), layout, mask)?;
    }
    Ok(())
}

fn one_program(llvm: Llvm, server: &Path, dir: &Path, layout: Layout, mask: u64) -> Result<()> {
    let memory = dir.join("memory");
    let region = mapped(&memory, layout)?;
    let (out, errors) = (dir.join("out"), dir.join("errors"));
    let mut child = Command::new(server)
        .current_dir(dir)
        .arg(&memory)
        .args([layout.ports(), layout.lanes()].map(|number| number.to_string()))
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(&out)?)
        .stderr(std::fs::File::create(&errors)?)
        .spawn()?;
    let lines: String = (0..64).map(|n| format!("line {n}\n")).collect();
    // Small enough for a pipe, whose end is the end of the input.
    let input = child.stdin.take();
    input.ok_or("no input")?.write_all(lines.as_bytes())?;
    let process = Process(Mutex::new(child));
    let locks = Waiting {
        locks: HostLocks::yielding(),
        process: &process,
    };
    let mut client = Client::new(region.clone(), locks);
    let words = doorbell_words(&region);
    if layout.generation().has_doorbell() {
        let [value, mailbox] = words.map(NonNull::cast);
        // SAFETY: the region outlives the client; both processes access the words only atomically.
        let doorbell = unsafe { HostDoorbell::from_addresses(value, mailbox, EVENT) };
        client = client.with_doorbell(doorbell)?;
    }
    let program = Program {
        llvm,
        client,
        mask: mask & layout.lane_mask(),
    };
    program.all();
    let mut exit = program.open(opcode::EXIT);
    exit.send(|_| {});
    exit.recv(|_| {});
    send(&mut exit, |_| [42, 0, 0]);
    drop(exit);
    let status = process.child().wait()?;
    assert_eq!(status.code(), Some(42), "{layout:?}");
    if layout.generation().has_doorbell() {
        // SAFETY: as above.
        let words = words.map(|word| unsafe { word.as_ref() }.load(Ordering::Relaxed));
        // The server exits in the last call.
        assert_eq!(words, [1, EVENT.into()], "{layout:?}");
    }
    assert_eq!(std::fs::read_to_string(out)?, program.written(true));
    assert_eq!(std::fs::read_to_string(errors)?, program.written(false));
    Ok(())
}

#[test]
#[ignore = "needs the server of LLVM 19: ./tests/run --all"]
fn heavy_llvm_19s_server_answers() -> Result<()> {
    is_asked(Llvm(19))
}

#[test]
#[ignore = "needs the server of LLVM 21: ./tests/run --all"]
fn heavy_llvm_21s_server_answers() -> Result<()> {
    is_asked(Llvm(21))
}

#[test]
#[ignore = "needs the server of LLVM 22: ./tests/run --all"]
fn heavy_llvm_22s_server_answers() -> Result<()> {
    is_asked(Llvm(22))
}

#[test]
#[ignore = "needs the server of LLVM 23: ./tests/run --all"]
fn heavy_llvm_23s_server_answers() -> Result<()> {
    is_asked(Llvm(23))
}
