//! Reading TOML into values, with the place of everything that is wrong: the one layer under
//! `GpuStub.toml` and the shipped library manifests.

mod shared;

use std::ops::{Range, RangeInclusive};

use toml::de::{DeTable, DeValue};

use crate::diag::{
    self, BAD_VALUE, Code, Diagnostic, MISSING_KEY, NEWER_FORMAT, SCHEMA, TOML_SYNTAX, UNKNOWN_KEY,
};
use crate::manifest::Spanned;
use crate::suggest::nearest;

/// The `schema` that this version reads.
const SCHEMA_VERSION: i64 = 1;

/// A value, the full name of its key and its place.
#[derive(Debug, Clone)]
pub(crate) struct Value<'a> {
    /// For messages: `stub.cudart.majors`.
    pub name: String,
    pub span: Range<usize>,
    /// Where its key stands; in a list, where the value itself does.
    pub key_span: Range<usize>,
    inner: &'a DeValue<'a>,
}

impl Value<'_> {
    pub fn is_string(&self) -> bool {
        matches!(self.inner, DeValue::String(_))
    }

    pub fn is_integer(&self) -> bool {
        matches!(self.inner, DeValue::Integer(_))
    }

    pub fn is_table(&self) -> bool {
        matches!(self.inner, DeValue::Table(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.inner, DeValue::Array(_))
    }
}

/// A table and the full name of its key.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    /// For messages; empty for the file itself.
    pub name: String,
    inner: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        let (key, value) = self.inner.get_key_value(key)?;
        Some(self.value(key, value))
    }

    /// All keys and values, sorted by key.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.inner
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), self.value(key, value)))
    }

    fn value(
        &self,
        key: &toml::Spanned<toml::de::DeString<'a>>,
        value: &'a toml::Spanned<DeValue<'a>>,
    ) -> Value<'a> {
        let mut name = self.name.clone();
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(key.get_ref());
        Value {
            name,
            span: value.span(),
            key_span: key.span(),
            inner: value.get_ref(),
        }
    }
}

/// A TOML document. Owns what [`Table`]s point into.
pub(crate) struct Document<'t>(toml::Spanned<DeTable<'t>>);

impl Document<'_> {
    pub fn top(&self) -> Table<'_> {
        Table {
            name: String::new(),
            inner: self.0.get_ref(),
        }
    }
}

