//! Checksum of a PE image: that of CheckSumMappedFile in imagehlp.dll, which `PE Format` does not define. It is the sum of all
//! words of 16 bits, with carries added, and the length of the file; its own field counts as zero.

/// Checksum of a file in parts, in which the field of the checksum is zero.
pub(super) fn checksum<'b>(parts: impl Iterator<Item = &'b [u8]>) -> u32 {
    let mut length: u64 = 0;
    let mut sum: u64 = 0;
    for mut part in parts {
        // A part may begin within a word.
        if let (1, Some((byte, rest))) = (length % 2, part.split_first()) {
            sum += u64::from(*byte) << 8;
            length += 1;
            part = rest;
        }
        length += part.len() as u64;
        let mut words = part.chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_le_bytes([word[0], word[1]]));
        }
        sum += words
            .remainder()
            .iter()
            .map(|byte| u64::from(*byte))
            .sum::<u64>();
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (sum + length) as u32
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn parts_do_not_change_the_sum() {
        let bytes: Vec<u8> = (0..=255).collect();
        let whole = checksum([&bytes[..]].into_iter());
        for middle in [0, 1, 2, 127, 255] {
            let (first, second) = bytes.split_at(middle);
            assert_eq!(checksum([first, second].into_iter()), whole, "{middle}");
        }
        // Of 0xffff and 1 the carry is added.
        assert_eq!(checksum([&[0xff, 0xff, 1][..]].into_iter()), 1 + 3);
    }
}
