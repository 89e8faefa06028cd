//! Links and anchors of a Markdown page.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// A link or picture.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Path or URL, with its anchor.
    pub target: String,
    /// Position of the target in the text; `None` for other forms than `[text](target)`.
    position: Option<Range<usize>>,
}

/// A parsed page.
#[derive(Debug, Default)]
pub struct Page {
    /// Links and pictures, in order.
    pub links: Vec<Link>,
    /// Anchors of the headings, as GitHub and mdBook name them.
    pub anchors: BTreeSet<String>,
    /// HTML tags within text.
    pub tags: Vec<String>,
}

impl Page {
    /// Parses a page, as mdBook does.
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        // Text of the heading that is being read.
        let mut heading: Option<String> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(
                    Tag::Link {
                        link_type,
                        dest_url,
                        ..
                    }
                    | Tag::Image {
                        link_type,
                        dest_url,
                        ..
                    },
                ) => {
                    let position = match link_type {
                        LinkType::Inline => text[range.clone()]
                            .rfind(&format!("]({dest_url}"))
                            .map(|start| range.start + start + 2)
                            .map(|start| start..start + dest_url.len()),
                        _ => None,
                    };
                    page.links.push(Link {
                        target: dest_url.to_string(),
                        position,
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
                Event::InlineHtml(tag) => page.tags.push(tag.to_string()),
                _ => {}
            }
        }
        page
    }

    /// The text with the targets of inline links replaced where `replacement` returns one.
    pub fn rewrite(&self, text: &str, replacement: impl Fn(&str) -> Option<String>) -> String {
        let mut replaced = text.to_owned();
        let mut inline: Vec<(&Range<usize>, &Link)> = Vec::new();
        for link in &self.links {
            inline.extend(link.position.as_ref().map(|range| (range, link)));
        }
        // The last one first: a replacement moves what follows it.
        inline.sort_by_key(|(range, _)| Reverse(range.start));
        for (range, link) in inline {
            if let Some(target) = replacement(&link.target) {
                replaced.replace_range(range.clone(), &target);
            }
        }
        replaced
    }

    /// Targets of links that [`Self::rewrite`] cannot replace.
    pub fn fixed_targets(&self) -> impl Iterator<Item = &str> {
        let fixed = self.links.iter().filter(|link| link.position.is_none());
        fixed.map(|link| &*link.target)
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
    fn tags_outside_of_code_are_html() {
        let page = Page::parse(
            "<!-- comment -->\n\nlib<name>.so, `lib<name>.so`, a < b, <https://x.org>\n",
        );
        assert_eq!(page.tags, ["<name>"]);
    }

    #[test]
    fn links_in_code_are_none_and_others_are_rewritten() {
        let text = "[a](x) `[b](x)` ![c](y#z) [![d](y)](x)\n\n| [e](x \"title\") |\n|---|\n\n    [f](x)\n\n[g]\n\n[g]: x\n";
        let page = Page::parse(text);
        let targets: Vec<_> = page.links.iter().map(|link| &*link.target).collect();
        assert_eq!(targets, ["x", "y#z", "x", "y", "x", "x"]);
        assert_eq!(page.fixed_targets().collect::<Vec<_>>(), ["x"]);
        let rewritten = page.rewrite(text, |target| {
            (target == "x").then(|| "https://x/".to_owned())
        });
        let expected = "[a](https://x/) `[b](x)` ![c](y#z) [![d](y)](https://x/)\n\n| [e](https://x/ \"title\") |\n|---|\n\n    [f](x)\n\n[g]\n\n[g]: x\n";
        assert_eq!(rewritten, expected);
    }
}
