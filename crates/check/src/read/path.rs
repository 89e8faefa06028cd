//! Validation of member names.

use crate::package::ContainerKind;

/// Reason why a name must not be unpacked. In archives for Unix alone `\` and `:` are ordinary characters.
pub(super) fn unsafe_name(name: &[u8], kind: ContainerKind) -> Option<&'static str> {
    let is_for_unix = kind == ContainerKind::Archive;
    if name.is_empty() {
        Some("empty member name")
    } else if name.contains(&0) {
        Some("NUL byte in the member name: some unpackers use only the part before it")
    } else if std::str::from_utf8(name).is_err() {
        Some("member name is not UTF-8")
    } else if name[0] == b'/' {
        Some("absolute member path")
    } else if name
        .split(|b| *b == b'/')
        .any(|component| component == b"..")
    {
        Some("member path leaves the package through `..`")
    } else if !is_for_unix && !is_normalized(name) {
        Some("`.` or nothing between two `/` of the member path, which installers leave out")
    } else if name.iter().any(u8::is_ascii_control) {
        Some("control characters in the member name")
    } else if !is_for_unix && name.contains(&b'\\') {
        Some("`\\` in the member path, which separates directories on Windows")
    } else if !is_for_unix && name.get(1) == Some(&b':') {
        Some("Windows drive in the member path")
    } else {
        None
    }
}

/// Whether a name has no component that installers leave out. A directory ends with `/`.
fn is_normalized(name: &[u8]) -> bool {
    let name = name.strip_suffix(b"/").unwrap_or(name);
    name.split(|b| *b == b'/')
        .all(|component| ![&b""[..], b"."].contains(&component))
}

/// Whether a link of this name leads out of the package.
pub(super) fn leads_out(name: &[u8], target: &[u8]) -> bool {
    let mut depth = name.iter().filter(|b| **b == b'/').count();
    if target.starts_with(b"/") {
        return true;
    }
    for component in target.split(|b| *b == b'/') {
        match component {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_known() {
        for name in [
            &b"../x"[..],
            b"a/../../x",
            b"/etc/passwd",
            b"a\0b",
            b"a\\..\\x",
            b"C:/x",
            b"a\nb",
            b"./a",
            b"a/./b",
            b"a//b",
            b"\xff",
            b"",
        ] {
            assert!(
                unsafe_name(name, ContainerKind::Wheel).is_some(),
                "{name:?}"
            );
        }
        for name in [
            "a",
            "a/",
            "a/b.so",
            "a..b/..c",
            "a./.b",
            "ä/ß",
            "x/.hidden",
            "a b",
        ] {
            assert_eq!(
                unsafe_name(name.as_bytes(), ContainerKind::Wheel),
                None,
                "{name}"
            );
        }
        assert_eq!(unsafe_name(b"dev-disk\\x2d1", ContainerKind::Archive), None);
    }

    #[test]
    fn links_that_lead_out_are_known() {
        for (name, target, expected) in [
            ("lib/libx.so", "libx.so.1", false),
            ("lib/libx.so", "../lib64/libx.so.1", false),
            ("lib/libx.so", "../../x", true),
            ("x", "..", true),
            ("x", "/lib/x", true),
            ("x", "a/../b", false),
        ] {
            assert_eq!(
                leads_out(name.as_bytes(), target.as_bytes()),
                expected,
                "{name} -> {target}"
            );
        }
    }
}
