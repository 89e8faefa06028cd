//! Requests that no client of LLVM's libc makes.

use std::io;

use gpurpc::libc::LibcLimits;
use gpurpc::opcode;
use gpurpc::server::{Fault, IdlePolicy, Limits, Server};

use crate::rig::{
    ByLane, FAILED, Program, Result, STDIN, for_lanes, layout_of, layouts, masks, quiet, run,
    run_program, send_words,
};

/// Calls each service of streams with an invalid handle.
fn no_stream(program: &Program, file: u64) {
    let mask = 0x8000_0001;
    let ask = |opcode, words: [u64; 3]| program.ask(opcode, mask, |_| words);
    let all = |answer| for_lanes(mask, |_| answer);
    let data = for_lanes(mask, |_| b"data".to_vec());
    let write = opcode::WRITE_TO_STREAM;
    assert_eq!(program.write(write, mask, |_| file, &data), all(0));
    let nothing = for_lanes(mask, |_| Vec::new());
    assert_eq!(program.read(mask, |_| 100, |_| file), nothing);
    assert_eq!(program.fgets(mask, |_| 100, |_| file), nothing);
    assert_eq!(ask(opcode::FEOF, [file, 0, 0]), all(1));
    assert_eq!(ask(opcode::FERROR, [file, 0, 0]), all(1));
    assert_eq!(ask(opcode::FSEEK, [file, 0, 0]), all(FAILED));
    assert_eq!(ask(opcode::FTELL, [file, 0, 0]), all(FAILED));
    assert_eq!(ask(opcode::UNGETC, [u64::from(b'x'), file, 0]), all(FAILED));
    assert_eq!(ask(opcode::CLOSE_FILE, [file, 0, 0]), all(FAILED));
    ask(opcode::CLEARERR, [file, 0, 0]);
    if file != 0 {
        assert_eq!(ask(opcode::FFLUSH, [file, 0, 0]), all(FAILED));
    }
}

#[test]
fn invented_files_are_none() -> Result {
    run_program(layout_of(32), quiet(), |program| {
        for file in [0, 4, 8, 0x7fff_ffff_f000, 1 << 63, u64::MAX - 3] {
            no_stream(program, file);
        }
        Ok(())
    })
}

#[cfg(feature = "files")]
#[test]
fn closed_files_are_none() -> Result {
    let directory = tempfile::tempdir()?;
    run_program(layout_of(32), quiet().files(directory.path())?, |program| {
        let file = program.open("f", "w+");
        assert_eq!(program.one(opcode::CLOSE_FILE, [file, 0, 0]), 0);
        let other = program.open("f", "w+");
        assert_ne!(file, other);
        no_stream(program, file);
        no_stream(program, other + 4);
        assert_eq!(program.write_one(other, b"abc"), 3, "and the other one is");
        Ok(())
    })
}

