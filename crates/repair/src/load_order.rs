//! Lists of delvewheel (`acme.libs/.load-order-acme-1.0`): DLLs of the directory, which `__init__.py` loads one after another
//! where Python searches no added directories: before 3.8, and conda's before 3.10. Up to delvewheel 1.1 it fails if one is
//! missing.

/// Whether a file is such a list.
pub fn is_load_order(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with(".load-order-")
}

/// The list at a path without the removed files of its directory. `None`: it names none of them.
pub fn without(path: &str, text: &str, removed: &[String]) -> Option<String> {
    let directory = path.rsplit_once('/').unwrap_or_default().0;
    let is_removed = |word: &str| {
        removed.iter().any(|file| {
            let (parent, name) = file.rsplit_once('/').unwrap_or(("", file));
            parent == directory && name.eq_ignore_ascii_case(word)
        })
    };
    let mut edited = String::new();
    for line in text.split_inclusive('\n') {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kept: Vec<&str> = (words.iter().copied())
            .filter(|word| !is_removed(word))
            .collect();
        if kept.len() == words.len() {
            edited.push_str(line);
        } else if !kept.is_empty() {
            edited += &kept.join(" ");
            edited += &line[line.trim_end().len()..];
        }
    }
    (edited != text).then_some(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_lose_removed_files() {
        let removed = ["acme.libs/a-1.dll", "other/b.dll"].map(str::to_owned);
        let path = "acme.libs/.load-order-acme-1.0";
        assert!(is_load_order(path) && !is_load_order("acme.libs/a-1.dll"));
        for (before, after) in [
            ("A-1.dll\r\nb.dll\r\n", Some("b.dll\r\n")),
            ("b.dll\na-1.dll", Some("b.dll\n")),
            ("b.dll a-1.dll c.dll\n", Some("b.dll c.dll\n")),
            ("b.dll\nxa-1.dll\n", None),
            ("", None),
        ] {
            assert_eq!(without(path, before, &removed).as_deref(), after);
        }
    }
}
