//! Parses a symbol list.

use std::ops::Range;

use super::{Symbol, SymbolKind, SymbolList, is_name, is_plain};
use crate::diag::{
    self, DUPLICATE_SYMBOL, Diagnostic, MALFORMED_SYMBOL_LIST, UNSUPPORTED_FORMAT, line_column,
};
use crate::fields::SYSTEMS;
use crate::library::parse::MAX_HOOK_ARGS;
use crate::returns::Returns;
use crate::suggest::nearest;
use crate::version::Version;

/// Maximum number of errors reported: a file of another kind has errors in every line.
const MAX_ERRORS: usize = 20;

const FORMAT: &str = "@gpustub-symbols";
const DIRECTIVES: [&str; 3] = ["@soname", "@machine", "@releases"];
const ATTRIBUTES: [&str; 11] = [
    "kind=",
    "weak",
    "version=",
    "compat",
    "size=",
    "copied",
    "updates",
    "callback=",
    "system=",
    "returns=",
    "releases=",
];

/// Maximum size of data that stubs copy: their zeros are in each image.
const MAX_COPIED_SIZE: u64 = 65536;

/// A word of the text and its location.
#[derive(Clone)]
struct Word<'t> {
    text: &'t str,
    span: Range<usize>,
}

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    list: SymbolList,
    /// Locations of the symbols' names, in the order of the file.
    name_spans: Vec<Range<usize>>,
    /// Whether the symbols are sorted and unique.
    ascending: bool,
    diagnostics: Vec<Diagnostic>,
}

impl SymbolList {
    /// Reads a list. `file` names it in diagnostics. Errors: a missing or newer format line, an
    /// unknown attribute, a duplicate, a name with characters that no symbol has.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        list(file, text)
    }
}

fn list(file: &str, text: &str) -> (SymbolList, Vec<Diagnostic>) {
    let mut reader = Reader {
        file,
        text,
        list: SymbolList::default(),
        name_spans: Vec::new(),
        ascending: true,
        diagnostics: Vec::new(),
    };
    let mut lines = lines(text);
    if reader.format(lines.next().unwrap_or(Word {
        text: "",
        span: 0..0,
    })) {
        for line in lines {
            match line.text.bytes().next() {
                None | Some(b'#') => {}
                Some(b'@') => reader.directive(&line),
                Some(_) => reader.symbol(&line),
            }
            if reader.diagnostics.len() >= MAX_ERRORS {
                break;
            }
        }
    }
    reader.finish()
}

/// Lines, without white space around them, and without the byte-order mark that some editors put
/// before the first.
fn lines(text: &str) -> impl Iterator<Item = Word<'_>> {
    let after_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut offset = text.len() - after_mark.len();
    after_mark.split_inclusive('\n').map(move |line| {
        let start = offset + (line.len() - line.trim_start().len());
        offset += line.len();
        let text = line.trim();
        Word {
            text,
            span: start..start + text.len(),
        }
    })
}

/// The words of a line.
fn words<'t>(line: &Word<'t>) -> impl Iterator<Item = Word<'t>> + use<'t> {
    let Word { text, span } = line.clone();
    let mut end = 0;
    std::iter::from_fn(move || {
        let rest = &text[end..];
        let start = end + (rest.len() - rest.trim_start().len());
        let word = text[start..]
            .split(char::is_whitespace)
            .next()
            .filter(|word| !word.is_empty())?;
        end = start + word.len();
        Some(Word {
            text: word,
            span: span.start + start..span.start + end,
        })
    })
}

impl<'t> Reader<'t> {
    fn error(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let error = Diagnostic::error(&MALFORMED_SYMBOL_LIST, message).with_origin(self.file, span);
        diag::insert(&mut self.diagnostics, error)
    }

    /// Reads the first line; returns whether to continue.
    fn format(&mut self, line: Word<'t>) -> bool {
        let mut words = words(&line);
        let format = words.next().map_or("", |word| word.text);
        let version = words.next().map_or("", |word| word.text);
        if format == FORMAT && version == "1" && words.next().is_none() {
            return true;
        }
        let number = version.parse::<u32>().ok().filter(|&number| number > 1);
        let error = if let (FORMAT, Some(number)) = (format, number) {
            Diagnostic::error(
                &UNSUPPORTED_FORMAT,
                format!("unsupported symbol list format {number}: this gpustub reads format 1"),
            )
            .help("use a newer gpustub, or write the list again with this one")
        } else {
            Diagnostic::error(
                &MALFORMED_SYMBOL_LIST,
                format!("the first line is not `{FORMAT} 1`"),
            )
            .help(
                "`cargo gpustub add ID --from path/to/library.so` writes a list; a hand-written one \
                 is that line, followed by one function name per line",
            )
        };
        self.diagnostics
            .push(error.with_origin(self.file, line.span));
        false
    }

