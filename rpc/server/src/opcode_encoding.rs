//! Encodings of opcodes.

#[cfg(feature = "server")]
use crate::opcode;

/// Encoding of opcodes by the client.
/// ```
/// use gpurpc::{Generation, Opcodes};
///
/// assert_eq!(Generation::LLVM_19.opcodes, Opcodes::Narrow);
/// assert_eq!(Generation::LLVM_20.opcodes, Opcodes::Wide);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Opcodes {
    /// 32 bits; opcodes of LLVM's libc have `'c'` in the upper byte. LLVM 20 and later.
    #[default]
    Wide,
    /// 16 bits, as in LLVM 19; opcodes of its libc are small numbers. They are handled as the wide opcodes
    /// with the same number; opcodes from 0x8000 on, which are the program's, are unchanged.
    Narrow,
}

impl Opcodes {
    #[cfg(feature = "server")]
    pub(crate) fn decode(self, opcode: u32) -> u32 {
        match self {
            Self::Wide => opcode,
            Self::Narrow => {
                // The first half in memory, in either byte order; the rest is padding.
                let [a, b, ..] = opcode.to_ne_bytes();
                match u32::from(u16::from_ne_bytes([a, b])) {
                    own @ 0x8000.. => own,
                    libc => opcode::LIBC_BASE | libc,
                }
            }
        }
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    /// As clients of either kind store them; a narrow one leaves the upper bytes as they were.
    #[test]
    fn opcodes_are_read_as_they_were_written() {
        for (narrow, opcode) in [(6_u16, opcode::READ_FROM_STREAM), (0x8001, 0x8001)] {
            let [a, b] = narrow.to_ne_bytes();
            let encoded = u32::from_ne_bytes([a, b, 0x5a, 0xa5]);
            assert_eq!(Opcodes::Narrow.decode(encoded), opcode);
        }
        let wide = opcode::READ_FROM_STREAM;
        assert_eq!(Opcodes::Wide.decode(wide), wide);
    }
}
