//! Services of `stdio.h`.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::future::Future;
use std::sync::Arc;

use super::data::Data;
use super::files::Root;
use super::lanes::{Words, answer, done, path, text, words};
use super::pool::Pool;
use super::stream::Stream;
use super::streams::{STDERR, STDOUT, Streams};
use crate::opcode;
use crate::server::{Fault, Handlers, Port, Strand};
use crate::{Error, PACKET_SIZE};

/// What these services have in common.
pub(crate) struct Io {
    pub streams: Streams,
    pub root: Option<Arc<Root>>,
    pub pool: Arc<Pool>,
    /// Bytes that one lane reads at once.
    pub read: usize,
    /// Bytes that all lanes of a warp print at once.
    pub print: usize,
}

/// `EOF`, and what else C has for something that could not be done.
const FAILED: u64 = u64::MAX;

type Ask = fn(&mut Stream, [u64; 3]) -> u64;

/// Services with one packet and one word for an answer: which word says the stream, and what is answered
/// if there is none.
const ASKS: [(u32, usize, u64, Ask); 6] = [
    (opcode::FEOF, 0, 1, |stream, _| stream.at_end().into()),
    (opcode::FERROR, 0, 1, |stream, _| stream.failed().into()),
    (opcode::CLEARERR, 0, 0, |stream, _| {
        stream.clear();
        0
    }),
    (opcode::FSEEK, 0, FAILED, |stream, [_, offset, whence]| {
        done(stream.seek(offset as i64, whence as i32))
    }),
    (opcode::FTELL, 0, FAILED, |stream, _| {
        stream.position().unwrap_or(FAILED)
    }),
    (opcode::UNGETC, 1, FAILED, |stream, [character, ..]| {
        let given_back = stream.give_back(character as i32);
        given_back.map_or(FAILED, u64::from)
    }),
];

pub(crate) fn register(io: &Arc<Io>, handlers: &mut Handlers) -> Result<(), Error> {
    for (opcode, to, end) in [
        (opcode::WRITE_TO_STDOUT, Some(STDOUT), &b""[..]),
        (opcode::WRITE_TO_STDOUT_NEWLINE, Some(STDOUT), b"\n"),
        (opcode::WRITE_TO_STDERR, Some(STDERR), b""),
        (opcode::WRITE_TO_STREAM, None, b""),
    ] {
        talk(io, handlers, opcode, move |port, io| {
            write(port, io, to, end)
        })?;
    }
    for (opcode, which, without, ask) in ASKS {
        talk(io, handlers, opcode, move |port, io| {
            one_word(port, io, which, without, ask)
        })?;
    }
    talk(io, handlers, opcode::FFLUSH, flush)?;
    talk(io, handlers, opcode::READ_FROM_STREAM, read)?;
    talk(io, handlers, opcode::READ_FGETS, line)?;
    talk(io, handlers, opcode::OPEN_FILE, open)?;
    talk(io, handlers, opcode::CLOSE_FILE, close)?;
    talk(io, handlers, opcode::REMOVE, remove)?;
    talk(io, handlers, opcode::RENAME, rename)
}

pub(crate) fn talk<F>(
    io: &Arc<Io>,
    handlers: &mut Handlers,
    opcode: u32,
    serve: impl Fn(Port, Arc<Io>) -> F + Send + Sync + 'static,
) -> Result<(), Error>
where
    F: Future<Output = Result<Port, Fault>> + Send + 'static,
{
    let io = Arc::clone(io);
    handlers.talk(opcode, move |port| serve(port, Arc::clone(&io)))?;
    Ok(())
}

/// The word that says the stream, of each lane.
pub(crate) fn handles(asked: &Words, which: usize) -> Vec<(u32, u64)> {
    let handles = asked.iter().map(|(lane, words)| (*lane, words[which]));
    handles.collect()
}

/// `fwrite`, and `puts`: what is behind the data is written if all of it was.
async fn write(
    mut port: Port,
    io: Arc<Io>,
    to: Option<u64>,
    end: &'static [u8],
) -> Result<Port, Fault> {
    let handles = match to {
        Some(stream) => port.lanes().map(|lane| (lane, stream)).collect(),
        None => handles(&port.recv(words).await, 0),
    };
    let messages = port.recv_n().await?;
    let write = move |lane, stream: &mut Stream| {
        let bytes = messages.get(lane).unwrap_or_default();
        match stream.write(bytes) {
            count if count < bytes.len() as u64 => count,
            count => count + stream.write(end),
        }
    };
    let counts = io.streams.each(handles, write).await?;
    answer(&mut port, &counts, 0).await;
    Ok(port)
}

async fn one_word(
    mut port: Port,
    io: Arc<Io>,
    which: usize,
    without: u64,
    ask: Ask,
) -> Result<Port, Fault> {
    let asked = port.recv(words).await;
    let handles = handles(&asked, which);
    let ask = move |lane, stream: &mut Stream| {
        let words = asked.get(&lane).copied();
        words.map_or(without, |words| ask(stream, words))
    };
    let answers = io.streams.each(handles, ask).await?;
    answer(&mut port, &answers, without).await;
    Ok(port)
}

