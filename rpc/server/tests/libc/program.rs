//! Exit of the program, its memory, host calls.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use gpurpc::libc::LibcLimits;
use gpurpc::opcode;
use gpurpc::server::{Fault, IdlePolicy, Limits, Server};

use crate::rig::{
    ByLane, FAILED, Program, Result, for_lanes, layout_of, layouts, masks, quiet, run, run_program,
    send_words, word,
};

/// Exits as LLVM's client does: it waits for an answer before it sends the status, which ends the program.
fn end<T: Debug>(
    program: &Program,
    (opcode, mask): (u32, u64),
    ended: &Receiver<T>,
    status: impl Fn(u32) -> i32,
) {
    let mut call = program.open_call(opcode, mask);
    call.send(|_| {});
    call.recv(|_| ());
    if let Ok(ended) = ended.try_recv() {
        panic!("ended by the first packet: {ended:?}");
    }
    // An `int` is the first half in memory, in either byte order; only that half is the status.
    let word = |lane| {
        let [a, b, c, d] = status(lane).to_ne_bytes();
        u64::from_ne_bytes([a, b, c, d, 0xde, 0xad, 0xbe, 0xef])
    };
    send_words(&mut call, |lane| [word(lane), 0, 0]);
}

#[test]
fn the_first_lane_determines_the_status() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let (exited, statuses) = channel();
        let services = quiet().on_exit(move |status| {
            let _ = exited.send(status);
        });
        run_program(layout, services, |program| {
            for mask in masks(lanes) {
                let status = |lane| lane as i32 + 40;
                end(program, (opcode::EXIT, mask), &statuses, status);
                assert_eq!(statuses.recv()?, mask.trailing_zeros() as i32 + 40);
            }
            end(program, (opcode::EXIT, 1), &statuses, |_| -1);
            assert_eq!(statuses.recv()?, -1);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn an_exit_can_stop_the_server() -> Result {
    let server = Arc::new(Server::new(IdlePolicy::default()));
    let (weak, (exited, statuses)) = (Arc::downgrade(&server), channel());
    let services = quiet().on_exit(move |status| {
        let _ = exited.send(status);
        if let Some(server) = weak.upgrade() {
            server.stop();
        }
    });
    run(
        layout_of(1),
        services,
        Limits::default(),
        &server,
        |program| {
            end(program, (opcode::EXIT, 1), &statuses, |_| 3);
            // Another thread may serve until the exit: here it is this one.
            server.serve();
            assert_eq!(statuses.try_recv()?, 3);
            Ok(())
        },
    )
}

#[test]
fn an_abort_does_not_end_this_process() -> Result {
    let (aborted, aborts) = channel();
    let services = quiet().on_abort(move || {
        let _ = aborted.send(());
    });
    run_program(layout_of(32), services, |program| {
        end(program, (opcode::ABORT, 0xff00), &aborts, |_| 0);
        aborts.recv()?;
        Ok(())
    })?;
    // The calls are answered even without functions for them.
    run_program(layout_of(32), quiet(), |program| {
        let (_sender, never) = channel::<()>();
        end(program, (opcode::ABORT, 1), &never, |_| 0);
        end(program, (opcode::EXIT, 1), &never, |_| 0);
        assert_eq!(program.one(opcode::NOOP, [5, 0, 0]), 5);
        Ok(())
    })
}

#[test]
fn an_exit_of_no_lane_is_dropped() -> Result {
    let services = quiet().on_exit(|status| panic!("exited with {status}"));
    run_program(layout_of(32), services, |program| {
        let (_sender, never) = channel::<()>();
        end(program, (opcode::EXIT, 0), &never, |_| 0);
        let dropped = program.fault();
        assert_eq!(dropped.opcode, opcode::EXIT);
        assert!(matches!(dropped.fault, Fault::Other(_)), "{dropped:?}");
        Ok(())
    })
}

/// The host records each allocation, up to a limit.
#[test]
fn allocations_are_counted() -> Result {
    let next = AtomicU64::new(0x1000);
    let services = quiet()
        .memory(move |_| next.fetch_add(16, Ordering::Relaxed), |_| {})
        .limits(LibcLimits {
            allocations: 40,
            ..LibcLimits::default()
        });
    run_program(layout_of(32), services, |program| {
        let all = u64::from(u32::MAX);
        let allocate = |mask| {
            let addresses = program.ask(opcode::MALLOC, mask, |_| [8, 0, 0]);
            addresses
                .into_values()
                .filter(|address| *address != 0)
                .count()
        };
        assert_eq!([allocate(all), allocate(all), allocate(all)], [32, 8, 0]);
        let mut call = program.open_call(opcode::FREE, 1);
        send_words(&mut call, |_| [0x1000, 0, 0]);
        call.recv(|_| ());
        drop(call);
        assert_eq!([allocate(all), allocate(all)], [1, 0]);
        Ok(())
    })
}

#[test]
fn memory_is_freed_once() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let next = AtomicU64::new(0x1000);
        let freed = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&freed);
        let services = quiet().memory(
            move |size| match size {
                1.. => next.fetch_add(size, Ordering::Relaxed),
                0 => 0,
            },
            move |address| {
                seen.lock()
                    .expect("no panic while the lock is held")
                    .push(address)
            },
        );
        run_program(layout, services, |program| {
            let mut at = 0x1000;
            for mask in masks(lanes) {
                let sizes = for_lanes(mask, |lane| u64::from(lane % 3) * 16);
                let addresses = program.ask(opcode::MALLOC, mask, |lane| [sizes[&lane], 0, 0]);
                let mut expected = ByLane::new();
                for (lane, size) in &sizes {
                    expected.insert(*lane, if *size > 0 { at } else { 0 });
                    at += size;
                }
                assert_eq!(addresses, expected);
                let free = |address: &dyn Fn(u32) -> u64| {
                    let mut call = program.open_call(opcode::FREE, mask);
                    send_words(&mut call, |lane| [address(lane), 0, 0]);
                    // LLVM's client does not wait for the answer.
                    call.recv(|_| ());
                };
                free(&|lane| addresses[&lane]);
                // Freed again, invented, and null.
                free(&|lane| addresses[&lane]);
                free(&|lane| u64::from(lane) * 8);
                let mut expected: Vec<u64> = expected.into_values().collect();
                expected.retain(|address| *address != 0);
                let mut freed = freed.lock().expect("no panic while the lock is held");
                assert_eq!(std::mem::take(&mut *freed), expected);
            }
            Ok(())
        })?;
    }
    run_program(layout_of(32), quiet(), |program| {
        assert_eq!(
            program.ask(opcode::MALLOC, 0xf, |_| [64, 0, 0]),
            for_lanes(0xf, |_| 0)
        );
        let mut call = program.open_call(opcode::FREE, 0xf);
        send_words(&mut call, |_| [64, 0, 0]);
        Ok(())
    })
}

