//! Words and messages of each lane, for handlers.

use std::collections::BTreeMap;
use std::ffi::CStr;

use crate::memory::SharedMemory;
use crate::packets::Packets;
use crate::server::Port;

/// First three words of each participating lane; no service uses more.
pub(crate) type Words = BTreeMap<u32, [u64; 3]>;

/// Reads the words of received packets.
pub(crate) fn read_words(packets: &mut Packets<'_, SharedMemory>) -> Words {
    packets
        .lanes()
        .map(|lane| (lane, [0, 1, 2].map(|word| packets.word(lane, word))))
        .collect()
}

/// Sends each lane its answer, or `default` if it has none.
pub(crate) async fn send_answers(port: &mut Port, answers: &BTreeMap<u32, u64>, default: u64) {
    port.send(|packets| {
        for lane in packets.lanes() {
            let answer = answers.get(&lane).copied().unwrap_or(default);
            packets.set_word(lane, 0, answer);
        }
    })
    .await;
}

/// Encoding of a result of type `int` or `long`.
pub(crate) fn signed(value: impl Into<i64>) -> u64 {
    value.into() as u64
}

/// Encoding of success as 0 and failure as -1.
pub(crate) fn zero_or_minus_one(success: bool) -> u64 {
    signed(if success { 0 } else { -1 })
}

/// Maximum size of a path with its NUL, as on Linux (`PATH_MAX`). A lookup allocates memory for each component,
/// which is not counted.
const PATH_MAX: usize = 4096;

/// The path in a message, if it ends with a NUL and is shorter than [`PATH_MAX`].
pub(crate) fn path(message: Option<&[u8]>) -> Option<&CStr> {
    c_str(message).filter(|path| path.count_bytes() < PATH_MAX)
}

/// The string in a message, if it ends with a NUL.
pub(crate) fn c_str(message: Option<&[u8]>) -> Option<&CStr> {
    CStr::from_bytes_until_nul(message?).ok()
}
