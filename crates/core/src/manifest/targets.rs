//! Targets for which a stub exists: key `targets`.

use crate::spanned::Spanned;
use crate::target::Target;

/// Operating systems (`linux`), and target triples in which `*` matches any text (`*-linux-gnu`). Empty:
/// every target that can have stubs.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Default)]
pub struct Targets(pub Vec<Spanned<String>>);

impl Targets {
    /// Whether the target is one of them.
    pub fn include(&self, target: &Target) -> bool {
        self.0.is_empty()
            || self.0.iter().any(|pattern| {
                pattern.value == target.os
                    || matches(pattern.value.as_bytes(), target.triple.as_bytes())
            })
    }
}

/// Whether a pattern matches all of a text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|from| matches(rest, &text[from..])),
        ([a, pattern @ ..], [b, text @ ..]) => a == b && matches(pattern, text),
        _ => false,
    }
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use super::*;

    #[test]
    fn systems_and_triples_are_matched() {
        for (patterns, triple, expected) in [
            (&[][..], "riscv64gc-unknown-linux-gnu", true),
            (&["linux"], "riscv64gc-unknown-linux-gnu", true),
            (&["linux"], "aarch64-linux-android", false),
            (&["windows", "linux"], "x86_64-pc-windows-msvc", true),
            (&["*-linux-gnu"], "x86_64-unknown-linux-gnu", true),
            (&["*-linux-gnu"], "x86_64-unknown-linux-musl", false),
            (&["x86_64-*-gnu"], "x86_64-unknown-linux-gnu", true),
            (
                &["x86_64-unknown-linux-gnu"],
                "x86_64-unknown-linux-gnu",
                true,
            ),
            (&["x86_64-unknown-linux"], "x86_64-unknown-linux-gnu", false),
        ] {
            let mut targets = Targets::default();
            for pattern in patterns {
                targets.0.push(Spanned {
                    value: (*pattern).to_owned(),
                    span: 0..0,
                });
            }
            let target = Target::from_triple(triple).unwrap();
            assert_eq!(targets.include(&target), expected, "{targets:?} {triple}");
        }
    }
}
