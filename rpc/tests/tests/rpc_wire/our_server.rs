//! Programs of LLVM's libc, with warps of many diverging lanes, and our server.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;

use gpurpc::libc::{LibcLimits, Services};
use gpurpc::server::{Device, Doorbell, Handlers, IdlePolicy, Limits, Server};
use gpurpc::{Layout, opcode};
use gpurpc_tests::{Result, scratch};

use crate::Sink;
use crate::programs::{EVENT, Llvm, doorbell_words, mapped};

/// Ports, lanes and warps.
const SHAPES: [(u32, u32, u32); 4] = [(1, 1, 2), (2, 32, 3), (64, 32, 3), (64, 64, 3)];

/// Services of LLVM's tests. LLVM's server has one count for all lanes of `TEST_INTERFACE`; here
/// each lane has one.
fn tests(handlers: &mut Handlers, opcode: impl Fn(u32) -> u32) -> Result<()> {
    handlers.on_warp(opcode(opcode::TEST_INCREMENT), 1, |warp| {
        for lane in warp.lanes() {
            warp.set_word(lane, 0, warp.input().get(lane)[0] + 1);
        }
    })?;
    handlers.on_blocking(opcode(opcode::TEST_STREAM), |call| {
        let messages = call.recv_n()?;
        call.send_n(|lane| messages.get(lane).unwrap_or_default())
    })?;
    handlers.on_blocking(opcode(opcode::TEST_INTERFACE), |call| {
        let mut counts = [0; 64];
        let mut ends_with_recv = false;
        call.recv(|packets| {
            for lane in packets.lanes() {
                ends_with_recv = packets.word(lane, 0) != 0;
            }
        })?;
        let last = if ends_with_recv { 'r' } else { 's' };
        for step in "rsrsrrss".chars().chain([last]) {
            if step == 'r' {
                call.recv(|packets| {
                    for lane in packets.lanes() {
                        counts[lane as usize] = packets.word(lane, 0);
                    }
                })?;
            } else {
                call.send(|packets| {
                    for lane in packets.lanes() {
                        counts[lane as usize] += 1;
                        packets.set_word(lane, 0, counts[lane as usize]);
                    }
                })?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Requests of a program to the host.
#[derive(Default)]
struct Seen {
    out: Sink,
    errors: Sink,
    exits: Arc<Mutex<Vec<i32>>>,
    live: Arc<Mutex<BTreeMap<u64, u32>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no panic while it is held")
}

/// Runs the program to its end; a fault of the server ends it. Returns its lanes.
fn run(
    llvm: Llvm,
    program: &Path,
    dir: &Path,
    (ports, lanes, warps): (u32, u32, u32),
    seen: &Seen,
) -> Result<Vec<u64>> {
    let child = Arc::new(Mutex::new(None::<Child>));
    let mut handlers = Handlers::new();
    let opcode = |opcode| {
        if llvm.is_narrow() {
            opcode & 0xffff
        } else {
            opcode
        }
    };
    tests(&mut handlers, opcode)?;
    let (ended, faults) = (Arc::clone(&child), Arc::clone(&seen.faults));
    handlers.on_fault(move |dropped| {
        lock(&faults).push(format!("{:x}: {}", dropped.opcode, dropped.fault));
        if let Some(child) = &mut *lock(&ended) {
            let _ = child.kill();
        }
    });
    let input: String = (0..warps * 64).map(|n| format!("line {n}\n")).collect();
    let (exits, live, freed) = (
        Arc::clone(&seen.exits),
        Arc::clone(&seen.live),
        Arc::clone(&seen.live),
    );
    Services::new()
        .stdin(Cursor::new(input))
        .stdout(seen.out.clone())
        .stderr(seen.errors.clone())
        .files(dir)?
        .limits(LibcLimits {
            files: 64 * warps as usize,
            ..LibcLimits::default()
        })
        .memory(
            move |size| {
                *lock(&live).entry(size * 16).or_default() += 1;
                size * 16
            },
            move |address| *lock(&freed).entry(address).or_default() -= 1,
        )
        .system(|command| match command.to_bytes() {
            [b'e', b'x', b'i', b't', b' ', status] => i32::from(status - b'0') << 8,
            _ => -1,
        })
        .host_call(|function, arguments| {
            let words = arguments.chunks(8).map(|word| {
                let word = word.try_into().expect("the program sends words");
                u64::from_ne_bytes(word)
            });
            function + words.sum::<u64>()
        })
        .on_exit(move |status| lock(&exits).push(status))
        .register(&mut handlers)?;

    let memory = dir.join("memory");
    let generation = llvm.generation()?;
    let layout = Layout::with_generation(generation, ports, lanes)?;
    let region = mapped(&memory, layout)?;
    let server = Server::new(IdlePolicy::default());
    let mut device = Device::new(region.clone(), Arc::new(handlers), Limits::default());
    let [value, mailbox] = doorbell_words(&region);
    if generation.has_doorbell() {
        // SAFETY: the region outlives the device; the words are only accessed atomically.
        let doorbell = unsafe { Doorbell::new(value.cast(), mailbox.cast(), EVENT) };
        device = device.with_doorbell(doorbell)?;
    }
    server.add_device(device);
    let mut started = Command::new(program)
        .arg(&memory)
        .args([ports, lanes, warps].map(|number| number.to_string()))
        .arg("ours")
        // The doorbell contains addresses of this process.
        .args(
            generation
                .has_doorbell()
                .then(|| format!("{:p}", region.start())),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (mut out, mut errors) = (started.stdout.take(), started.stderr.take());
    *lock(&child) = Some(started);
    let (mut said, mut complained) = (String::new(), String::new());
    let status = thread::scope(|scope| -> Result<ExitStatus> {
        scope.spawn(|| server.serve());
        // Small enough for a pipe.
        let _ = out.as_mut().map(|out| out.read_to_string(&mut said));
        let errors = errors.as_mut();
        let _ = errors.map(|errors| errors.read_to_string(&mut complained));
        let status = lock(&child).as_mut().map(Child::wait);
        match &status {
            Some(Ok(status)) if status.success() => server.drain(),
            // The program has left calls open.
            _ => server.stop(),
        }
        Ok(status.ok_or("no program")??)
    })?;
    std::fs::remove_file(&memory)?;
    let faults = lock(&seen.faults).join(", ");
    if !status.success() || !faults.is_empty() {
        return Err(
            format!("{ports} ports, {lanes} lanes: {status}, {faults}\n{complained}").into(),
        );
    }
    if generation.has_doorbell() {
        // SAFETY: as above.
        let words = [value, mailbox].map(|word| unsafe { word.as_ref() }.load(Ordering::Relaxed));
        assert_eq!(
            words,
            [0, EVENT.into()],
            "no call is open, and some have rung"
        );
    }
    let mut ids = Vec::new();
    for line in said.lines() {
        ids.push(line.parse()?);
    }
    Ok(ids)
}

fn sorted(text: &[u8]) -> Result<Vec<String>> {
    let text = std::str::from_utf8(text)?;
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

fn is_served(llvm: Llvm) -> Result<()> {
    let dir = scratch()?;
    let program = llvm.client(dir.path())?;
    for shape in SHAPES {
        let directory = tempfile::tempdir_in(dir.path())?;
        let seen = Seen::default();
        let ids = run(llvm, &program, directory.path(), shape, &seen)?;
        assert!(
            ids.len() as u32 >= shape.1 * shape.2 / 3,
            "{shape:?}: {ids:?}"
        );

        let (mut out, mut errors) = (Vec::new(), Vec::new());
        for (n, id) in ids.iter().enumerate() {
            out.push(format!("fwrite {id}"));
            out.push(format!("puts {id}"));
            out.push(format!("got line {n}"));
            errors.push(format!("stderr {id}"));
            for to in [&mut out, &mut errors] {
                to.push(format!("printf {id} packed"));
                to.push(format!("printf {id} padded"));
            }
        }
        out.sort();
        errors.sort();
        assert_eq!(sorted(&lock(&seen.out.0))?, out, "{shape:?}");
        assert_eq!(sorted(&lock(&seen.errors.0))?, errors, "{shape:?}");
        assert_eq!(*lock(&seen.exits), [42], "{shape:?}");
        let live = lock(&seen.live);
        assert_eq!(live.len(), ids.len(), "{shape:?}");
        assert!(
            live.values().all(|count| *count == 0),
            "{shape:?}: {live:?}"
        );
        // The program has removed its files.
        let left = ids
            .iter()
            .filter(|id| id.is_multiple_of(2) && !llvm.is_narrow());
        assert_eq!(std::fs::read_dir(directory.path())?.count(), left.count());
    }
    Ok(())
}

#[test]
#[ignore = "needs the sources of LLVM 19: ./tests/run --all"]
fn heavy_programs_of_llvm_19_are_served() -> Result<()> {
    is_served(Llvm(19))
}

#[test]
#[ignore = "needs the sources of LLVM 21: ./tests/run --all"]
fn heavy_programs_of_llvm_21_are_served() -> Result<()> {
    is_served(Llvm(21))
}

#[test]
#[ignore = "needs the sources of LLVM 22: ./tests/run --all"]
fn heavy_programs_of_llvm_22_are_served() -> Result<()> {
    is_served(Llvm(22))
}

#[test]
#[ignore = "needs the sources of LLVM 23: ./tests/run --all"]
fn heavy_programs_of_llvm_23_are_served() -> Result<()> {
    is_served(Llvm(23))
}
