//! Functions on strings.

/// Joins words with a separator. The method of slices takes 25 times as long to compile, once for
/// each crate and each type of string.
pub fn join<S: AsRef<str>>(words: &[S], separator: &str) -> String {
    let mut joined = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            joined += separator;
        }
        joined += word.as_ref();
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_between_words() {
        assert_eq!(join::<&str>(&[], ", "), "");
        assert_eq!(join(&["", "a", ""], ", "), ", a, ");
    }
}
