//! Blocks of LZ4, in fatbins of CUDA ("LZ4 Block Format Description").

/// Bytes of a block, of the stated size. `None` if it has another one, or is damaged.
pub fn unpack_lz4(block: &[u8], size: usize) -> Option<Vec<u8>> {
    /// Highest number of bytes for one byte of a block.
    const MAX_RATIO: usize = 255;
    if size / MAX_RATIO > block.len() {
        return None;
    }
    let mut bytes = Vec::with_capacity(size);
    let mut rest = block;
    loop {
        let token = take(&mut rest, 1)?[0];
        let literals = length(token >> 4, &mut rest)?;
        bytes.extend_from_slice(take(&mut rest, literals)?);
        // The last sequence has literals only.
        if rest.is_empty() {
            return (bytes.len() == size).then_some(bytes);
        }
        let offset = take(&mut rest, 2)?;
        let offset = usize::from(u16::from_le_bytes([offset[0], offset[1]]));
        let count = length(token & 15, &mut rest)?.checked_add(4)?;
        let start = bytes.len().checked_sub(offset).filter(|_| offset > 0)?;
        if count > size.checked_sub(bytes.len())? {
            return None;
        }
        // The copy may overlap itself.
        for index in start..start + count {
            bytes.push(bytes[index]);
        }
    }
}

fn take<'d>(rest: &mut &'d [u8], count: usize) -> Option<&'d [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

/// A length, whose further bytes follow if the four bits of the token are set.
fn length(bits: u8, rest: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(bits);
    if bits == 15 {
        loop {
            let byte = take(rest, 1)?[0];
            length = length.checked_add(byte.into())?;
            if byte != 255 {
                break;
            }
        }
    }
    Some(length)
}
