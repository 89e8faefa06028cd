//! `printf`, and its kin.

use std::sync::Arc;

use super::io::{Io, handles, talk};
use super::lanes::{signed, words};
use super::printf;
use super::stream::Stream;
use super::streams::{STDERR, STDOUT};
use crate::server::{Fault, Handlers, Port};
use crate::{Error, opcode};

pub(crate) fn register(io: &Arc<Io>, handlers: &mut Handlers) -> Result<(), Error> {
    for (opcode, to, packed) in [
        (opcode::PRINTF_TO_STDOUT, Some(STDOUT), false),
        (opcode::PRINTF_TO_STDERR, Some(STDERR), false),
        (opcode::PRINTF_TO_STREAM, None, false),
        (opcode::PRINTF_TO_STDOUT_PACKED, Some(STDOUT), true),
        (opcode::PRINTF_TO_STDERR_PACKED, Some(STDERR), true),
        (opcode::PRINTF_TO_STREAM_PACKED, None, true),
    ] {
        talk(io, handlers, opcode, move |port, io| {
            print(port, io, to, packed)
        })?;
    }
    Ok(())
}

/// Each lane's result is how many bytes were written, or -1 if not all of them were.
async fn print(mut port: Port, io: Arc<Io>, to: Option<u64>, packed: bool) -> Result<Port, Fault> {
    let handles = match to {
        Some(stream) => port.lanes().map(|lane| (lane, stream)).collect(),
        None => handles(&port.recv(words).await, 0),
    };
    let limit = io.print;
    // Strings are as many bytes as texts may be: what is longer could not be printed.
    let received = printf::receive(&mut port, packed, limit).await?;
    // A format can ask for more time than it has bytes.
    let texts = io.pool.queue(move || received.texts(limit)).await??;
    let write = move |lane, stream: &mut Stream| {
        let text = texts.get(lane).unwrap_or_default();
        match stream.write(text) {
            count if count < text.len() as u64 => signed(-1),
            count => count,
        }
    };
    let counts = io.streams.each(handles, write).await?;
    let result = |lane| counts.get(&lane).map_or(-1, |count| *count as i32);
    printf::finish(&mut port, result).await;
    Ok(port)
}
