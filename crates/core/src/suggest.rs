//! "Did you mean": the nearest of some names.

#[cfg(feature = "tools")]
mod edit_distance;

/// Name of `known` nearest to `word` by edit distance, if it is near enough: a third of the letters
/// may differ, as in rustc. Case is ignored. Of equally near ones, the first. If none is near
/// enough, the only name that starts with `word`: `include` means `include-dirs`.
#[cfg(feature = "tools")]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    edit_distance::nearest_of(word, &mut known.into_iter())
}

/// Returns `None`: build scripts list the known names. `check` and `sync` suggest the nearest.
#[cfg(not(feature = "tools"))]
pub fn nearest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    None
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use super::edit_distance::distance;
    use super::*;

    #[test]
    fn finds_the_nearest_name() {
        let keys = [
            "majors",
            "header-version",
            "required-functions",
            "search-dirs",
            "load-names",
            "required-features",
        ];
        for (word, meant) in [
            ("major", Some("majors")),
            ("haeder-version", Some("header-version")),
            ("header", Some("header-version")),
            ("required", None),
            ("required-function", Some("required-functions")),
            ("load_names", Some("load-names")),
            ("LOAD-NAMES", Some("load-names")),
            ("searchdir", Some("search-dirs")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
        assert_eq!(
            nearest("cudamalloc", ["cudaFree", "cudaMalloc"]),
            Some("cudaMalloc")
        );
        assert_eq!(nearest(&"x".repeat(10_000), ["x"]), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn counts_edits() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ] {
            assert_eq!(
                distance(&chars(a), &chars(b), edits),
                Some(edits),
                "{a} {b}"
            );
            if let Some(fewer) = edits.checked_sub(1) {
                assert_eq!(distance(&chars(a), &chars(b), fewer), None, "{a} {b}");
            }
        }
    }
}
