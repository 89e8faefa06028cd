//! Warps of threads against the server: lanes that print, diverge, and send messages of different sizes.

#[path = "support/serve.rs"]
mod serve;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpurpc::libc::Services;
use gpurpc::server::{Fault, Handlers, Port, Warp};
use gpurpc_device::{Call, eprintln, host, print, println, process, thread};

const ECHO: u32 = (b't' as u32) << 24 | 1;
const MASK: u32 = (b't' as u32) << 24 | 2;
const SIZES: [u32; 3] = [1, 32, 64];

/// Adds handlers: a message comes back reversed; a packet comes back with the mask of its call.
fn handlers() -> Handlers {
    let mut handlers = Handlers::new();
    let echo = |mut port: Port| async move {
        let messages = port.recv_n().await?;
        let reversed = |lane| -> Vec<u8> {
            let message = messages.get(lane).unwrap_or_default();
            message.iter().rev().copied().collect()
        };
        let reversed: Vec<Vec<u8>> = (0..64).map(reversed).collect();
        port.send_n(|lane| &reversed[lane as usize][..]).await;
        Ok::<Port, Fault>(port)
    };
    handlers.on_session(ECHO, echo).unwrap();
    let mask = |warp: &mut Warp<'_>| {
        for lane in warp.lanes() {
            warp.set_word(lane, 1, warp.input().mask());
        }
    };
    handlers.on_warp(MASK, 0, mask).unwrap();
    handlers
}

fn run(lanes: u32, blocks: u32, threads: u32, kernel: impl Fn() + Sync) -> serve::Served {
    let launch = || host::launch(blocks, threads, lanes, kernel);
    serve::run(lanes, Services::new(), handlers(), launch).1
}

/// Mask of the call that this lane takes part in.
#[track_caller]
fn mask_of_call() -> u64 {
    let mut call = Call::open(MASK);
    call.send([thread::lane().into()]);
    let [lane, mask] = call.recv();
    assert_eq!(lane, thread::lane().into());
    mask
}

#[test]
fn println_prints_a_line_of_each_lane() {
    for lanes in SIZES {
        let served = run(lanes, 2, 70, || {
            let ([x, ..], [block, ..]) = (thread::index(), thread::block());
            println!("block {block} thread {x}");
        });
        let lines: Vec<&str> = served.stdout.lines().collect();
        let expected: BTreeSet<String> = (0..2)
            .flat_map(|block| (0..70).map(move |x| format!("block {block} thread {x}")))
            .collect();
        assert_eq!(lines.len(), expected.len());
        let lines = lines.into_iter().map(str::to_owned).collect();
        assert_eq!(expected, lines);
    }
}

/// The lanes of a warp print with one call, in their order, also if their texts have different sizes.
#[test]
fn println_keeps_the_order_of_lanes() {
    for lanes in SIZES {
        let text = |lane: u32| "-".repeat(5 * lane as usize % 150);
        let served = run(lanes, 1, lanes, || {
            let lane = thread::lane();
            eprintln!("{lane} {}", text(lane));
        });
        let expected: String = (0..lanes)
            .map(|lane| format!("{lane} {}\n", text(lane)))
            .collect();
        assert_eq!(served.stderr, expected);
    }
}

/// Lanes of different branches meet in the function that prints, as on GPUs.
#[test]
fn lanes_of_different_branches_print_their_own_text() {
    let is_constant = |lane: u32| lane % 3 == 0;
    for lanes in SIZES {
        let served = run(lanes, 1, lanes, || match thread::lane() {
            lane if is_constant(lane) => println!("no number"),
            lane if lane % 2 == 0 => println!("lane {lane}"),
            lane => eprintln!("lane {lane}"),
        });
        let constants = served.stdout.lines().filter(|line| *line == "no number");
        assert_eq!(
            constants.count(),
            (0..lanes).filter(|lane| is_constant(*lane)).count()
        );
        for (text, rest) in [(&served.stdout, 0), (&served.stderr, 1)] {
            let printed: BTreeSet<&str> =
                text.lines().filter(|line| *line != "no number").collect();
            let expected = (0..lanes).filter(|lane| !is_constant(*lane) && lane % 2 == rest);
            let expected: Vec<String> = expected.map(|lane| format!("lane {lane}")).collect();
            assert_eq!(printed, expected.iter().map(String::as_str).collect());
        }
    }
}

#[test]
fn longer_text_is_sent_in_pieces() {
    // Each lane prints its letter so many times.
    let count = |lane: u32| [0, 1, 255, 256, 257, 700][lane as usize % 6];
    let served = run(32, 1, 32, || {
        let lane = thread::lane();
        let letter = char::from(b'A' + lane as u8 % 32);
        print!("{}", letter.to_string().repeat(count(lane)));
    });
    for lane in 0..32 {
        let letter = b'A' + lane as u8;
        let printed = served.stdout.bytes().filter(|byte| *byte == letter).count();
        assert_eq!(printed, count(lane), "lane {lane}");
    }
}