#[test]
fn without_a_directory_there_is_no_file() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        run_program(layout, quiet(), |program| {
            for mask in masks(lanes) {
                let path = |_| "f".to_owned();
                assert_eq!(program.fopen(mask, path, |_| "w"), for_lanes(mask, |_| 0));
                let removed = program.messages(opcode::REMOVE, mask, &[&path]);
                assert_eq!(removed, for_lanes(mask, |_| FAILED));
                let renamed = program.messages(opcode::RENAME, mask, &[&path, &path]);
                assert_eq!(renamed, for_lanes(mask, |_| FAILED));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// A long path with many components is rejected: a lookup would use more memory than is counted.
#[cfg(feature = "files")]
#[test]
fn paths_are_bounded() -> Result {
    let directory = tempfile::tempdir()?;
    run_program(layout_of(1), quiet().files(directory.path())?, |program| {
        let path = |parts: usize| "./".repeat(parts) + "f";
        assert_ne!(program.open(&path(2047), "w"), 0);
        assert_eq!(program.open(&path(2048), "r"), 0);
        for (opcode, paths) in [(opcode::REMOVE, 1), (opcode::RENAME, 2)] {
            let long = |_| path(2048);
            let long: [&dyn Fn(u32) -> String; 2] = [&long, &long];
            assert_eq!(program.messages(opcode, 1, &long[..paths])[&0], FAILED);
        }
        let removed = program.messages(opcode::REMOVE, 1, &[&|_| path(2047)]);
        assert_eq!(removed[&0], 0);
        Ok(())
    })
}

/// A requested size uses no memory before the bytes are read.
#[test]
fn sizes_cost_nothing() -> Result {
    let server = Server::new(IdlePolicy::default());
    let limits = Limits {
        memory: 64 << 10,
        ..Limits::default()
    };
    let services = quiet().stdin(b"some\ntext".as_slice());
    run(layout_of(64), services, limits, &server, |program| {
        for size in [1 << 40, u64::MAX, i64::MAX as u64] {
            let data = program.read(u64::MAX, |_| size, |_| 0);
            assert_eq!(data, for_lanes(u64::MAX, |_| Vec::new()));
        }
        let lines = program.fgets(u64::MAX, |_| 1 << 40, |_| STDIN);
        assert_eq!(lines[&0], b"some\n\0");
        assert_eq!(lines[&1], b"text\0");
        assert_eq!(lines[&2], b"");
        let data = program.read(u64::MAX, |_| 1 << 40, |_| STDIN);
        assert_eq!(data, for_lanes(u64::MAX, |_| Vec::new()));
        assert_eq!(program.one(opcode::FERROR, [STDIN, 0, 0]), 0);
        Ok(())
    })
}

/// Bytes that were read count as messages, and are released after the call.
#[test]
fn reads_are_bounded() -> Result {
    let server = Server::new(IdlePolicy::default());
    let limits = Limits {
        memory: 100_000,
        ..Limits::default()
    };
    let services = quiet().stdin(io::repeat(b'x')).limits(LibcLimits {
        read: 30_000,
        ..LibcLimits::default()
    });
    run(layout_of(32), services, limits, &server, |program| {
        for _ in 0..3 {
            let data = program.read(0b11, |_| 1 << 40, |_| STDIN);
            assert_eq!(data, for_lanes(0b11, |_| vec![b'x'; 30_000]));
            assert_eq!(program.one(opcode::FERROR, [STDIN, 0, 0]), 1);
            program.one(opcode::CLEARERR, [STDIN, 0, 0]);
            let lines = program.fgets(0b11, |_| 1 << 40, |_| STDIN);
            assert_eq!(lines[&1].len(), 30_001);
            assert_eq!(program.one(opcode::FERROR, [STDIN, 0, 0]), 0);
            // All lanes together receive the available bytes.
            let data = program.read(u32::MAX.into(), |_| 30_000, |_| STDIN);
            let sum: usize = data.values().map(Vec::len).sum();
            assert!((60_000..=100_000).contains(&sum), "{sum}");
            assert_eq!(program.one(opcode::FERROR, [STDIN, 0, 0]), 1);
            program.one(opcode::CLEARERR, [STDIN, 0, 0]);
        }
        Ok(())
    })
}

#[test]
fn too_large_messages_drop_the_call() -> Result {
    run_program(layout_of(32), quiet(), |program| {
        for opcode in [
            opcode::WRITE_TO_STDOUT,
            opcode::OPEN_FILE,
            opcode::REMOVE,
            opcode::RENAME,
            opcode::SYSTEM,
        ] {
            let mut call = program.open_call(opcode, u32::MAX.into());
            send_words(&mut call, |lane| [u64::from(lane) << 40, 0, 0]);
            let dropped = program.fault();
            assert_eq!(dropped.opcode, opcode);
            assert!(
                matches!(dropped.fault, Fault::MessageTooLarge { size, .. } if size == 1 << 40)
            );
            assert_eq!(program.one(opcode::NOOP, [9, 0, 0]), 9);
        }
        Ok(())
    })
}

/// Any first packets leave the other ports served.
#[test]
fn noise_costs_a_port_at_most() -> Result {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for layout in layouts() {
        for _ in 0..20 {
            run_program(layout, quiet(), |program| {
                let mut calls = Vec::new();
                for (_, opcode) in opcode::ALL {
                    let mut call = program.open_call(*opcode, noise());
                    let shift = noise() % 64;
                    call.send(|packets| {
                        for lane in packets.lanes() {
                            for word in 0..8 {
                                packets.set_word(lane, word, noise() >> shift);
                            }
                        }
                    });
                    // The client neither waits nor ends: its port stays locked.
                    calls.push(call);
                }
                let data = ByLane::from([(0, b"abc".to_vec())]);
                let written = program.write(opcode::WRITE_TO_STDERR, 1, |_| 0, &data);
                assert_eq!(written[&0], 3);
                assert_eq!(program.one(opcode::NOOP, [7, 0, 0]), 7);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Their services would trust the device: no combination of functions of the host serves them.
#[test]
fn opcodes_of_openmp_and_hip_are_unknown() -> Result {
    let groups = [opcode::OPENMP_BASE, opcode::HIP_BASE];
    let known = opcode::ALL.iter().map(|(_, opcode)| *opcode);
    let mut opcodes: Vec<_> = known
        .filter(|opcode| groups.contains(&(opcode & 0xff00_0000)))
        .collect();
    assert_eq!(opcodes.len(), 5);
    opcodes.extend(groups.map(|group| group | 0x00ff_ffff));
    for layout in layouts() {
        let services = quiet()
            .host_call(|_, _| unreachable!("no call names an address of the host"))
            .memory(|_| 64, |_| ());
        run_program(layout, services, |program| {
            for opcode in &opcodes {
                let mut call = program.open_call(*opcode, 1);
                call.send(|_| ());
                let dropped = program.fault();
                assert_eq!(
                    (dropped.opcode, dropped.fault),
                    (*opcode, Fault::UnknownOpcode)
                );
            }
            Ok(())
        })?;
    }
    Ok(())
}
