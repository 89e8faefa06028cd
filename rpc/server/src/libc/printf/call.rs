//! Message exchange of a `printf` call.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::IntoIter;

use super::budgeted_buffer::BudgetedBuffer;
use super::format::{Format, until_nul};
use super::output::TOO_LONG;
use crate::lanes::Lanes;
use crate::server::{Budget, Fault, Messages, Port};

/// Formats, arguments and strings of all lanes of a call. Another thread may print them.
///
/// They count as messages ([`Limits::memory`](crate::server::Limits::memory)), as does the printed text.
#[derive(Debug)]
pub struct Received {
    lanes: Lanes,
    packed: bool,
    formats: Messages,
    arguments: Messages,
    /// Concatenated strings of each lane, each with a NUL.
    strings: BTreeMap<u32, BudgetedBuffer>,
    /// Reasons of the lanes that print nothing.
    refused: BTreeMap<u32, Fault>,
    budget: Arc<Budget>,
}

/// Receives formats, arguments and strings: all messages before [`finish`], except the stream, which the caller
/// has received.
///
/// A lane is refused if its format contains `%n`, or the strings of all lanes together have more than `limit` bytes
/// or exceed the memory budget of the device: it sends no further string, and [`Texts::refused`] has the reason.
///
/// # Errors
///
/// [`Fault::MessageTooLarge`] or [`Fault::OutOfMemory`] as for [`Port::recv_n`]. The call cannot continue then.
pub async fn receive(port: &mut Port, packed: bool, limit: usize) -> Result<Received, Fault> {
    let formats = port.recv_n().await?;
    let (mut sizes, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for lane in port.lanes() {
        match format(&formats, lane, packed) {
            Ok(format) => drop(sizes.insert(lane, format.arguments_size())),
            Err(reason) => drop(refused.insert(lane, reason)),
        }
    }
    port.send(|packets| {
        for lane in packets.lanes() {
            // A lane that is refused sends no arguments.
            let size = sizes.get(&lane).copied().unwrap_or(0);
            packets.set_word(lane, 0, size as u64);
        }
    })
    .await;
    let arguments = port.recv_n().await?;
    let budget = port.budget();
    let mut reserved = budget.empty_reservation();
    let mut addresses = BTreeMap::new();
    for lane in sizes.into_keys() {
        let bytes = arguments.get(lane).unwrap_or_default();
        let format = format(&formats, lane, packed)?;
        match reserved.grow(size_of::<u64>() * format.max_strings(bytes)) {
            Ok(()) => drop(addresses.insert(lane, format.strings(bytes).into_iter())),
            Err(reason) => drop(refused.insert(lane, reason)),
        }
    }
    let strings = receive_strings(port, addresses, limit, &mut refused).await?;
    Ok(Received {
        lanes: port.lanes(),
        packed,
        formats,
        arguments,
        strings,
        refused,
        budget,
    })
}

/// Requests the strings of each lane, one after the other. The device continues as long as any lane is requested
/// for a string; the other lanes send nothing meanwhile.
async fn receive_strings(
    port: &mut Port,
    mut addresses: BTreeMap<u32, IntoIter<u64>>,
    mut remaining: usize,
    refused: &mut BTreeMap<u32, Fault>,
) -> Result<BTreeMap<u32, BudgetedBuffer>, Fault> {
    let budget = port.budget();
    let mut strings = BTreeMap::new();
    loop {
        let requested: BTreeMap<u32, u64> = addresses
            .iter_mut()
            .filter_map(|(lane, addresses)| Some((*lane, addresses.next()?)))
            .collect();
        if requested.is_empty() {
            return Ok(strings);
        }
        port.send(|packets| {
            for lane in packets.lanes() {
                let address = requested.get(&lane).copied().unwrap_or(0);
                packets.set_word(lane, 1, address);
            }
        })
        .await;
        let messages = port.recv_n().await?;
        for lane in requested.into_keys() {
            let string = messages.get(lane).unwrap_or_default();
            let buffer = strings
                .entry(lane)
                .or_insert_with(|| BudgetedBuffer::new(Some(budget.empty_reservation())));
            if let Err(reason) = append_string(string, buffer, &mut remaining) {
                refused.insert(lane, reason);
                addresses.remove(&lane);
                strings.remove(&lane);
            }
        }
    }
}

/// Appends a string to those of its lane.
fn append_string(
    string: &[u8],
    buffer: &mut BudgetedBuffer,
    remaining: &mut usize,
) -> Result<(), Fault> {
    *remaining = remaining
        .checked_sub(string.len())
        .ok_or(Fault::Other("printf: strings exceed the limit"))?;
    buffer.append(until_nul(string))?;
    buffer.append(&[0])
}

/// Ends the exchange: the `printf` of each lane returns its `result`.
///
/// ```
/// use gpurpc::libc::printf;
/// use gpurpc::server::Port;
///
/// /// Makes the `printf` of each lane fail.
/// async fn fail(port: &mut Port) {
///     printf::finish(port, |_lane| -1).await;
/// }
/// ```
pub async fn finish(port: &mut Port, result: impl Fn(u32) -> i32) {
    port.send(|packets| {
        for lane in packets.lanes() {
            packets.set_word(lane, 0, i64::from(result(lane)) as u64);
            // No further string is requested.
            packets.set_word(lane, 1, 0);
        }
    })
    .await;
}

impl Received {
    /// Prints the text of each lane. A lane whose text exceeds what is left of `limit` bytes for all lanes, or of the
    /// memory budget of the device, is refused.
    ///
    /// # Errors
    ///
    /// [`Fault::Other`] if arguments are missing: the client has sent fewer than it was asked for.
    pub fn texts(&self, limit: usize) -> Result<Texts, Fault> {
        let (mut texts, mut refused) = (BTreeMap::new(), self.refused.clone());
        let mut remaining = limit;
        for lane in self.lanes {
            if refused.contains_key(&lane) {
                continue;
            }
            let format = format(&self.formats, lane, self.packed)?;
            let arguments = self.arguments.get(lane).unwrap_or_default();
            let strings = self
                .strings
                .get(&lane)
                .map_or(&[][..], BudgetedBuffer::bytes);
            let strings = strings.split_inclusive(|byte| *byte == 0);
            let empty = BudgetedBuffer::new(Some(self.budget.empty_reservation()));
            match format.print_to(empty, arguments, strings, remaining) {
                Ok(text) => {
                    remaining -= text.bytes().len();
                    texts.insert(lane, text);
                }
                Err(reason @ (TOO_LONG | Fault::OutOfMemory { .. })) => {
                    refused.insert(lane, reason);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(Texts { texts, refused })
    }
}

/// Printed texts by lane. Returned by [`Received::texts`].
///
/// ```
/// use gpurpc::libc::printf::Texts;
///
/// fn print(texts: &Texts) {
///     for lane in 0..64 {
///         if let Some(text) = texts.get(lane) {
///             println!("{lane}: {}", String::from_utf8_lossy(text));
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Texts {
    texts: BTreeMap<u32, BudgetedBuffer>,
    refused: BTreeMap<u32, Fault>,
}

impl Texts {
    /// The text of a lane, if it participates and is not refused.
    pub fn get(&self, lane: u32) -> Option<&[u8]> {
        self.texts.get(&lane).map(BudgetedBuffer::bytes)
    }

    /// The refused lanes, in ascending order, with the reasons. Their `printf` prints nothing and returns -1.
    pub fn refused(&self) -> impl Iterator<Item = (u32, Fault)> + '_ {
        self.refused
            .iter()
            .map(|(lane, reason)| (*lane, reason.clone()))
    }
}

fn format(formats: &Messages, lane: u32, packed: bool) -> Result<Format<'_>, Fault> {
    Format::parse(formats.get(lane).unwrap_or_default(), packed)
}