#[test]
fn calls_have_the_lanes_that_open_them() {
    for lanes in SIZES {
        run(lanes, 3, lanes, || {
            let all = u64::MAX >> (64 - lanes);
            assert_eq!(mask_of_call(), all);
            let lane = thread::lane();
            if lane % 3 == 0 {
                let third = (0..lanes).step_by(3).fold(0, |mask, lane| mask | 1 << lane);
                assert_eq!(mask_of_call(), third);
                if lane == 0 {
                    assert_eq!(mask_of_call(), 1);
                }
            } else if lane % 3 == 1 {
                let third = (1..lanes).step_by(3).fold(0, |mask, lane| mask | 1 << lane);
                assert_eq!(mask_of_call(), third);
            }
            assert_eq!(mask_of_call(), all);
        });
    }
}

#[test]
fn messages_differ_between_lanes() {
    for lanes in SIZES {
        run(lanes, 2, lanes, || {
            for size in [0, 1, 56, 57, 64, 120, 400] {
                let lane = thread::lane() as usize;
                let message: Vec<u8> = (0..size * lane % 413)
                    .map(|at| (at * 7 + lane) as u8)
                    .collect();
                let mut call = Call::open(ECHO);
                call.send_n(&message);
                let mut answer = vec![0; message.len() + 3];
                assert_eq!(call.recv_n(&mut answer), message.len());
                drop(call);
                answer.truncate(message.len());
                answer.reverse();
                assert_eq!(answer, message);
            }
        });
    }
}

/// Bytes without room are discarded, and the call continues.
#[test]
fn recv_n_stops_at_the_end_of_the_buffer() {
    run(32, 1, 32, || {
        let room = thread::lane() as usize * 4;
        let mut call = Call::open(ECHO);
        call.send_n(&[7; 100]);
        let mut answer = vec![0; room];
        assert_eq!(call.recv_n(&mut answer), 100);
        assert!(answer[..room.min(100)].iter().all(|byte| *byte == 7));
        assert!(answer[room.min(100)..].iter().all(|byte| *byte == 0));
    });
}

/// More warps than ports: a call waits for a port, and none is lost.
#[test]
fn warps_wait_for_ports() {
    let served = run(1, 1, 40, || {
        for call in 0..10 {
            println!("{} {call}", thread::index()[0]);
        }
    });
    let lines: BTreeSet<&str> = served.stdout.lines().collect();
    assert_eq!(lines.len(), 40 * 10);
}

/// An exit ends its lanes only: the host decides about the others.
#[test]
fn exit_reports_the_status_of_each_warp() {
    let served = run(32, 2, 32, || {
        println!("before");
        if thread::lane() >= 8 {
            process::exit(-3);
        }
        println!("after");
    });
    assert_eq!(served.ends, [Some(-3), Some(-3)]);
    assert_eq!(served.stdout.matches("before\n").count(), 64);
    assert_eq!(served.stdout.matches("after\n").count(), 16);
}

#[test]
fn abort_reaches_the_host() {
    let served = run(64, 1, 64, || process::abort());
    assert_eq!(served.ends, [None]);
}

/// The report of each lane that panics: thread, location, message.
#[test]
fn panics_have_thread_location_and_message() {
    let served = run(32, 2, 32, || {
        let table = [1, 2, 3];
        let index = thread::lane() as usize;
        let element = catch_unwind(|| table[index]);
        if element.is_err() {
            // As the panic handler of a device.
            let location = std::panic::Location::caller();
            gpurpc_device::panic::report(location, &format_args!("index {index}"));
            process::abort();
        }
    });
    assert_eq!(served.ends, [None, None]);
    let mut reports: Vec<&str> = served.stderr.split_inclusive("\nindex ").collect();
    assert_eq!(reports.len(), 2 * 29 + 1);
    reports.pop();
    let first = "thread [3, 0, 0] of block [0, 0, 0] panicked at ";
    assert!(served.stderr.contains(first), "{}", served.stderr);
    assert!(
        served.stderr.contains("tests/warps.rs:"),
        "{}",
        served.stderr
    );
}

/// Clients before LLVM 23 have no doorbell. With one, `serve::run` also checks that the server has counted each call down.
#[test]
fn calls_ring_the_doorbell_of_llvm_23() {
    let served = run(32, 2, 64, || println!("ring"));
    let event = if cfg!(feature = "llvm-23") { 7 } else { 0 };
    assert_eq!(served.event, event);
    assert_eq!(run(32, 1, 32, || ()).event, 0);
}

/// The simulation finds lanes that break the rule of calls.
#[test]
fn launch_reports_lanes_of_a_call_that_diverge() {
    let kernel = || {
        let mut call = Call::open(MASK);
        if thread::lane() == 0 {
            call.send([0]);
        }
    };
    let run = || run(32, 1, 2, kernel);
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("lanes diverge");
    let message = payload.downcast_ref::<String>().map_or("", |text| text);
    assert!(
        message.starts_with("lanes of one call diverged"),
        "{message}"
    );
}

#[test]
fn launch_returns_the_panic_of_a_lane() {
    let run = || run(32, 1, 32, || assert_ne!(thread::lane(), 5, "lane five"));
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("a lane panics");
    let message = payload.downcast_ref::<String>().map_or("", |text| text);
    assert!(message.contains("lane five"), "{message}");
}
