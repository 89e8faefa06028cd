//! Directories of `search-dirs`. Their text shows the system that they are of: one `GpuStub.toml` is for all targets, and
//! read on any host.

/// Whether the directory is absolute on a system, or begins with `$ORIGIN`.
pub(crate) fn is_search_dir(dir: &str) -> bool {
    is_of_unix(dir) || is_of_windows(dir)
}

/// Whether a target of this system searches the directory.
pub(crate) fn is_of_system(dir: &str, os: &str) -> bool {
    match os {
        "windows" => is_of_windows(dir),
        _ => is_of_unix(dir),
    }
}

fn is_of_unix(dir: &str) -> bool {
    match dir.strip_prefix("$ORIGIN") {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => dir.starts_with('/'),
    }
}

/// As the run time's `is_absolute`: a drive and a root, or a share.
fn is_of_windows(dir: &str) -> bool {
    match (dir.strip_prefix("$ORIGIN"), dir.as_bytes()) {
        (Some(rest), _) => rest.is_empty() || rest.starts_with(['/', '\\']),
        (None, [letter, b':', b'/' | b'\\', ..]) => letter.is_ascii_alphabetic(),
        (None, bytes) => bytes.starts_with(b"//") || bytes.starts_with(br"\\"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_of_the_systems_that_their_text_shows() {
        for (dir, unix, windows) in [
            ("$ORIGIN", true, true),
            ("$ORIGIN/../lib", true, true),
            (r"$ORIGIN\gpu", false, true),
            ("$ORIGINAL/lib", false, false),
            ("/opt/cuda/lib64", true, false),
            (r"C:\cuda\bin", false, true),
            ("z:/x", false, true),
            ("C:", false, false),
            ("C:cuda", false, false),
            ("1:/x", false, false),
            (r"\cuda", false, false),
            (r"\\server\share", false, true),
            ("//server/share", true, true),
            ("lib", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_of_system(dir, "linux"), unix, "{dir}");
            assert_eq!(is_of_system(dir, "macos"), unix, "{dir}");
            assert_eq!(is_of_system(dir, "windows"), windows, "{dir}");
            assert_eq!(is_search_dir(dir), unix || windows, "{dir}");
        }
    }
}