/// `fflush`. Of a null pointer: all streams, of which none keeps anything back.
async fn flush(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let asked = handles(&port.recv(words).await, 0);
    let (all, some): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(_, handle)| *handle == 0);
    let flush = |_, stream: &mut Stream| done(stream.flush());
    let mut answers = io.streams.each(some, flush).await?;
    answers.extend(all);
    answer(&mut port, &answers, FAILED).await;
    Ok(port)
}

/// `fread`: the data, then its size.
async fn read(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let asked = port.recv(words).await;
    let handles = handles(&asked, 1);
    let (budget, limit) = (port.budget(), io.read);
    let read = move |lane, stream: &mut Stream| {
        let size = asked.get(&lane).map_or(0, |words| words[0]);
        stream.read(size, Data::new(&budget, limit))
    };
    let data = io.streams.each(handles, read).await?;
    let bytes = |lane| data.get(&lane).map_or(&[][..], Data::bytes);
    port.send_n(bytes).await;
    let sizes = data
        .iter()
        .map(|(lane, data)| (*lane, data.bytes().len() as u64));
    answer(&mut port, &sizes.collect(), 0).await;
    Ok(port)
}

/// `fgets`.
async fn line(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let asked = port.recv(words).await;
    let handles = handles(&asked, 1);
    let (budget, limit) = (port.budget(), io.read);
    let line = move |lane, stream: &mut Stream| {
        let size = asked.get(&lane).map_or(0, |words| words[0]);
        stream.line(size as i64, Data::new(&budget, limit))
    };
    let lines = io.streams.each(handles, line).await?;
    let line = |lane| lines.get(&lane)?.as_ref();
    let bytes = |lane| line(lane).map_or(&[][..], Data::bytes);
    port.send_n(bytes).await;
    Ok(port)
}

/// `fopen`. What opens a file is the thread that it will have: to open one may block, as a FIFO does.
async fn open(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let paths = port.recv_n().await?;
    let modes = port.recv(|packets| {
        let mode = |lane| {
            let mut mode = [0; PACKET_SIZE];
            packets.read(lane, 0, &mut mode);
            (lane, mode)
        };
        packets.lanes().map(mode).collect::<Vec<_>>()
    });
    let modes = modes.await;
    let mut opening = Vec::new();
    for (lane, mode) in modes {
        let asked = path(paths.get(lane)).zip(text(Some(&mode)));
        let Some((path, mode)) = asked else { continue };
        let (Some(root), Some(slot)) = (io.root.clone(), io.streams.slot()) else {
            continue;
        };
        let (path, mode, strand) = (path.to_owned(), mode.to_owned(), Strand::default());
        let opened = strand.run(move || root.fopen(&path, &mode).map(|backing| (backing, slot)));
        opening.push((lane, strand, opened));
    }
    let mut opened = BTreeMap::new();
    for (lane, strand, outcome) in opening {
        if let Some((backing, slot)) = outcome.await? {
            opened.insert(lane, io.streams.add(backing, strand, slot));
        }
    }
    answer(&mut port, &opened, 0).await;
    Ok(port)
}

/// `fclose`.
async fn close(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let asked = handles(&port.recv(words).await, 0);
    let mut answers = BTreeMap::new();
    for (lane, handle) in asked {
        let closed = io.streams.close(handle).await?;
        answers.insert(lane, done(closed == Some(true)));
    }
    answer(&mut port, &answers, FAILED).await;
    Ok(port)
}

async fn remove(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let paths = port.recv_n().await?;
    let lanes = port.lanes();
    let remove = move |root: &Root, lane| {
        let path = path(paths.get(lane));
        path.is_some_and(|path| root.remove(path))
    };
    let answers = with_root(&io, lanes, remove).await?;
    answer(&mut port, &answers, FAILED).await;
    Ok(port)
}

async fn rename(mut port: Port, io: Arc<Io>) -> Result<Port, Fault> {
    let old = port.recv_n().await?;
    let new = port.recv_n().await?;
    let lanes = port.lanes();
    let rename = move |root: &Root, lane| {
        let paths: Option<(&CStr, &CStr)> = path(old.get(lane)).zip(path(new.get(lane)));
        paths.is_some_and(|(old, new)| root.rename(old, new))
    };
    let answers = with_root(&io, lanes, rename).await?;
    answer(&mut port, &answers, FAILED).await;
    Ok(port)
}

/// Has something done for each lane, if there is a folder.
async fn with_root(
    io: &Io,
    lanes: impl Iterator<Item = u32> + Send + 'static,
    work: impl Fn(&Root, u32) -> bool + Send + 'static,
) -> Result<BTreeMap<u32, u64>, Fault> {
    let Some(root) = io.root.clone() else {
        return Ok(BTreeMap::new());
    };
    let work = move || lanes.map(|lane| (lane, done(work(&root, lane)))).collect();
    io.pool.queue(work).await
}
