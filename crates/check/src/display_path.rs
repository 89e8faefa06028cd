//! Untrusted text in messages.

/// Bytes as text, with control characters and changes of the writing direction escaped.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        // U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 change the direction.
        let changes_direction = matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || changes_direction {
            text.extend(c.escape_default())
        } else {
            text.push(c)
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_escapes_terminal_codes() {
        assert_eq!(printable(b"a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(printable(b"\xffx"), "\u{fffd}x");
    }
}
