//! What handlers ask of the packets of each lane, and answer.

use std::collections::BTreeMap;
use std::ffi::CStr;

use crate::memory::Shared;
use crate::packets::Packets;
use crate::server::Port;

/// The first three words of each lane that takes part; no service has more.
pub(crate) type Words = BTreeMap<u32, [u64; 3]>;

/// Words of packets that were received.
pub(crate) fn words(packets: &mut Packets<'_, Shared>) -> Words {
    let word = |lane| [0, 1, 2].map(|word| packets.word(lane, word));
    packets.lanes().map(|lane| (lane, word(lane))).collect()
}

/// Answers each lane with a word; those that the answers lack with `otherwise`.
pub(crate) async fn answer(port: &mut Port, answers: &BTreeMap<u32, u64>, otherwise: u64) {
    port.send(|packets| {
        for lane in packets.lanes() {
            let answer = answers.get(&lane).copied().unwrap_or(otherwise);
            packets.set_word(lane, 0, answer);
        }
    })
    .await;
}

/// A result as C has it: an `int`, or a `long`.
pub(crate) fn signed(value: impl Into<i64>) -> u64 {
    value.into() as u64
}

/// 0, or -1 if something could not be done.
pub(crate) fn done(done: bool) -> u64 {
    signed(if done { 0 } else { -1 })
}

/// Bytes of a path: Linux takes no longer ones (`PATH_MAX`). What looks one up takes memory for each of its
/// parts, which does not count.
const PATH: usize = 4096;

/// The path of a message, if there is a NUL behind it, and it is not too long for any host.
pub(crate) fn path(message: Option<&[u8]>) -> Option<&CStr> {
    text(message).filter(|path| path.count_bytes() < PATH)
}

/// The text of a message, if there is a NUL behind it.
pub(crate) fn text(message: Option<&[u8]>) -> Option<&CStr> {
    CStr::from_bytes_until_nul(message?).ok()
}
