//! Links and anchors of a Markdown page.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link or picture.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Path or URL, with its anchor.
    pub target: String,
}

/// A parsed page.
#[derive(Debug, Default)]
pub struct Page {
    /// Links and pictures, in order.
    pub links: Vec<Link>,
    /// Anchors of the headings, as GitHub and mdBook name them.
    pub anchors: BTreeSet<String>,
}

impl Page {
    /// Parses a page, as mdBook does.
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        // Text of the heading that is being read.
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Link {
                        target: dest_url.to_string(),
                    });
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let count = counts.entry(anchor.clone()).or_default();
                    page.anchors.insert(match *count {
                        0 => anchor,
                        count => format!("{anchor}-{count}"),
                    });
                    *count += 1;
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        *heading += &part;
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// Anchor of a heading: the rule of GitHub, and of mdBook.
fn anchor(heading: &str) -> String {
    let characters = heading
        .trim()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ => character
                .is_alphanumeric()
                .then(|| character.to_ascii_lowercase()),
        });
    characters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_of_github() {
        let cases = [
            ("## Writing `stubs`", "writing-stubs"),
            ("## `[device-link.<name>]`", "device-linkname"),
            ("### C, C++ and *others*", "c-c-and-others"),
            ("## `nvcc --version` from PATH", "nvcc---version-from-path"),
            ("## `--format json`", "--format-json"),
            ("## [Limits](limits.md)", "limits"),
        ];
        for (heading, anchor) in cases {
            let page = Page::parse(&format!("{heading}\n\ntext\n"));
            assert_eq!(
                page.anchors,
                BTreeSet::from([anchor.to_owned()]),
                "{heading}"
            );
        }
        let page = Page::parse("# a\n\n## a\n\n```\n# b\n```\n");
        assert_eq!(
            page.anchors,
            BTreeSet::from(["a".to_owned(), "a-1".to_owned()])
        );
    }

    #[test]
    fn links_in_code_are_none() {
        let text = "[a](x) `[b](x)` ![c](y#z) [![d](y)](x)\n\n| [e](x \"title\") |\n|---|\n\n    [f](x)\n\n[g]\n\n[g]: x\n";
        let page = Page::parse(text);
        let targets: Vec<_> = page.links.iter().map(|link| &*link.target).collect();
        assert_eq!(targets, ["x", "y#z", "x", "y", "x", "x"]);
    }
}