    fn directive(&mut self, line: &Word<'t>) {
        let mut words = words(line);
        let Some(name) = words.next() else { return };
        let value = line.text[name.text.len()..].trim();
        let repeated = match name.text {
            "@soname" => self.list.soname.is_some(),
            "@machine" => self.list.machine.is_some(),
            "@releases" => !self.list.releases.is_empty(),
            _ => {
                let meant = nearest(name.text, DIRECTIVES);
                let error = self.error(name.span, format!("unknown line `{}`", name.text));
                error.help = meant.map(|meant| format!("did you mean `{meant}`?"));
                return;
            }
        };
        if repeated {
            self.error(name.span, format!("a second `{}`", name.text));
        } else if value.is_empty() || value.contains(char::is_control) {
            self.error(
                line.span.clone(),
                format!("`{}` without a usable value", name.text),
            );
        } else if !self.name_spans.is_empty() {
            self.error(
                line.span.clone(),
                format!("`{}` after the first symbol", name.text),
            );
        } else {
            match name.text {
                "@soname" => self.list.soname = Some(value.to_owned()),
                "@machine" => self.list.machine = Some(value.to_owned()),
                _ => self.releases(words),
            }
        }
    }

    fn releases(&mut self, words: impl Iterator<Item = Word<'t>>) {
        for word in words {
            match Version::parse(word.text) {
                None => drop(self.error(word.span, format!("invalid release `{}`", word.text))),
                Some(version)
                    if self
                        .list
                        .releases
                        .last()
                        .is_some_and(|&previous| previous >= version) =>
                {
                    self.error(word.span, "the releases are not ascending");
                }
                Some(version) => self.list.releases.push(version),
            }
        }
    }

    fn symbol(&mut self, line: &Word<'t>) {
        // Most lines are just a plain name.
        if is_plain(line.text) {
            let symbol = Symbol {
                name: line.text.to_owned(),
                ..Symbol::default()
            };
            return self.push(symbol, line.span.clone());
        }
        let mut words = words(line);
        let Some(name) = words.next() else { return };
        if !is_name(name.text) {
            self.error(
                name.span,
                format!("invalid symbol name `{}`", name.text.escape_debug()),
            );
            return;
        }
        let mut symbol = Symbol {
            name: name.text.to_owned(),
            ..Symbol::default()
        };
        let mut present = [false; ATTRIBUTES.len()];
        let mut has_size = false;
        for word in words {
            let (key, value) = match word.text.find('=') {
                Some(index) => word.text.split_at(index + 1),
                None => (word.text, ""),
            };
            let Some(index) = ATTRIBUTES.iter().position(|attribute| *attribute == key) else {
                return self.unknown_attribute(word, key);
            };
            if std::mem::replace(&mut present[index], true) {
                self.error(
                    word.span,
                    format!("a second `{}`", key.trim_end_matches('=')),
                );
                return;
            }
            if self.set_attribute(&mut symbol, key, value).is_none() {
                self.error(word.span, format!("`{key}` takes {}", values_of(key)));
                return;
            }
            has_size |= key == "size=";
        }
        if has_size && !symbol.kind.is_data() {
            self.error(
                name.span,
                format!("`{}` is a function and has `size=`", name.text),
            );
        } else if symbol.returns.is_some() && symbol.kind.is_data() {
            self.error(
                name.span,
                format!("`{}` is data and has `returns=`", name.text),
            );
        } else if symbol.updates && symbol.kind.is_data() {
            self.error(
                name.span,
                format!("`{}` is data and has `updates`", name.text),
            );
        } else if symbol.callback.is_some() && !symbol.updates {
            self.error(
                name.span,
                format!("`{}` has `callback=` without `updates`", name.text),
            );
        } else if let Some(problem) = copy_problem(&symbol) {
            self.error(name.span, format!("`{}` {problem}", name.text));
        } else {
            self.push(symbol, name.span);
        }
    }

