//! Parses a symbol list.

use std::ops::Range;

use super::{Kind, Symbol, SymbolList, is_name, is_plain};
use crate::diag::{
    self, DUPLICATE_SYMBOL, Diagnostic, MALFORMED_SYMBOL_LIST, UNSUPPORTED_FORMAT, line_column,
};
use crate::returns::Returns;
use crate::suggest::nearest;
use crate::version::Version;

/// Maximum number of errors reported: a file of another kind has errors in every line.
const MAX_ERRORS: usize = 20;

const FORMAT: &str = "@gpustub-symbols";
const DIRECTIVES: [&str; 3] = ["@soname", "@machine", "@releases"];
const ATTRIBUTES: [&str; 7] = [
    "kind=",
    "weak",
    "version=",
    "compat",
    "size=",
    "returns=",
    "releases=",
];

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
    places: Vec<Range<usize>>,
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
        places: Vec::new(),
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
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let start = at + (rest.len() - rest.trim_start().len());
        let word = text[start..]
            .split(char::is_whitespace)
            .next()
            .filter(|w| !w.is_empty())?;
        at = start + word.len();
        Some(Word {
            text: word,
            span: span.start + start..span.start + at,
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
        let first = words.next().map_or("", |word| word.text);
        let version = words.next().map_or("", |word| word.text);
        if first == FORMAT && version == "1" && words.next().is_none() {
            return true;
        }
        let number = version.parse::<u32>().ok().filter(|&n| n > 1);
        let error = if let (FORMAT, Some(number)) = (first, number) {
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
        } else if !self.places.is_empty() {
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
                        .is_some_and(|&last| last >= version) =>
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
        let mut seen = [false; ATTRIBUTES.len()];
        let mut size = None;
        for word in words {
            let (key, value) = match word.text.find('=') {
                Some(at) => word.text.split_at(at + 1),
                None => (word.text, ""),
            };
            let Some(index) = ATTRIBUTES.iter().position(|a| *a == key) else {
                let meant = nearest(key, ATTRIBUTES).map(|meant| meant.trim_end_matches('='));
                let error = self.error(word.span, format!("unknown attribute `{}`", word.text));
                error.help = Some(match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "attributes are kind=, weak, version=, compat, size=, returns= and releases="
                        .to_owned(),
                });
                return;
            };
            if std::mem::replace(&mut seen[index], true) {
                self.error(
                    word.span,
                    format!("a second `{}`", key.trim_end_matches('=')),
                );
                return;
            }
            let fine = match key {
                "weak" => {
                    symbol.weak = true;
                    true
                }
                "compat" => {
                    symbol.compat = true;
                    true
                }
                "kind=" => {
                    let kind = Kind::NAMES.iter().find(|(name, _)| *name == value);
                    symbol.kind = kind.map_or(Kind::Function, |(_, kind)| *kind);
                    kind.is_some()
                }
                "version=" => {
                    symbol.version = Some(value.to_owned());
                    is_name(value)
                }
                "size=" => {
                    size = value
                        .parse()
                        .ok()
                        .filter(|_| value.bytes().all(|b| b.is_ascii_digit()));
                    symbol.size = size.unwrap_or(0);
                    size.is_some()
                }
                "returns=" => {
                    symbol.returns = Returns::parse(value);
                    symbol.returns.is_some()
                }
                _ => match self.ranges(value) {
                    Some(ranges) => {
                        symbol.releases = ranges;
                        true
                    }
                    None => false,
                },
            };
            if !fine {
                let takes = match key {
                    "kind=" => "one of ifunc, notype, object, tls (a function has no kind=)",
                    "version=" => "a symbol version such as OPENCL_1.2",
                    "size=" => "a number of bytes",
                    "returns=" => {
                        "one of status, null, string, void, value:N, zeroed-struct:SIZE and \
                         zeroed-hfa:SIZE; a SIZE is 17 to 65536 bytes, smaller structs are null"
                    }
                    _ => {
                        "ascending releases and ranges such as 11.8,12.0-12.9,13.0- whose ends are \
                         in @releases"
                    }
                };
                self.error(word.span, format!("`{key}` takes {takes}"));
                return;
            }
        }
        if size.is_some() && !symbol.kind.is_data() {
            self.error(
                name.span,
                format!("`{}` is a function and has `size=`", name.text),
            );
        } else if symbol.returns.is_some() && symbol.kind.is_data() {
            self.error(
                name.span,
                format!("`{}` is data and has `returns=`", name.text),
            );
        } else {
            self.push(symbol, name.span);
        }
    }

    /// Ascending ranges without overlaps, whose ends are in `@releases`.
    fn ranges(&self, value: &str) -> Option<Vec<(Version, Version)>> {
        let known = |text: &str| {
            Version::parse(text).filter(|version| self.list.releases.binary_search(version).is_ok())
        };
        let mut ranges: Vec<(Version, Version)> = Vec::new();
        for part in value.split(',') {
            let (from, to) = match part.split_once('-') {
                None => (known(part)?, known(part)?),
                Some((from, "")) => (known(from)?, *self.list.releases.last()?),
                Some((from, to)) => (known(from)?, known(to)?),
            };
            if from > to || ranges.last().is_some_and(|(_, end)| *end >= from) {
                return None;
            }
            ranges.push((from, to));
        }
        Some(ranges)
    }

    /// Adds a symbol that has been read whole.
    fn push(&mut self, symbol: Symbol, place: Range<usize>) {
        if let Some(last) = self.list.symbols.last() {
            self.ascending &= id(last) < id(&symbol);
        }
        self.list.symbols.push(symbol);
        self.places.push(place);
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
        order.sort_by(|&a, &b| id(&unsorted[a]).cmp(&id(&unsorted[b])));
        let mut last = 0;
        let mut repeated = 0;
        for index in order {
            let symbol = std::mem::take(&mut unsorted[index]);
            match self.list.symbols.last() {
                Some(first) if id(first) == id(&symbol) => repeated += 1,
                _ => {
                    self.list.symbols.push(symbol);
                    last = index;
                    continue;
                }
            }
            if repeated > MAX_ERRORS {
                continue;
            }
            let version = symbol
                .version
                .map_or(String::new(), |version| format!("@{version}"));
            let message = format!("`{}{version}` is listed a second time", symbol.name);
            let first = line_column(self.text, self.places[last].start).line;
            let error = Diagnostic::error(&DUPLICATE_SYMBOL, message)
                .with_origin(self.file, self.places[index].clone())
                .help(format!("remove this line or line {first}"));
            diag::insert(&mut self.diagnostics, error);
            last = index;
        }
    }
}

/// Sort key of a symbol, unique in a list.
fn id(symbol: &Symbol) -> (&str, Option<&str>) {
    (&symbol.name, symbol.version.as_deref())
}
