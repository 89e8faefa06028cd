//! Services of `stdio.h`.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use super::files::Root;
use super::lanes::{Words, c_str, path, read_words, send_answers, zero_or_minus_one};
use super::pool::Pool;
use super::read_buffer::ReadBuffer;
use super::stream::Stream;
use super::streams::{STDERR, STDOUT, Streams};
use crate::error::Error;
use crate::layout::PACKET_SIZE;
use crate::opcode;
use crate::server::{Fault, Handlers, Port, SerialExecutor};

/// State that these services share.
pub(crate) struct Io {
    pub streams: Streams,
    pub root: Option<Arc<Root>>,
    pub pool: Arc<Pool>,
    /// Maximum number of bytes of one read of a lane.
    pub read: usize,
    /// Maximum number of bytes that all lanes of a warp print with one call.
    pub print: usize,
}

/// -1, which is also `EOF`.
const FAILED: u64 = u64::MAX;

type Operation = fn(&mut Stream, [u64; 3]) -> u64;

/// Services with one packet and an answer of one word: opcode, index of the word with the handle, answer without
/// a stream, operation.
const OPERATIONS: [(u32, usize, u64, Operation); 6] = [
    (opcode::FEOF, 0, 1, |stream, _| stream.at_end().into()),
    (opcode::FERROR, 0, 1, |stream, _| stream.failed().into()),
    (opcode::CLEARERR, 0, 0, |stream, _| {
        stream.clear();
        0
    }),
    (opcode::FSEEK, 0, FAILED, |stream, [_, offset, whence]| {
        zero_or_minus_one(stream.seek(offset as i64, whence as i32))
    }),
    (opcode::FTELL, 0, FAILED, |stream, _| {
        stream.position().unwrap_or(FAILED)
    }),
    (opcode::UNGETC, 1, FAILED, |stream, [character, ..]| {
        let byte = stream.unget(character as i32);
        byte.map_or(FAILED, u64::from)
    }),
];

pub(crate) fn register(io: &Arc<Io>, handlers: &mut Handlers) -> Result<(), Error> {
    for (opcode, to, end) in [
        (opcode::WRITE_TO_STDOUT, Some(STDOUT), &b""[..]),
        (opcode::WRITE_TO_STDOUT_NEWLINE, Some(STDOUT), b"\n"),
        (opcode::WRITE_TO_STDERR, Some(STDERR), b""),
        (opcode::WRITE_TO_STREAM, None, b""),
    ] {
        on_session(io, handlers, opcode, move |port, io| {
            write(port, io, to, end)
        })?;
    }
    for (opcode, handle, default, operation) in OPERATIONS {
        on_session(io, handlers, opcode, move |port, io| {
            operate(port, io, handle, default, operation)
        })?;
    }
    on_session(io, handlers, opcode::FFLUSH, flush)?;
    on_session(io, handlers, opcode::READ_FROM_STREAM, read)?;
    on_session(io, handlers, opcode::READ_FGETS, read_line)?;
    on_session(io, handlers, opcode::OPEN_FILE, open)?;
    on_session(io, handlers, opcode::CLOSE_FILE, close)?;
    on_session(io, handlers, opcode::REMOVE, remove)?;
    on_session(io, handlers, opcode::RENAME, rename)
}

pub(crate) fn on_session<F>(
    io: &Arc<Io>,
    handlers: &mut Handlers,
    opcode: u32,
    serve: impl Fn(Port, Arc<Io>) -> F + Send + Sync + 'static,
) -> Result<(), Error>
where
    F: Future<Output = Result<Port, Fault>> + Send + 'static,
{
    let io = Arc::clone(io);
    handlers.on_session(opcode, move |port| serve(port, Arc::clone(&io)))?;
    Ok(())
}

/// The handle of each lane, which is the word with this index.
pub(crate) fn handles(words: &Words, index: usize) -> Vec<(u32, u64)> {
    words
        .iter()
        .map(|(lane, words)| (*lane, words[index]))
        .collect()
}

/// `fwrite` and `puts`: writes `end` after the data if all of the data was written.
async fn write(
    mut port: Port,
    io: Arc<Io>,
    to: Option<u64>,
    end: &'static [u8],
) -> Result<Port, Fault> {
    let handles = match to {
        Some(stream) => port.lanes().map(|lane| (lane, stream)).collect(),
        None => handles(&port.recv(read_words).await, 0),
    };
    let messages = port.recv_n().await?;
    let counts = io
        .streams
        .for_each_lane(handles, move |lane, stream| {
            let bytes = messages.get(lane).unwrap_or_default();
            match stream.write(bytes) {
                count if count < bytes.len() as u64 => count,
                count => count + stream.write(end),
            }
        })
        .await?;
    send_answers(&mut port, &counts, 0).await;
    Ok(port)
}

async fn operate(
    mut port: Port,
    io: Arc<Io>,
    handle: usize,
    default: u64,
    operation: Operation,
) -> Result<Port, Fault> {
    let words = port.recv(read_words).await;
    let handles = handles(&words, handle);
    let answers = io
        .streams
        .for_each_lane(handles, move |lane, stream| match words.get(&lane) {
            Some(words) => operation(stream, *words),
            None => default,
        })
        .await?;
    send_answers(&mut port, &answers, default).await;
    Ok(port)
}

