//! What a device and the host say to each other for a `printf`.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::IntoIter;

use super::counted::Counted;
use super::{Format, until_nul};
use crate::packets::Lanes;
use crate::server::{Budget, Fault, Messages, Port};

/// All that the lanes of a call print, before it is printed: which may be done by another thread.
///
/// It counts as messages do ([`Limits::memory`](crate::server::Limits::memory)), as does the text.
#[derive(Debug)]
pub struct Received {
    lanes: Lanes,
    packed: bool,
    formats: Messages,
    arguments: Messages,
    /// Of each lane, one behind the other, each with a NUL.
    strings: BTreeMap<u32, Counted>,
    budget: Arc<Budget>,
}

/// Receives formats, arguments and strings: all that comes before [`finish`]. A stream that is printed to was
/// received before.
///
/// # Errors
///
/// If a format has `%n`, or the strings of all lanes together have more than `limit` bytes; or as
/// [`Port::recv_n`] says. The call cannot go on then.
pub async fn receive(port: &mut Port, packed: bool, limit: usize) -> Result<Received, Fault> {
    let formats = port.recv_n().await?;
    let mut sizes = BTreeMap::new();
    for lane in port.lanes() {
        let size = format(&formats, lane, packed)?.arguments_size();
        sizes.insert(lane, size);
    }
    port.send(|packets| {
        for (lane, size) in &sizes {
            packets.set_word(*lane, 0, *size as u64);
        }
    })
    .await;
    let arguments = port.recv_n().await?;
    let budget = port.budget();
    let mut reserved = budget.none();
    let mut addresses = BTreeMap::new();
    for lane in port.lanes() {
        let bytes = arguments.get(lane).unwrap_or_default();
        let format = format(&formats, lane, packed)?;
        reserved.grow(size_of::<u64>() * format.most_strings(bytes))?;
        addresses.insert(lane, format.strings(bytes).into_iter());
    }
    let strings = strings(port, addresses, limit).await?;
    Ok(Received {
        lanes: port.lanes(),
        packed,
        formats,
        arguments,
        strings,
        budget,
    })
}

/// Asks each lane for its strings, one after the other. The device goes on with it for as long as any lane
/// is asked; one that is not sends nothing meanwhile.
async fn strings(
    port: &mut Port,
    mut addresses: BTreeMap<u32, IntoIter<u64>>,
    limit: usize,
) -> Result<BTreeMap<u32, Counted>, Fault> {
    let budget = port.budget();
    let mut strings = BTreeMap::new();
    let mut left = limit;
    loop {
        let next = addresses
            .iter_mut()
            .filter_map(|(lane, rest)| Some((*lane, rest.next()?)));
        let asked: BTreeMap<u32, u64> = next.collect();
        if asked.is_empty() {
            return Ok(strings);
        }
        port.send(|packets| {
            for lane in packets.lanes() {
                let address = asked.get(&lane).copied().unwrap_or(0);
                packets.set_word(lane, 1, address);
            }
        })
        .await;
        let messages = port.recv_n().await?;
        for lane in asked.into_keys() {
            let string = messages.get(lane).unwrap_or_default();
            let rest = left.checked_sub(string.len());
            left = rest.ok_or(Fault::Other("printf: strings are longer than is allowed"))?;
            let strings = strings
                .entry(lane)
                .or_insert_with(|| Counted::new(Some(budget.none())));
            strings.put(until_nul(string))?;
            strings.put(&[0])?;
        }
    }
}

/// Ends the conversation: each lane's `printf` gives what `result` says for it, as the `int` that it is.
pub async fn finish(port: &mut Port, result: impl Fn(u32) -> i32) {
    port.send(|packets| {
        for lane in packets.lanes() {
            packets.set_word(lane, 0, i64::from(result(lane)) as u64);
            // No string is asked for.
            packets.set_word(lane, 1, 0);
        }
    })
    .await;
}

impl Received {
    /// What each lane prints, by its number.
    ///
    /// # Errors
    ///
    /// If arguments are missing, that is more than `limit` bytes of all lanes together, or more than all
    /// calls of the device may hold.
    pub fn texts(&self, limit: usize) -> Result<Texts, Fault> {
        let mut texts = BTreeMap::new();
        let mut left = limit;
        for lane in self.lanes {
            let format = format(&self.formats, lane, self.packed)?;
            let arguments = self.arguments.get(lane).unwrap_or_default();
            let strings = self.strings.get(&lane).map_or(&[][..], Counted::bytes);
            let strings = strings.split_inclusive(|byte| *byte == 0);
            let empty = Counted::new(Some(self.budget.none()));
            let text = format.print_to(empty, arguments, strings, left)?;
            left -= text.bytes().len();
            texts.insert(lane, text);
        }
        Ok(Texts(texts))
    }
}

/// What lanes print.
#[derive(Debug)]
pub struct Texts(BTreeMap<u32, Counted>);

impl Texts {
    /// The text of a lane, if it takes part.
    pub fn get(&self, lane: u32) -> Option<&[u8]> {
        self.0.get(&lane).map(Counted::bytes)
    }
}

fn format(formats: &Messages, lane: u32, packed: bool) -> Result<Format<'_>, Fault> {
    Format::parse(formats.get(lane).unwrap_or_default(), packed)
}
