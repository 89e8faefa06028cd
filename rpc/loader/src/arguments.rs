//! `argv` and `envp` of C, for memory that a device reads.

use std::ffi::{CString, OsStr};

use crate::error::{Code, Error, Result};

/// Strings, and pointers to them that end with a null pointer.
#[derive(Debug)]
pub struct CStringArray(Vec<CString>);

const POINTER_SIZE: usize = 8;

impl CStringArray {
    /// Array of these strings.
    pub fn new(strings: Vec<CString>) -> Self {
        Self(strings)
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Size in bytes of pointers and strings.
    pub fn size(&self) -> usize {
        let strings: usize = self
            .0
            .iter()
            .map(|string| string.as_bytes_with_nul().len())
            .sum();
        self.pointers_size() + strings
    }

    /// Bytes for memory that the device sees at `address`: pointers, then strings.
    pub fn to_bytes(&self, address: u64) -> Vec<u8> {
        let mut pointers = Vec::with_capacity(self.size());
        let mut strings = Vec::new();
        for string in &self.0 {
            let offset = (self.pointers_size() + strings.len()) as u64;
            pointers.extend(address.wrapping_add(offset).to_ne_bytes());
            strings.extend(string.as_bytes_with_nul());
        }
        pointers.extend([0; POINTER_SIZE]);
        pointers.append(&mut strings);
        pointers
    }

    fn pointers_size(&self) -> usize {
        (self.0.len() + 1) * POINTER_SIZE
    }
}

/// Converts a command-line word or variable to a C string.
pub fn c_string(word: &OsStr) -> Result<CString> {
    CString::new(word.as_encoded_bytes()).map_err(|_| {
        let word = word.to_string_lossy();
        Error::new(Code::Failed, format!("{word:?} contains a NUL byte"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_their_strings() {
        let array = CStringArray::new(vec![c"a.out".into(), c"".into(), c"-x=1".into()]);
        let bytes = array.to_bytes(0x1000);
        assert_eq!(bytes.len(), array.size());
        let words: Vec<u64> = bytes[..32]
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))
            .collect();
        assert_eq!(words, [0x1020, 0x1026, 0x1027, 0]);
        assert_eq!(&bytes[32..], b"a.out\0\0-x=1\0");
    }

    #[test]
    fn none_is_a_null_pointer() {
        assert_eq!(CStringArray::new(Vec::new()).to_bytes(0x1000), [0; 8]);
    }
}
