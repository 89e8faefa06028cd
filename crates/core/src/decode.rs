//! Decodes TOML into values and records the location of every error: shared by `GpuStub.toml` and
//! the shipped library manifests.

mod document;
mod shared;

pub(crate) use shared::{MAX_ARGUMENT, MAX_SIZE};

use std::ops::{Range, RangeInclusive};

use crate::diag::{
    self, Code, Diagnostic, INVALID_SCHEMA, INVALID_TOML, INVALID_VALUE, MISSING_KEY, UNKNOWN_KEY,
    UNSUPPORTED_FORMAT,
};
use crate::spanned::Spanned;
use crate::suggest::nearest;
use crate::text::join;
use document::{Data, Entries, Key, Node};

/// The `schema` that this version reads.
const SCHEMA_VERSION: i64 = 1;

/// A value, the full name of its key and its location.
pub(crate) struct Value<'a> {
    /// For messages: `stub.cudart.majors`.
    pub name: String,
    pub span: Range<usize>,
    /// Span of its key; in a list, of the value itself.
    pub key_span: Range<usize>,
    inner: &'a Data<'a>,
}

impl Value<'_> {
    pub fn is_string(&self) -> bool {
        matches!(self.inner, Data::String(_))
    }

    pub fn is_integer(&self) -> bool {
        matches!(self.inner, Data::Integer { .. })
    }

    pub fn is_table(&self) -> bool {
        matches!(self.inner, Data::Table(_))
    }

    #[cfg(feature = "archive")]
    pub fn is_boolean(&self) -> bool {
        matches!(self.inner, Data::Boolean(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.inner, Data::List(_) | Data::Tables(_))
    }
}

/// A table and the full name of its key.
pub(crate) struct Table<'a> {
    /// For messages; empty for the file itself.
    pub name: String,
    inner: &'a Entries<'a>,
}

impl<'a> Table<'a> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        let (key, value) = self.inner.get(key)?;
        Some(self.value(key, value))
    }

    /// All keys and values, sorted by key.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.inner
            .iter()
            .map(|(key, value)| (key.text.as_ref(), self.value(key, value)))
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (key, _) in self.inner.iter() {
            keys.push(key.text.to_string());
        }
        keys
    }

    fn value(&self, key: &Key<'_>, value: &'a Node<'a>) -> Value<'a> {
        let mut name = self.name.clone();
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&key.text);
        Value {
            name,
            span: value.span.clone(),
            key_span: key.span.clone(),
            inner: &value.data,
        }
    }
}

/// A TOML document. Owns the data that [`Table`]s borrow.
pub(crate) struct Document<'t>(Entries<'t>);

impl Document<'_> {
    pub fn top(&self) -> Table<'_> {
        Table {
            name: String::new(),
            inner: &self.0,
        }
    }
}

/// Collects diagnostics while values are read from a document.
pub(crate) struct Decoder<'f> {
    file: &'f str,
    diagnostics: Vec<Diagnostic>,
}

impl<'f> Decoder<'f> {
    pub fn new(file: &'f str) -> Self {
        Self {
            file,
            diagnostics: Vec::new(),
        }
    }

    /// Number of diagnostics so far.
    pub fn count(&self) -> usize {
        self.diagnostics.len()
    }

    /// Number of errors among them.
    #[cfg(feature = "archive")]
    pub fn errors(&self) -> usize {
        let errors = self.diagnostics.iter();
        errors.filter(|one| one.level == diag::Level::Error).count()
    }

    /// Adds a diagnostic that is no error.
    #[cfg(feature = "archive")]
    pub fn report(&mut self, diagnostic: Diagnostic, span: Range<usize>) {
        diag::insert(
            &mut self.diagnostics,
            diagnostic.with_origin(self.file, span),
        );
    }