    fn unknown_attribute(&mut self, word: Word<'t>, key: &str) {
        let meant = nearest(key, ATTRIBUTES).map(|meant| meant.trim_end_matches('='));
        let error = self.error(word.span, format!("unknown attribute `{}`", word.text));
        error.help = Some(match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                "attributes are kind=, weak, version=, compat, size=, copied, updates, callback=, system=, \
                     returns= and releases="
                    .to_owned()
            }
        });
    }

    /// Sets the attribute of a key among [`ATTRIBUTES`]. `None`: it does not take this value.
    fn set_attribute(&self, symbol: &mut Symbol, key: &str, value: &str) -> Option<()> {
        match key {
            "weak" => symbol.weak = true,
            "compat" => symbol.compat = true,
            "copied" => symbol.copied = true,
            "updates" => symbol.updates = true,
            "callback=" => symbol.callback = Some(index(value)?),
            "kind=" => symbol.kind = SymbolKind::NAMES.iter().find(|(name, _)| *name == value)?.1,
            "version=" if is_name(value) => symbol.version = Some(value.to_owned()),
            "size=" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                symbol.size = value.parse().ok()?;
            }
            "system=" => symbol.system = Some(SYSTEMS.iter().find(|system| **system == value)?),
            "returns=" => symbol.returns = Some(Returns::parse(value)?),
            "releases=" => symbol.releases = self.ranges(value)?,
            _ => return None,
        }
        Some(())
    }

    /// Ascending ranges without overlaps, whose ends are in `@releases`.
    fn ranges(&self, value: &str) -> Option<Vec<(Version, Version)>> {
        let mut ranges: Vec<(Version, Version)> = Vec::new();
        for range in value.split(',') {
            let (from, to) = match range.split_once('-') {
                None => (self.release(range)?, self.release(range)?),
                Some((from, "")) => (self.release(from)?, *self.list.releases.last()?),
                Some((from, to)) => (self.release(from)?, self.release(to)?),
            };
            if from > to || ranges.last().is_some_and(|(_, end)| *end >= from) {
                return None;
            }
            ranges.push((from, to));
        }
        Some(ranges)
    }

    /// A release of `@releases`.
    fn release(&self, text: &str) -> Option<Version> {
        Version::parse(text).filter(|version| self.list.releases.binary_search(version).is_ok())
    }

    /// Adds a symbol whose line has been read to the end.
    fn push(&mut self, symbol: Symbol, name_span: Range<usize>) {
        if let Some(previous) = self.list.symbols.last() {
            self.ascending &= previous.sort_key() < symbol.sort_key();
        }
        self.list.symbols.push(symbol);
        self.name_spans.push(name_span);
    }

    fn finish(mut self) -> (SymbolList, Vec<Diagnostic>) {
        if !self.ascending {
            self.sort();
        }
        (self.list, self.diagnostics)
    }

    fn sort(&mut self) {
        let mut unsorted = std::mem::take(&mut self.list.symbols);
        let mut order: Vec<usize> = (0..unsorted.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            let (a_key, b_key) = (unsorted[a].sort_key(), unsorted[b].sort_key());
            a_key.cmp(&b_key).then(a.cmp(&b))
        });
        let mut previous_index = 0;
        let mut repetitions = 0;
        for index in order {
            let symbol = std::mem::take(&mut unsorted[index]);
            let previous = self.list.symbols.last();
            if previous.is_none_or(|previous| previous.sort_key() != symbol.sort_key()) {
                self.list.symbols.push(symbol);
                previous_index = index;
                continue;
            }
            repetitions += 1;
            if repetitions > MAX_ERRORS {
                continue;
            }
            let version = symbol
                .version
                .map_or(String::new(), |version| format!("@{version}"));
            let message = format!("`{}{version}` is listed a second time", symbol.name);
            let previous_line = line_column(self.text, self.name_spans[previous_index].start).line;
            let error = Diagnostic::error(&DUPLICATE_SYMBOL, message)
                .with_origin(self.file, self.name_spans[index].clone())
                .help(format!("remove this line or line {previous_line}"));
            diag::insert(&mut self.diagnostics, error);
            previous_index = index;
        }
    }
}

/// Index of an argument.
fn index(value: &str) -> Option<u8> {
    let index = value.parse().ok()?;
    (i64::from(index) < MAX_HOOK_ARGS).then_some(index)
}

/// Reason why a stub cannot be a copy of the data, as the list requests.
fn copy_problem(symbol: &Symbol) -> Option<String> {
    const CXX_TYPES: [&str; 4] = ["_ZTI", "_ZTS", "_ZTT", "_ZTV"];
    if !symbol.copied {
        None
    } else if symbol.kind != SymbolKind::Object {
        Some("is `copied`, but only data of `kind=object` has copies".to_owned())
    } else if CXX_TYPES
        .iter()
        .any(|prefix| symbol.name.starts_with(prefix))
    {
        // Itanium C++ ABI 2.9.1: two types are equal if their names have one address.
        Some(
            "describes a C++ type, whose address must be that in the library: no copy serves"
                .to_owned(),
        )
    } else if !(1..=MAX_COPIED_SIZE).contains(&symbol.size) {
        Some(format!(
            "is `copied` without a `size=` of 1 to {MAX_COPIED_SIZE} bytes"
        ))
    } else {
        None
    }
}

/// Values that the attribute of a key takes, for messages.
fn values_of(key: &str) -> &'static str {
    match key {
        "kind=" => "one of ifunc, notype, object, tls (a function has no kind=)",
        "version=" => "a symbol version such as OPENCL_1.2",
        "size=" => "a number of bytes",
        "callback=" => "the index of an argument, from 0 to 11",
        "system=" => "one of linux, freebsd, windows, macos, android",
        "returns=" => Returns::CLASSES,
        _ => {
            "ascending releases and ranges such as 11.8,12.0-12.9,13.0- whose ends are in @releases"
        }
    }
}
