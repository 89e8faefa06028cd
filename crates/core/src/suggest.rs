//! "Did you mean": the nearest of some names.

mod edit_distance;

/// Name of `known` nearest to `word` by edit distance, if it is near enough: a third of the letters
/// may differ, as in rustc. Case is ignored. Of equally near ones, the first. If none is near
/// enough, the only name that starts with `word`: `include` means `include-dirs`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    edit_distance::nearest_of(word, &mut known.into_iter())
}

#[cfg(test)]
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
        for (word, nearest_key) in [
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
            assert_eq!(nearest(word, keys), nearest_key, "{word}");
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
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ] {
            let count = |limit| distance(a.as_bytes(), b.as_bytes(), limit);
            assert_eq!(count(edits), Some(edits), "{a:?} {b:?}");
            if let Some(fewer) = edits.checked_sub(1) {
                assert_eq!(count(fewer), None, "{a:?} {b:?}");
            }
        }
    }
}