    /// Diagnostics in the order of the file.
    pub fn finish(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// Adds an error; the caller may complete it.
    pub fn error(
        &mut self,
        code: &'static Code,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let error = Diagnostic::error(code, message).with_origin(self.file, span);
        diag::insert(&mut self.diagnostics, error)
    }

    /// Adds an error with the next step.
    pub fn error_with_help(
        &mut self,
        code: &'static Code,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.error(code, span, message).help = Some(help.into());
    }

    /// Parses the text. `None` after a syntax error.
    pub fn document<'t>(&mut self, text: &'t str) -> Option<Document<'t>> {
        match document::parse(text) {
            Ok(entries) => Some(Document(entries)),
            Err(error) => {
                self.error(&INVALID_TOML, error.span, error.message);
                None
            }
        }
    }

    /// Checks that the file starts with a schema that this version reads. `false`: the schema is
    /// newer, so the rest of the file cannot be validated.
    pub fn schema(&mut self, top: &Table<'_>) -> bool {
        let Some(schema) = top.get("schema") else {
            let help = format!("start the file with `schema = {SCHEMA_VERSION}`");
            self.error_with_help(&INVALID_SCHEMA, 0..0, "the file has no `schema`", help);
            return true;
        };
        let Some(number) = self.integer(&schema, i64::MIN..=i64::MAX) else {
            return true;
        };
        if number > SCHEMA_VERSION {
            self.error_with_help(
                &UNSUPPORTED_FORMAT,
                schema.span,
                format!("unsupported schema {number}: this gpustub reads schema 1"),
                "use a newer gpustub (in a build script: `cargo update -p gpustub-build`)",
            );
            return false;
        }
        if number != SCHEMA_VERSION {
            let message = format!("unknown schema {number}");
            self.error_with_help(&INVALID_SCHEMA, schema.span, message, "write `schema = 1`");
        } else if top
            .inner
            .iter()
            .any(|(key, _)| key.span.start < schema.key_span.start)
        {
            let message = "`schema` is not the first key";
            self.error_with_help(
                &INVALID_SCHEMA,
                schema.key_span,
                message,
                "move it to the first line",
            );
        }
        true
    }

    /// Reports every key of `table` that is not among `known`.
    pub fn check_keys(&mut self, table: &Table<'_>, known: &[&str]) {
        for (key, value) in table.entries().filter(|(key, _)| !known.contains(key)) {
            let place = match table.name.as_str() {
                "" => String::from("at the top of the file"),
                name => format!("in `{name}`"),
            };
            let help = match nearest(key, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known keys are {}", join(known, ", ")),
            };
            let message = format!("unknown key `{}` {place}", key.escape_debug());
            self.error_with_help(&UNKNOWN_KEY, value.key_span, message, help);
        }
    }

    /// Value of a mandatory key. `span` is the location of the error if it is missing.
    pub fn required<'a>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        span: &Range<usize>,
    ) -> Option<Value<'a>> {
        let value = table.get(key);
        if value.is_none() {
            let place = if table.name.is_empty() {
                "the file"
            } else {
                &table.name
            };
            self.error(
                &MISSING_KEY,
                span.clone(),
                format!("`{place}` has no `{key}`"),
            );
        }
        value
    }

    /// Reports a value whose type is not the one that its key takes.
    pub fn mismatch(&mut self, value: &Value<'_>, takes: &str) {
        let found = match value.inner {
            Data::String(_) => "a string",
            Data::Integer { .. } => "a whole number",
            Data::Float(_) => "a number",
            Data::Boolean(_) => "true or false",
            Data::Date => "a date",
            Data::List(_) | Data::Tables(_) => "a list",
            Data::Table(_) => "a table",
        };
        let message = format!("`{}` takes {takes}, not {found}", value.name);
        let help = match value.inner {
            Data::Integer { digits, radix } if takes.contains("string") => {
                let prefix = match radix {
                    2 => "0b",
                    8 => "0o",
                    16 => "0x",
                    _ => "",
                };
                Some(format!("put it in quotes: \"{prefix}{digits}\""))
            }
            Data::Float(number) if takes.contains("string") => {
                Some(format!("put it in quotes: \"{number}\""))
            }
            Data::String(text) if takes == "a list of strings" => Some(format!("write [{text:?}]")),
            _ => None,
        };
        self.error(&INVALID_VALUE, value.span.clone(), message).help = help;
    }

    pub fn table<'a>(&mut self, value: &Value<'a>, known: &[&str]) -> Option<Table<'a>> {
        let table = self.map(value)?;
        self.check_keys(&table, known);
        Some(table)
    }

    /// A table whose keys are names.
    pub fn map<'a>(&mut self, value: &Value<'a>) -> Option<Table<'a>> {
        let Data::Table(inner) = value.inner else {
            self.mismatch(value, "a table");
            return None;
        };
        Some(Table {
            name: value.name.clone(),
            inner,
        })
    }

    /// Elements of a list. `takes` describes the list: `a list of strings`.
    pub fn list<'a>(&mut self, value: &Value<'a>, takes: &str) -> Vec<Value<'a>> {
        let (Data::List(list) | Data::Tables(list)) = value.inner else {
            self.mismatch(value, takes);
            return Vec::new();
        };
        let mut elements = Vec::new();
        for element in list {
            elements.push(Value {
                name: value.name.clone(),
                span: element.span.clone(),
                key_span: element.span.clone(),
                inner: &element.data,
            });
        }
        elements
    }

    pub fn string(&mut self, value: &Value<'_>) -> Option<Spanned<String>> {
        self.string_as(value, "a string")
    }

    fn string_as(&mut self, value: &Value<'_>, takes: &str) -> Option<Spanned<String>> {
        let Data::String(text) = value.inner else {
            self.mismatch(value, takes);
            return None;
        };
        Some(Spanned {
            value: text.clone().into_owned(),
            span: value.span.clone(),
        })
    }

    pub fn strings(&mut self, value: &Value<'_>) -> Vec<Spanned<String>> {
        let mut strings = Vec::new();
        for element in self.list(value, "a list of strings") {
            if let Some(string) = self.string_as(&element, "a list of strings") {
                strings.push(string);
            }
        }
        strings
    }

    pub fn boolean(&mut self, value: &Value<'_>) -> Option<bool> {
        let Data::Boolean(truth) = value.inner else {
            self.mismatch(value, "true or false");
            return None;
        };
        Some(*truth)
    }

    pub fn integer(&mut self, value: &Value<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let Data::Integer { digits, radix } = value.inner else {
            self.mismatch(value, "a whole number");
            return None;
        };
        let number = i64::from_str_radix(digits, *radix).ok();
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (from, to) = (range.start(), range.end());
            let message = format!("`{}` takes a whole number from {from} to {to}", value.name);
            self.error(&INVALID_VALUE, value.span.clone(), message);
        }
        number
    }

    /// A string that is one of these names.
    pub fn one_of<T: Copy>(&mut self, value: &Value<'_>, names: &[(&str, T)]) -> Option<T> {
        let index = self.index_of(value, names.len(), &|index| names[index].0)?;
        Some(names[index].1)
    }

    /// Index of the string among some names. Compiled once, for names of any type.
    fn index_of<'n>(
        &mut self,
        value: &Value<'_>,
        len: usize,
        name_at: &dyn Fn(usize) -> &'n str,
    ) -> Option<usize> {
        let text = self.string(value)?;
        let mut known = Vec::new();
        for index in 0..len {
            if name_at(index) == text.value {
                return Some(index);
            }
            known.push(name_at(index));
        }
        let help = match nearest(&text.value, known.iter().copied()) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("known are \"{}\"", join(&known, "\", \"")),
        };
        let message = format!("`{}` does not take {:?}", value.name, text.value);
        self.error_with_help(&INVALID_VALUE, text.span, message, help);
        None
    }
}