#[test]
fn commands_are_run_by_the_host_only() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let services = quiet().system(|command| command.to_bytes().len() as i32 - 10);
        run_program(layout, services, |program| {
            for mask in masks(lanes) {
                let command = |lane| "c".repeat(lane as usize * 3);
                let statuses = program.messages(opcode::SYSTEM, mask, &[&command]);
                let status = |lane| (i64::from(lane) * 3 - 10) as u64;
                assert_eq!(statuses, for_lanes(mask, status));
                // A command without a NUL is invalid.
                let mut call = program.open_call(opcode::SYSTEM, mask);
                call.send_n(|_| b"true");
                assert_eq!(word(&mut call), for_lanes(mask, |_| FAILED));
            }
            Ok(())
        })?;
        run_program(layout, quiet(), |program| {
            for mask in masks(lanes) {
                let statuses = program.messages(opcode::SYSTEM, mask, &[&|_| "true".to_owned()]);
                assert_eq!(statuses, for_lanes(mask, |_| FAILED));
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn host_call(program: &Program, mask: u64) -> ByLane<u64> {
    let arguments: Vec<Vec<u8>> = (0..64).map(|lane| vec![lane; lane as usize * 2]).collect();
    let mut call = program.open_call(opcode::HOST_CALL, mask);
    call.send_n(|lane| &arguments[lane as usize]);
    send_words(&mut call, |lane| [u64::from(lane) << 40, 0, 0]);
    word(&mut call)
}

#[test]
fn functions_of_the_host_are_called_by_the_host_only() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let services = quiet().host_call(|function, arguments| {
            assert!(
                arguments
                    .iter()
                    .all(|byte| u64::from(*byte) << 40 == function)
            );
            function | arguments.len() as u64
        });
        run_program(layout, services, |program| {
            for mask in masks(lanes) {
                let result = |lane| (u64::from(lane) << 40) + u64::from(lane) * 2;
                assert_eq!(host_call(program, mask), for_lanes(mask, result));
            }
            Ok(())
        })?;
    }
    run_program(layout_of(32), quiet(), |program| {
        let mut call = program.open_call(opcode::HOST_CALL, 1);
        send_words(&mut call, |_| [0; 3]);
        let dropped = program.fault();
        assert_eq!(dropped.opcode, opcode::HOST_CALL);
        assert!(
            dropped.fault.to_string().contains("host_call"),
            "{dropped:?}"
        );
        Ok(())
    })
}

/// A panicking function drops its call, and a waiting one blocks no other call.
#[test]
fn functions_of_the_host_block_no_other_call() -> Result {
    let (release, released) = channel::<()>();
    let (begun, is_begun) = channel();
    let released = Mutex::new(released);
    let services = quiet().host_call(move |function, _| {
        match function {
            0 => {
                let _ = begun.send(());
                let _ = released.lock().map(|released| released.recv());
            }
            1 => panic!("as asked"),
            _ => {}
        }
        function
    });
    run_program(layout_of(1), services, |program| {
        let call = |function| {
            let mut call = program.open_call(opcode::HOST_CALL, 1);
            call.send_n(|_| b"");
            send_words(&mut call, |_| [function, 0, 0]);
            call
        };
        let mut waits = call(0);
        is_begun.recv()?;
        assert_eq!(word(&mut call(2))[&0], 2);
        let panics = call(1);
        assert_eq!(program.fault().fault, Fault::HandlerFailed);
        assert_eq!(word(&mut call(3))[&0], 3);
        release.send(())?;
        assert_eq!(word(&mut waits)[&0], 0);
        drop(panics);
        Ok(())
    })
}