/// Collects what is wrong while values are read out of a document.
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

    /// How much was wrong so far.
    pub fn count(&self) -> usize {
        self.diagnostics.len()
    }

    /// What was wrong, in the order of the file.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        diag::sort(&mut self.diagnostics);
        self.diagnostics
    }

    /// Adds an error; the caller may complete it.
    pub fn error(
        &mut self,
        code: &'static Code,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.diagnostics
            .push(Diagnostic::error(code, message).at(self.file, span));
        self.diagnostics.last_mut().expect("just pushed")
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
        match DeTable::parse(text) {
            Ok(table) => Some(Document(table)),
            Err(error) => {
                let span = error.span().unwrap_or(text.len()..text.len());
                let message = error.message().trim_end_matches('.').replace('\n', ", ");
                self.error(&TOML_SYNTAX, span, message);
                None
            }
        }
    }

    /// Checks that the file starts with a schema that this version reads. `false`: it is newer,
    /// and what else it says cannot be judged.
    pub fn schema(&mut self, top: &Table<'_>) -> bool {
        let Some(schema) = top.get("schema") else {
            let help = format!("let the file start with `schema = {SCHEMA_VERSION}`");
            self.error_with_help(&SCHEMA, 0..0, "the file does not say its schema", help);
            return true;
        };
        let Some(number) = self.integer(&schema, i64::MIN..=i64::MAX) else {
            return true;
        };
        if number > SCHEMA_VERSION {
            self.error_with_help(
                &NEWER_FORMAT,
                schema.span,
                format!(
                    "this file was written for a newer gpustub: schema {number}, this one reads 1"
                ),
                "use a newer gpustub (in a build script: `cargo update -p gpustub-build`)",
            );
            return false;
        }
        if number != SCHEMA_VERSION {
            let message = format!("there is no schema {number}");
            self.error_with_help(&SCHEMA, schema.span, message, "write `schema = 1`");
        } else if top
            .inner
            .keys()
            .any(|key| key.span().start < schema.key_span.start)
        {
            let message = "`schema` is not the first key";
            self.error_with_help(
                &SCHEMA,
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
                None => format!("known keys are {}", known.join(", ")),
            };
            let message = format!("unknown key `{}` {place}", key.escape_debug());
            self.error_with_help(&UNKNOWN_KEY, value.key_span, message, help);
        }
    }

    /// The value of a key that must be there. `span` is where it is missed.
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

    /// The value is not what its key takes.
    pub fn mismatch(&mut self, value: &Value<'_>, takes: &str) {
        let found = match value.inner {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{}` takes {takes}, not {found}", value.name);
        let help = match value.inner {
            DeValue::Integer(number) if takes.contains("string") => {
                Some(format!("put it in quotes: \"{number}\""))
            }
            DeValue::Float(number) if takes.contains("string") => {
                Some(format!("put it in quotes: \"{number}\""))
            }
            DeValue::String(text) if takes == "a list of strings" => {
                Some(format!("write [{text:?}]"))
            }
            _ => None,
        };
        self.error(&BAD_VALUE, value.span.clone(), message).help = help;
    }

    pub fn table<'a>(&mut self, value: &Value<'a>, known: &[&str]) -> Option<Table<'a>> {
        let table = self.map(value)?;
        self.check_keys(&table, known);
        Some(table)
    }

    /// A table whose keys are names.
    pub fn map<'a>(&mut self, value: &Value<'a>) -> Option<Table<'a>> {
        let DeValue::Table(inner) = value.inner else {
            self.mismatch(value, "a table");
            return None;
        };
        Some(Table {
            name: value.name.clone(),
            inner,
        })
    }

    /// The elements of a list. `takes` says what the list holds: `a list of strings`.
    pub fn list<'a>(&mut self, value: &Value<'a>, takes: &str) -> Vec<Value<'a>> {
        let DeValue::Array(array) = value.inner else {
            self.mismatch(value, takes);
            return Vec::new();
        };
        let element = |element: &'a toml::Spanned<DeValue<'a>>| Value {
            name: value.name.clone(),
            span: element.span(),
            key_span: element.span(),
            inner: element.get_ref(),
        };
        array.iter().map(element).collect()
    }

    pub fn string(&mut self, value: &Value<'_>) -> Option<Spanned<String>> {
        self.string_as(value, "a string")
    }

    fn string_as(&mut self, value: &Value<'_>, takes: &str) -> Option<Spanned<String>> {
        let DeValue::String(text) = value.inner else {
            self.mismatch(value, takes);
            return None;
        };
        Some(Spanned {
            value: text.clone().into_owned(),
            span: value.span.clone(),
        })
    }

    pub fn strings(&mut self, value: &Value<'_>) -> Vec<Spanned<String>> {
        let list = self.list(value, "a list of strings");
        list.iter()
            .filter_map(|element| self.string_as(element, "a list of strings"))
            .collect()
    }

    pub fn boolean(&mut self, value: &Value<'_>) -> Option<bool> {
        let DeValue::Boolean(truth) = value.inner else {
            self.mismatch(value, "true or false");
            return None;
        };
        Some(*truth)
    }

    pub fn integer(&mut self, value: &Value<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let DeValue::Integer(digits) = value.inner else {
            self.mismatch(value, "a whole number");
            return None;
        };
        let number = i64::from_str_radix(digits.as_str(), digits.radix()).ok();
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (from, to) = (range.start(), range.end());
            let message = format!("`{}` takes a whole number from {from} to {to}", value.name);
            self.error(&BAD_VALUE, value.span.clone(), message);
        }
        number
    }

    /// A string that is one of these names.
    pub fn one_of<T: Copy>(&mut self, value: &Value<'_>, names: &[(&str, T)]) -> Option<T> {
        let text = self.string(value)?;
        let mut known = Vec::new();
        for (name, meaning) in names {
            if *name == text.value {
                return Some(*meaning);
            }
            known.push(*name);
        }
        self.no_such_name(value, &text, &known);
        None
    }

    fn no_such_name(&mut self, value: &Value<'_>, text: &Spanned<String>, known: &[&str]) {
        let help = match nearest(&text.value, known.iter().copied()) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("known are {known:?}").replace(['[', ']'], ""),
        };
        let message = format!("`{}` does not take {:?}", value.name, text.value);
        self.error_with_help(&BAD_VALUE, text.span.clone(), message, help);
    }
}
