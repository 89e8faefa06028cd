//! Services of the `printf` family.

use std::sync::Arc;

use super::io::{Io, handles, on_session};
use super::lanes::{read_words, signed};
use super::printf;

use super::streams::{STDERR, STDOUT};
use crate::error::Error;
use crate::opcode;
use crate::server::{Fault, Handlers, Port};

pub(crate) fn register(io: &Arc<Io>, handlers: &mut Handlers) -> Result<(), Error> {
    for (opcode, to, packed) in [
        (opcode::PRINTF_TO_STDOUT, Some(STDOUT), false),
        (opcode::PRINTF_TO_STDERR, Some(STDERR), false),
        (opcode::PRINTF_TO_STREAM, None, false),
        (opcode::PRINTF_TO_STDOUT_PACKED, Some(STDOUT), true),
        (opcode::PRINTF_TO_STDERR_PACKED, Some(STDERR), true),
        (opcode::PRINTF_TO_STREAM_PACKED, None, true),
    ] {
        on_session(io, handlers, opcode, move |port, io| {
            print(port, io, to, packed)
        })?;
    }
    Ok(())
}

/// Result of each lane: the number of bytes written, or -1 if not all of them were.
async fn print(mut port: Port, io: Arc<Io>, to: Option<u64>, packed: bool) -> Result<Port, Fault> {
    let handles = match to {
        Some(stream) => port.lanes().map(|lane| (lane, stream)).collect(),
        None => handles(&port.recv(read_words).await, 0),
    };
    let limit = io.print;
    // The limit of the output also bounds the strings: a longer one could not be printed.
    let received = printf::receive(&mut port, packed, limit).await?;
    // The time to print is not bounded by the size of a format.
    let texts = io.pool.spawn(move || received.texts(limit)).await??;
    // One report for a warp: the reason of its first refused lane.
    if let Some((_, reason)) = texts.refused().next() {
        port.refuse(reason);
    }
    let counts = io
        .streams
        .for_each_lane(handles, move |lane, stream| {
            let Some(text) = texts.get(lane) else {
                return signed(-1);
            };
            match stream.write(text) {
                count if count < text.len() as u64 => signed(-1),
                count => count,
            }
        })
        .await?;
    printf::finish(&mut port, |lane| {
        counts.get(&lane).map_or(-1, |count| *count as i32)
    })
    .await;
    Ok(port)
}
