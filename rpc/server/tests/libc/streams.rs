//! Standard streams.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use gpurpc::opcode;

use crate::rig::{
    ByLane, FAILED, Result, STDERR, STDIN, STDOUT, Sink, for_lanes, layout_of, layouts, masks,
    quiet, read_answer, run_program, send_words,
};

/// Input that returns the texts sent to it, and reports each read.
struct Pipe {
    asked: Sender<()>,
    given: Receiver<&'static str>,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let _ = self.asked.send(());
        // The end, once the sender is dropped.
        let given = self.given.recv().unwrap_or_default().as_bytes();
        into[..given.len()].copy_from_slice(given);
        Ok(given.len())
    }
}

fn pipe() -> (Pipe, Receiver<()>, Sender<&'static str>) {
    let (asked, is_asked) = channel();
    let (give, given) = channel();
    (Pipe { asked, given }, is_asked, give)
}

/// A different text for each lane: none, short, and of more than one packet.
fn text(lane: u32) -> Vec<u8> {
    let size = [0, 3, 55, 56, 57, 64, 120, 121, 300][lane as usize % 9];
    vec![b'a' + (lane % 26) as u8; size]
}

#[test]
fn all_lanes_write_in_their_order() -> Result {
    for layout in layouts() {
        let lanes = layout.lanes();
        let (out, error) = (Sink::default(), Sink::default());
        let services = quiet().stdout(out.clone()).stderr(error.clone());
        run_program(layout, services, |program| {
            for mask in masks(lanes) {
                let data = for_lanes(mask, text);
                let sizes: ByLane<u64> = for_lanes(mask, |lane| text(lane).len() as u64);
                let joined = |end: &str| -> String {
                    let text = |data: &Vec<u8>| String::from_utf8_lossy(data).into_owned() + end;
                    data.values().map(text).collect()
                };
                let none = |_| 0;

                let counts = program.write(opcode::WRITE_TO_STDOUT, mask, none, &data);
                assert_eq!((&counts, out.take()), (&sizes, joined("")));

                let counts = program.write(opcode::WRITE_TO_STDOUT_NEWLINE, mask, none, &data);
                let with_line_feed = sizes.iter().map(|(lane, size)| (*lane, size + 1));
                assert_eq!(counts, with_line_feed.collect());
                assert_eq!(out.take(), joined("\n"));

                let counts = program.write(opcode::WRITE_TO_STDERR, mask, none, &data);
                assert_eq!((&counts, error.take()), (&sizes, joined("")));

                // The upper bits of a device pointer are arbitrary.
                let to = |lane| 0x7fff_dead_beef_0000 | if lane % 2 == 0 { STDOUT } else { STDERR };
                let counts = program.write(opcode::WRITE_TO_STREAM, mask, to, &data);
                assert_eq!(counts, sizes);
                let lanes_of = |rest| -> String {
                    let some = data.iter().filter(|(lane, _)| *lane % 2 == rest);
                    some.map(|(_, data)| String::from_utf8_lossy(data))
                        .collect()
                };
                assert_eq!((out.take(), error.take()), (lanes_of(0), lanes_of(1)));
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_silent_input_blocks_no_other_call() -> Result {
    let (input, is_asked, give) = pipe();
    let out = Sink::default();
    run_program(
        layout_of(32),
        quiet().stdin(input).stdout(out.clone()),
        |program| {
            let mut first = program.open_call(opcode::READ_FROM_STREAM, 0b11);
            send_words(&mut first, |lane| [[4, 2][lane as usize], STDIN, 0]);
            is_asked.recv()?;
            // The thread of the input is waiting now. Further requests to it are queued.
            let mut second = program.open_call(opcode::READ_FGETS, 1);
            send_words(&mut second, |_| [100, STDIN, 0]);

            for _ in 0..10 {
                let data = for_lanes(u32::MAX.into(), |lane| vec![b'0' + (lane % 10) as u8]);
                let counts = program.write(opcode::WRITE_TO_STDOUT, u32::MAX.into(), |_| 0, &data);
                assert_eq!(counts, for_lanes(u32::MAX.into(), |_| 1));
            }
            assert_eq!(out.take().len(), 320);

            give.send("abc")?;
            give.send("defgh\nij")?;
            let data = read_answer(&mut first);
            assert_eq!(
                data,
                ByLane::from([(0, b"abcd".to_vec()), (1, b"ef".to_vec())])
            );
            let line = crate::rig::messages(&mut second);
            assert_eq!(line, ByLane::from([(0, b"gh\n\0".to_vec())]));

            drop(give);
            assert_eq!(program.fgets_one(100, STDIN), b"ij\0");
            assert_eq!(program.fgets_one(100, STDIN), b"");
            assert_eq!(program.one(opcode::FEOF, [STDIN, 0, 0]), 1);
            assert_eq!(program.one(opcode::FERROR, [STDIN, 0, 0]), 0);
            Ok(())
        },
    )
}

/// The server stops while a call waits for input that never comes.
#[test]
fn stop_waits_for_nothing() -> Result {
    let (input, is_asked, give) = pipe();
    run_program(layout_of(1), quiet().stdin(input), |program| {
        let mut call = program.open_call(opcode::READ_FROM_STREAM, 1);
        send_words(&mut call, |_| [1, STDIN, 0]);
        is_asked.recv()?;
        Ok(())
    })?;
    drop(give);
    Ok(())
}

#[test]
fn lines_end_as_c_specifies() -> Result {
    let input = b"one\ntwo\0zero\n\nlast".as_slice();
    run_program(layout_of(1), quiet().stdin(input), |program| {
        let line = |size| program.fgets_one(size, STDIN);
        assert_eq!(line(0), b"");
        assert_eq!(line(u64::MAX), b"", "a negative size");
        assert_eq!(line(1 << 63), b"", "the least size");
        assert_eq!(line(1), b"\0");
        assert_eq!(line(3), b"on\0");
        assert_eq!(line(3), b"e\n\0");
        assert_eq!(line(4096), b"two\0zero\n\0");
        assert_eq!(line(2), b"\n\0");
        assert_eq!(program.one(opcode::FEOF, [STDIN, 0, 0]), 0);
        assert_eq!(line(1 << 40), b"last\0");
        assert_eq!(program.one(opcode::FEOF, [STDIN, 0, 0]), 1);
        assert_eq!(line(10), b"");
        Ok(())
    })
}

#[test]
fn bytes_can_be_pushed_back() -> Result {
    run_program(layout_of(32), quiet().stdin(b"xyz".as_slice()), |program| {
        let unget = |character: u64| program.one(opcode::UNGETC, [character, STDIN, 0]);
        assert_eq!(program.read_one(10, STDIN), b"xyz");
        assert_eq!(program.one(opcode::FEOF, [STDIN, 0, 0]), 1);
        assert_eq!(unget(u64::from(b'z')), u64::from(b'z'));
        assert_eq!(program.one(opcode::FEOF, [STDIN, 0, 0]), 0);
        assert_eq!(unget(0xff), 0xff);
        assert_eq!(unget(u64::MAX), FAILED, "EOF is no byte");
        assert_eq!(program.fgets_one(10, STDIN), b"\xffz\0");

        // All lanes at once, as many as there is room for; the last byte is read first.
        let given = program.ask(opcode::UNGETC, u32::MAX.into(), |lane| {
            [lane.into(), STDIN, 0]
        });
        for (lane, answer) in given {
            assert_eq!(answer, if lane < 16 { lane.into() } else { FAILED });
        }
        let back: Vec<u8> = (0..16).rev().collect();
        assert_eq!(program.read_one(100, STDIN), back);
        assert_eq!(unget(1 << 8 | 7), 7, "as an unsigned char");
        assert_eq!(program.one(opcode::UNGETC, [7, STDOUT, 0]), FAILED);
        Ok(())
    })
}

/// The end-of-file indicator stays set until the program clears it, even if more input follows.
#[test]
fn the_end_stays() -> Result {
    let (input, _is_asked, give) = pipe();
    run_program(layout_of(1), quiet().stdin(input), |program| {
        give.send("a")?;
        give.send("")?;
        give.send("b")?;
        give.send("")?;
        assert_eq!(program.read_one(10, STDIN), b"a");
        assert_eq!(program.read_one(10, STDIN), b"");
        program.one(opcode::CLEARERR, [STDIN, 0, 0]);
        assert_eq!(program.one(opcode::FEOF, [STDIN, 0, 0]), 0);
        assert_eq!(program.read_one(10, STDIN), b"b");
        Ok(())
    })
}

#[test]
fn standard_streams_have_no_position_and_one_direction() -> Result {
    run_program(layout_of(1), quiet().stdin(b"abc".as_slice()), |program| {
        for stream in [STDIN, STDOUT, STDERR] {
            assert_eq!(program.one(opcode::FTELL, [stream, 0, 0]), FAILED);
            assert_eq!(program.one(opcode::FSEEK, [stream, 0, 0]), FAILED);
            assert_eq!(program.one(opcode::FFLUSH, [stream, 0, 0]), 0);
            assert_eq!(program.one(opcode::FERROR, [stream, 0, 0]), 0);
            // The standard streams of the process are never closed.
            assert_eq!(program.one(opcode::CLOSE_FILE, [stream, 0, 0]), FAILED);
        }
        assert_eq!(program.one(opcode::FFLUSH, [0, 0, 0]), 0, "all");
        assert_eq!(program.write_one(STDIN, b"x"), 0);
        assert_eq!(program.read_one(1, STDOUT), b"");
        for stream in [STDIN, STDOUT] {
            assert_eq!(program.one(opcode::FERROR, [stream, 0, 0]), 1);
            program.one(opcode::CLEARERR, [stream, 0, 0]);
            assert_eq!(program.one(opcode::FERROR, [stream, 0, 0]), 0);
        }
        assert_eq!(program.read_one(2, STDIN), b"ab");
        Ok(())
    })
}

/// Output that accepts two bytes at a time, and no `x`.
struct Picky(Sink);

impl Write for Picky {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.iter().take_while(|byte| **byte != b'x').count();
        match taken.min(2) {
            0 => Err(io::ErrorKind::InvalidData.into()),
            count => self.0.write(&bytes[..count]),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_failed_output_reports_the_number_of_written_bytes() -> Result {
    let out = Sink::default();
    run_program(
        layout_of(32),
        quiet().stdout(Picky(out.clone())),
        |program| {
            let text = |lane| [&b"abc"[..], b"defxg", b"xh", b"i"][lane as usize].to_vec();
            let data = for_lanes(0b1111, text);
            let counts = program.write(opcode::WRITE_TO_STDOUT_NEWLINE, 0b1111, |_| 0, &data);
            assert_eq!(counts, ByLane::from([(0, 4), (1, 3), (2, 0), (3, 2)]));
            assert_eq!(out.take(), "abc\ndefi\n");
            assert_eq!(program.one(opcode::FERROR, [STDOUT, 0, 0]), 1);
            Ok(())
        },
    )
}