/// `fflush`. With a null pointer: all streams, none of which holds unflushed bytes.
async fn flush(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let handles = handles(&port.recv(read_words).await, 0);
    let (null, handles): (Vec<_>, Vec<_>) =
        handles.into_iter().partition(|(_, handle)| *handle == 0);
    let mut answers = io
        .streams
        .for_each_lane(handles, |_, stream| zero_or_minus_one(stream.flush()))
        .await?;
    answers.extend(null);
    send_answers(&mut port, &answers, FAILED).await;
    Ok(port)
}

/// `fread`: sends the data, then its size.
async fn read(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let words = port.recv(read_words).await;
    let handles = handles(&words, 1);
    let (budget, limit) = (port.budget(), io.read);
    let buffers = io
        .streams
        .for_each_lane(handles, move |lane, stream| {
            let size = words.get(&lane).map_or(0, |words| words[0]);
            stream.read(size, ReadBuffer::new(&budget, limit))
        })
        .await?;
    port.send_n(|lane| buffers.get(&lane).map_or(&[][..], ReadBuffer::bytes))
        .await;
    let sizes = buffers
        .iter()
        .map(|(lane, buffer)| (*lane, buffer.bytes().len() as u64))
        .collect();
    send_answers(&mut port, &sizes, 0).await;
    Ok(port)
}

/// `fgets`.
async fn read_line(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let words = port.recv(read_words).await;
    let handles = handles(&words, 1);
    let (budget, limit) = (port.budget(), io.read);
    let lines = io
        .streams
        .for_each_lane(handles, move |lane, stream| {
            let size = words.get(&lane).map_or(0, |words| words[0]);
            stream.read_line(size as i64, ReadBuffer::new(&budget, limit))
        })
        .await?;
    port.send_n(|lane| match lines.get(&lane) {
        Some(Some(line)) => line.bytes(),
        _ => &[],
    })
    .await;
    Ok(port)
}

/// `fopen`. The file's own thread opens it, because opening may take long, for example on a network file system.
async fn open(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let paths = port.recv_n().await?;
    let modes = port
        .recv(|packets| {
            let mut modes = Vec::new();
            for lane in packets.lanes() {
                let mut mode = [0; PACKET_SIZE];
                packets.read(lane, 0, &mut mode);
                modes.push((lane, mode));
            }
            modes
        })
        .await;
    let mut opening = Vec::new();
    for (lane, mode) in modes {
        let Some((path, mode)) = path(paths.get(lane)).zip(c_str(Some(&mode))) else {
            continue;
        };
        let (Some(root), Some(permit)) = (io.root.clone(), io.streams.try_acquire()) else {
            continue;
        };
        let (path, mode) = (path.to_owned(), mode.to_owned());
        let executor = SerialExecutor::default();
        let job = executor.spawn(move || root.fopen(&path, &mode).map(|backing| (backing, permit)));
        opening.push((lane, executor, job));
    }
    let mut opened = BTreeMap::new();
    for (lane, executor, job) in opening {
        if let Some((backing, permit)) = job.await? {
            opened.insert(lane, io.streams.add(backing, executor, permit));
        }
    }
    send_answers(&mut port, &opened, 0).await;
    Ok(port)
}

/// `fclose`.
async fn close(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let handles = handles(&port.recv(read_words).await, 0);
    let mut answers = BTreeMap::new();
    for (lane, handle) in handles {
        let closed = io.streams.close(handle).await?;
        answers.insert(lane, zero_or_minus_one(closed == Some(true)));
    }
    send_answers(&mut port, &answers, FAILED).await;
    Ok(port)
}

async fn remove(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let paths = port.recv_n().await?;
    let answers = with_root(&io, port.lanes(), move |root, lane| {
        path(paths.get(lane)).is_some_and(|path| root.remove(path))
    })
    .await?;
    send_answers(&mut port, &answers, FAILED).await;
    Ok(port)
}

async fn rename(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let old = port.recv_n().await?;
    let new = port.recv_n().await?;
    let answers = with_root(&io, port.lanes(), move |root, lane| {
        path(old.get(lane))
            .zip(path(new.get(lane)))
            .is_some_and(|(old, new)| root.rename(old, new))
    })
    .await?;
    send_answers(&mut port, &answers, FAILED).await;
    Ok(port)
}

/// Runs `work` for each lane, if there is a directory.
async fn with_root(
    io: &Io,
    lanes: impl Iterator<Item = u32> + Send + 'static,
    work: impl Fn(&Root, u32) -> bool + Send + 'static,
) -> Result<BTreeMap<u32, u64>, Fault> {
    let Some(root) = io.root.clone() else {
        return Ok(BTreeMap::new());
    };
    io.pool
        .spawn(move || {
            lanes
                .map(|lane| (lane, zero_or_minus_one(work(&root, lane))))
                .collect()
        })
        .await
}
