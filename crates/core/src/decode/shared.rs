//! Values that `GpuStub.toml` and the shipped manifests have in common.

use super::{Decoder, Value};
use crate::by_name::ByName;
use crate::diag::{INVALID_LOAD_NAME, INVALID_VALUE};
use crate::fields::SYSTEMS;
use crate::library::{LoadName, Out, OutKind};
use crate::spanned::Spanned;

/// Maximum index of an argument: more than any function of these libraries has.
pub(crate) const MAX_ARGUMENT: i64 = 63;

/// Maximum size that `struct out_param` can hold.
pub(crate) const MAX_SIZE: i64 = u16::MAX as i64;

impl Decoder<'_> {
    /// Load names by system; `read_element` reads one.
    pub fn load_names(
        &mut self,
        value: &Value<'_>,
        read_element: fn(&mut Self, &Value<'_>) -> Option<Spanned<LoadName>>,
    ) -> ByName<Vec<Spanned<LoadName>>> {
        let Some(systems) = self.table(value, SYSTEMS) else {
            return ByName::new();
        };
        let mut load_names = ByName::new();
        for (system, value) in systems.entries() {
            let elements = self.list(&value, "a list of load names");
            if elements.is_empty() && value.is_list() {
                self.error(
                    &INVALID_VALUE,
                    value.span.clone(),
                    format!("`{}` is empty", value.name),
                );
            }
            let mut names = Vec::new();
            for element in &elements {
                if let Some(name) = read_element(self, element) {
                    names.push(name);
                }
            }
            load_names.insert(system, names);
        }
        load_names
    }

    /// A load name, its major taken from the name: `libacme.so.3` belongs to major 3.
    pub fn load_name(&mut self, value: &Value<'_>) -> Option<Spanned<LoadName>> {
        let name = self.file_name(value)?;
        Some(Spanned {
            value: LoadName::new(name),
            span: value.span.clone(),
        })
    }

    /// A name that can be passed to a loader.
    pub fn file_name(&mut self, value: &Value<'_>) -> Option<String> {
        let name = self.string(value)?.value;
        let problem = match name.as_str() {
            "" => "is empty",
            "." | ".." => "is a directory",
            n if n.contains(['/', '\\']) => "has a directory in it",
            n if n.contains(char::is_control) => "has a control character in it",
            n if n.len() > 255 => "is longer than 255 bytes",
            _ => return Some(name),
        };
        let short_name: String = name.chars().take(40).collect();
        self.error_with_help(
            &INVALID_LOAD_NAME,
            value.span.clone(),
            format!("the load name {short_name:?} {problem}"),
            "a load name is a file name such as libacme.so.3; directories go into `search-dirs`",
        );
        None
    }

    /// A status code: a C `int`.
    pub fn status(&mut self, value: &Value<'_>) -> Option<i32> {
        let number = self.integer(value, i32::MIN.into()..=i32::MAX.into())?;
        i32::try_from(number).ok()
    }

    /// Out-parameters that are zeroed: `[0, { arg = 1, size = 4 }]`; a plain number is a pointer.
    /// With `kinds`, also `{ arg = 4, status = true }` and `{ arg = 1, string = true }`.
    pub fn outs(&mut self, value: &Value<'_>, kinds: bool) -> Vec<Out> {
        let mut outs: Vec<Out> = Vec::new();
        for element in self.list(value, "a list such as [0, { arg = 1, size = 4 }]") {
            let Some(out) = self.out(&element, kinds) else {
                continue;
            };
            match outs.binary_search_by(|previous| previous.arg.cmp(&out.arg)) {
                Err(index) => outs.insert(index, out),
                Ok(_) => {
                    let message = format!("argument {} appears twice in `{}`", out.arg, value.name);
                    self.error(&INVALID_VALUE, element.span, message);
                }
            }
        }
        outs
    }

    /// Numbers of arguments: `[1, 3]`.
    pub fn arguments(&mut self, value: &Value<'_>) -> Vec<u8> {
        let mut arguments = Vec::new();
        for element in self.list(value, "a list of argument numbers such as [1]") {
            arguments.extend(self.argument(&element));
        }
        arguments
    }

    fn argument(&mut self, value: &Value<'_>) -> Option<u8> {
        let number = self.integer(value, 0..=MAX_ARGUMENT)?;
        u8::try_from(number).ok()
    }

    fn out(&mut self, value: &Value<'_>, kinds: bool) -> Option<Out> {
        if value.is_integer() {
            let arg = self.argument(value)?;
            return Some(Out {
                arg,
                position: arg,
                kind: OutKind::Zero(0),
            });
        }
        if !value.is_table() {
            self.mismatch(
                value,
                "argument numbers and tables such as { arg = 1, size = 4 }",
            );
            return None;
        }
        let keys: &[&str] = if kinds {
            &[
                "arg",
                "position",
                "size",
                "status",
                "string",
                "error-name",
                "error-string",
            ]
        } else {
            &["arg", "position", "size"]
        };
        let table = self.table(value, keys)?;
        let arg = self.required(&table, "arg", &value.span)?;
        let arg = self.argument(&arg)?;
        let position = match table.get("position") {
            Some(position) => self.argument(&position)?,
            None => arg,
        };
        let mut kind = OutKind::Zero(0);
        if let Some(size) = table.get("size") {
            kind = OutKind::Zero(u32::try_from(self.integer(&size, 1..=MAX_SIZE)?).ok()?);
        }
        for (key, flag_kind) in [
            ("status", OutKind::Status),
            ("string", OutKind::String),
            ("error-name", OutKind::ErrorName),
            ("error-string", OutKind::ErrorString),
        ] {
            let Some(flag) = table.get(key).filter(|_| kinds) else {
                continue;
            };
            if kind != OutKind::Zero(0) || !self.boolean(&flag)? {
                let message = format!(
                    "`{}` takes one of size = N, status = true, string = true, error-name = true, \
                     error-string = true",
                    value.name
                );
                self.error(&INVALID_VALUE, flag.span, message);
                return None;
            }
            kind = flag_kind;
        }
        Some(Out {
            arg,
            position,
            kind,
        })
    }
}
