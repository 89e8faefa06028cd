//! `printf`.

use gpurpc::server::{Fault, RefusedCall};
use gpurpc::{PortIndex, opcode};

use crate::rig::{
    ByLane, Result, STDERR, STDOUT, Sink, for_lanes, layouts, masks, quiet, run_program, send_words,
};

/// Address of a lane's string; other lanes have none.
const ADDRESS: u64 = 0x1000;

fn name(lane: u32) -> Vec<u8> {
    format!("{}\0", "x".repeat(lane as usize * 3)).into_bytes()
}

#[test]
fn lanes_print_in_their_order() -> Result {
    let format = b"%d is %s, %.2f\n\0";
    for layout in layouts() {
        let lanes = layout.lanes();
        let (out, error) = (Sink::default(), Sink::default());
        let services = quiet().stdout(out.clone()).stderr(error.clone());
        run_program(layout, services, |program| {
            for (opcode, packed) in [
                (opcode::PRINTF_TO_STDOUT, false),
                (opcode::PRINTF_TO_STDERR_PACKED, true),
                (opcode::PRINTF_TO_STREAM, false),
                (opcode::PRINTF_TO_STREAM_PACKED, true),
            ] {
                for mask in masks(lanes) {
                    let mut call = program.open_call(opcode, mask);
                    // Even lanes print to one stream, odd ones to the other.
                    let stream = |lane| if lane % 2 == 0 { STDOUT } else { STDERR };
                    let to_stream = [opcode::PRINTF_TO_STREAM, opcode::PRINTF_TO_STREAM_PACKED]
                        .contains(&opcode);
                    if to_stream {
                        send_words(&mut call, |lane| [stream(lane), 0, 0]);
                    }
                    call.send_n(|_| format);
                    let arguments = for_lanes(mask, |lane| {
                        let mut bytes = lane.to_ne_bytes().to_vec();
                        if !packed {
                            bytes.extend([0; 4]);
                        }
                        let address = if lane % 3 == 0 { 0 } else { ADDRESS };
                        bytes.extend(address.to_ne_bytes());
                        bytes.extend((f64::from(lane) / 4.0).to_ne_bytes());
                        bytes
                    });
                    let sizes = call.recv(|packets| for_lanes(mask, |lane| packets.word(lane, 0)));
                    let expected = for_lanes(mask, |lane| arguments[&lane].len() as u64);
                    assert_eq!(sizes, Some(expected));
                    call.send_n(|lane| arguments.get(&lane).map_or(&[][..], |bytes| bytes));
                    let results = loop {
                        let words = call
                            .recv(|packets| {
                                for_lanes(mask, |lane| {
                                    [packets.word(lane, 0), packets.word(lane, 1)]
                                })
                            })
                            .unwrap_or_default();
                        if words.values().all(|[_, address]| *address == 0) {
                            break words;
                        }
                        let names = for_lanes(mask, |lane| match words[&lane][1] {
                            0 => Vec::new(),
                            _ => name(lane),
                        });
                        call.send_n(|lane| names.get(&lane).map_or(&[][..], |name| name));
                    };
                    drop(call);

                    let texts: ByLane<String> = for_lanes(mask, |lane| {
                        let name = match lane % 3 {
                            0 => "(null)".to_owned(),
                            _ => "x".repeat(lane as usize * 3),
                        };
                        format!("{lane} is {name}, {:.2}\n", f64::from(lane) / 4.0)
                    });
                    for (lane, [result, _]) in &results {
                        assert_eq!(*result, texts[lane].len() as u64);
                    }
                    let of_stream = |wanted| -> String {
                        let texts = texts.iter().filter(|(lane, _)| match opcode {
                            _ if to_stream => stream(**lane) == wanted,
                            opcode::PRINTF_TO_STDOUT => wanted == STDOUT,
                            _ => wanted == STDERR,
                        });
                        texts.map(|(_, text)| text.as_str()).collect()
                    };
                    assert_eq!(out.take(), of_stream(STDOUT));
                    assert_eq!(error.take(), of_stream(STDERR));
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Format of a refused lane, and the reason. The width of the last one is an argument.
const REFUSED: [(&[u8], &str); 4] = [
    (b"%d%n\0", "printf: %n is not allowed"),
    (b"%2147483647d\0", "printf: output exceeds the limit"),
    (b"%.2147483647d\0", "printf: output exceeds the limit"),
    (b"%*d\0", "printf: output exceeds the limit"),
];

/// The client of LLVM's libc waits for a result of each `printf`, whatever the format. The other lanes of its warp
/// print.
#[test]
fn refused_formats_are_answered() -> Result {
    let arguments = [i32::MAX, 7, 0, 0].map(i32::to_ne_bytes).concat();
    for layout in layouts() {
        let lanes = layout.lanes();
        let mask = u64::MAX >> (64 - lanes);
        for (format, reason) in REFUSED {
            for refused in [u64::MAX, 0x5555_5555_5555_5555] {
                let out = Sink::default();
                run_program(layout, quiet().stdout(out.clone()), |program| {
                    let is_refused = |lane: u32| refused >> lane & 1 == 1;
                    let mut call = program.open_call(opcode::PRINTF_TO_STDOUT, mask);
                    call.send_n(|lane| if is_refused(lane) { format } else { b"%d\n\0" });
                    let sizes = call.recv(|packets| for_lanes(mask, |lane| packets.word(lane, 0)));
                    let sizes = sizes.unwrap_or_default();
                    call.send_n(|lane| &arguments[..sizes[&lane] as usize]);
                    let results = call.recv(|packets| {
                        assert!(packets.lanes().all(|lane| packets.word(lane, 1) == 0));
                        for_lanes(mask, |lane| packets.word(lane, 0) as i32)
                    });
                    drop(call);
                    let text = "2147483647\n";
                    let result = |lane| {
                        if is_refused(lane) {
                            -1
                        } else {
                            text.len() as i32
                        }
                    };
                    assert_eq!(results, Some(for_lanes(mask, result)));
                    let printing = (0..lanes).filter(|lane| !is_refused(*lane)).count();
                    assert_eq!(out.take(), text.repeat(printing));
                    // The port is served on.
                    assert_eq!(program.one(opcode::NOOP, [9, 0, 0]), 9);
                    let warning = RefusedCall {
                        port: PortIndex::new(0),
                        opcode: opcode::PRINTF_TO_STDOUT,
                        reason: Fault::Other(reason),
                    };
                    assert_eq!(program.refusals(), [warning], "one for a warp");
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}
