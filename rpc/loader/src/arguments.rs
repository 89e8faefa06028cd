//! `argv` and `envp`, as C has them, for memory that a device reads.

use std::ffi::CString;

/// Texts, and pointers to them with a null one behind.
#[derive(Debug)]
pub struct Vector(Vec<CString>);

const POINTER: usize = 8;

impl Vector {
    /// Of these texts.
    pub fn new(texts: Vec<CString>) -> Self {
        Self(texts)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of all together.
    pub fn size(&self) -> usize {
        let texts: usize = self
            .0
            .iter()
            .map(|text| text.as_bytes_with_nul().len())
            .sum();
        self.pointers() + texts
    }

    /// The bytes, for a device that sees them from `address` on: pointers first.
    pub fn at(&self, address: u64) -> Vec<u8> {
        let mut pointers = Vec::with_capacity(self.size());
        let mut texts = Vec::new();
        for text in &self.0 {
            let offset = (self.pointers() + texts.len()) as u64;
            pointers.extend(address.wrapping_add(offset).to_ne_bytes());
            texts.extend(text.as_bytes_with_nul());
        }
        pointers.extend([0; POINTER]);
        pointers.append(&mut texts);
        pointers
    }

    fn pointers(&self) -> usize {
        (self.0.len() + 1) * POINTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_their_texts() {
        let vector = Vector::new(vec![c"a.out".into(), c"".into(), c"-x=1".into()]);
        let bytes = vector.at(0x1000);
        assert_eq!(bytes.len(), vector.size());
        let words: Vec<u64> = bytes[..32]
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))
            .collect();
        assert_eq!(words, [0x1020, 0x1026, 0x1027, 0]);
        assert_eq!(&bytes[32..], b"a.out\0\0-x=1\0");
    }

    #[test]
    fn none_is_a_null_pointer() {
        assert_eq!(Vector::new(Vec::new()).at(0x1000), [0; 8]);
    }
}
