//! A shipped manifest, from its text.

use std::ops::Range;

use super::{
    Codes, Fallback, Hook, HookKind, Library, LoadName, Out, Returns, Role, ToldBy, VersionForm,
    is_id,
};
use crate::by_name::ByName;
use crate::decode::{Decoder, Table, Value};
use crate::diag::{Diagnostic, INVALID_VALUE, UNKNOWN_FUNCTION, has_errors};
use crate::gates::Gates;
use crate::manifest::values;
use crate::symbols::SymbolList;

const KEYS: [&str; 18] = [
    "schema",
    "id",
    "title",
    "family",
    "role",
    "link-names",
    "driver",
    "version",
    "needs",
    "told-by",
    "own-majors",
    "load-names",
    "places",
    "status",
    "fallback",
    "zero-out",
    "hooks",
    "instead",
];
const PLACES: [&str; 6] = [
    "wheels",
    "root-variables",
    "roots",
    "root-dirs",
    "dirs-first",
    "dirs",
];
const STATUS: [&str; 5] = [
    "library-missing",
    "function-missing",
    "refused",
    "unloading",
    "text",
];
const ROLES: [(&str, Role); 3] = [
    ("driver", Role::Driver),
    ("toolkit", Role::Toolkit),
    ("loader", Role::Loader),
];
const FORMS: [(&str, VersionForm); 3] = [
    ("cuda", VersionForm::Cuda),
    ("pair", VersionForm::Pair),
    ("hip", VersionForm::Hip),
];

const HOOKS: [(&str, HookKind); 5] = [
    ("open", HookKind::Open),
    ("record", HookKind::Record),
    ("close", HookKind::Close),
    ("handle", HookKind::Handle),
    ("identity", HookKind::Identity),
];

/// Longest prefix that the run time searches a file for (`MAX_PREFIX_LENGTH` of `runtime/shared.h`).
pub(crate) const LONGEST_PREFIX: usize = 64;

/// Number of arguments that the run time keeps of a hook (`MAX_HOOK_ARGS` of `runtime/shared.h`).
pub(crate) const MOST_HOOK_ARGS: i64 = 12;

/// The largest struct that a stub may have to fill with zeros.
const LARGEST_STRUCT: i64 = 65_536;

/// The smallest struct that comes back through the hidden result pointer, on x86-64 (psABI 3.2.3)
/// and AArch64 (AAPCS64 6.9) alike. Smaller ones come back in registers: there is no pointer then.
const SMALLEST_STRUCT: i64 = 17;

pub(super) fn library(
    file: &str,
    manifest: &str,
    symbols: &str,
    gates: &str,
) -> (Option<Library>, Vec<Diagnostic>) {
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let (symbols, mut diagnostics) = SymbolList::parse(&format!("{stem}.symbols"), symbols);
    let (gates, wrong) = Gates::parse(&format!("{stem}.gates"), gates);
    diagnostics.extend(wrong);
    let mut decoder = Decoder::new(file);
    let library = decoder.document(manifest).and_then(|document| {
        let top = document.top();
        let mut reader = Reader {
            decoder: &mut decoder,
            symbols: &symbols,
        };
        reader
            .decoder
            .schema(&top)
            .then(|| reader.library(&top))
            .flatten()
    });
    let library = library.map(|library| Library {
        symbols,
        gates,
        ..library
    });
    diagnostics.extend(decoder.finish());
    (library.filter(|_| !has_errors(&diagnostics)), diagnostics)
}

struct Reader<'r, 'f> {
    decoder: &'r mut Decoder<'f>,
    symbols: &'r SymbolList,
}

impl Reader<'_, '_> {
    /// Everything but the symbols. `None` if a needed key is missing; that has been said.
    fn library(&mut self, top: &Table<'_>) -> Option<Library> {
        self.decoder.check_keys(top, &KEYS);
        let [id, title, role, link_names, load_names, status] =
            ["id", "title", "role", "link-names", "load-names", "status"]
                .map(|key| self.decoder.required(top, key, &(0..0)));
        let title = self.decoder.string(&title?)?.value;
        let role = self.decoder.one_of(&role?, &ROLES)?;
        let id = self.id(&id?)?;
        let link_names = self.strings(link_names);
        let load_names = self.decoder.load_names(&load_names?, load_name);
        self.check_order(top, &load_names);
        let (codes, text) = self.status(&status?)?;
        let places = match top.get("places") {
            Some(value) => self.decoder.table(&value, &PLACES),
            None => None,
        };
        let mut place =
            |key: &str| self.strings(places.as_ref().and_then(|places| places.get(key)));
        Some(Library {
            wheel_dirs: place("wheels"),
            root_variables: place("root-variables"),
            roots: place("roots"),
            root_dirs: place("root-dirs"),
            dirs_first: place("dirs-first"),
            dirs: place("dirs"),
            needs: self.strings(top.get("needs")),
            told_by: self.told_by(top),
            own_majors: match top.get("own-majors") {
                Some(value) => self.decoder.boolean(&value)?,
                None => false,
            },
            family: match top.get("family") {
                Some(value) => self.decoder.string(&value)?.value,
                None => String::new(),
            },
            driver: match top.get("driver") {
                Some(value) => Some(self.id(&value)?),
                None => None,
            },
            version: match top.get("version") {
                Some(value) => Some(self.version(&value)?),
                None => None,
            },
            fallbacks: self.fallbacks(top),
            gates: Gates::default(),
            hooks: self.hooks(top),
            instead: self.instead(top),
            text: text.replace("{title}", &title),
            id,
            title,
            role,
            link_names,
            load_names,
            codes,
            symbols: SymbolList::default(),
        })
    }

    fn strings(&mut self, value: Option<Value<'_>>) -> Vec<String> {
        match value {
            Some(value) => values(&self.decoder.strings(&value)),
            None => Vec::new(),
        }
    }

    /// Each is a string, or `{ text = "+cuda" }`, or `{ text = "…", beside = "libcudnn_adv" }`.
    fn told_by(&mut self, top: &Table<'_>) -> Vec<ToldBy> {
        let Some(value) = top.get("told-by") else {
            return Vec::new();
        };
        let list = self.decoder.list(&value, "a list of strings and tables");
        list.iter()
            .filter_map(|one| self.told_by_one(one))
            .collect()
    }

    fn told_by_one(&mut self, value: &Value<'_>) -> Option<ToldBy> {
        if value.is_string() {
            return self.prefix(value).map(ToldBy::Needed);
        }
        let table = self.decoder.table(value, &["text", "beside"])?;
        let text = self.decoder.required(&table, "text", &value.span)?;
        Some(ToldBy::Text {
            text: self.prefix(&text)?,
            beside: match table.get("beside") {
                Some(value) => Some(self.decoder.file_name(&value)?),
                None => None,
            },
        })
    }

    /// What stands before a number.
    fn prefix(&mut self, value: &Value<'_>) -> Option<String> {
        let text = self.decoder.string(value)?;
        if (1..=LONGEST_PREFIX).contains(&text.value.len()) {
            return Some(text.value);
        }
        let message = format!("`{}` takes 1 to {LONGEST_PREFIX} bytes", value.name);
        self.decoder.error(&INVALID_VALUE, text.span, message);
        None
    }

    fn id(&mut self, value: &Value<'_>) -> Option<String> {
        let id = self.decoder.string(value)?;
        if is_id(&id.value) {
            return Some(id.value);
        }
        let message = format!(
            "`{}` takes lower-case letters, digits, `-` and `_`",
            value.name
        );
        self.decoder.error(&INVALID_VALUE, id.span, message);
        None
    }

    /// Newest major first, unversioned names last.
    fn check_order(&mut self, top: &Table<'_>, names: &ByName<Vec<LoadName>>) {
        // `None` orders before every major, so descending puts it last.
        let sorted = |names: &Vec<LoadName>| names.is_sorted_by(|a, b| a.major >= b.major);
        for (system, _) in names.iter().filter(|(_, names)| !sorted(names)) {
            let span = top.get("load-names").map_or(0..0, |value| value.key_span);
            let message = format!(
                "the load names for {system} are not ordered newest major first, unversioned last"
            );
            self.decoder.error(&INVALID_VALUE, span, message);
        }
    }

    fn status(&mut self, value: &Value<'_>) -> Option<(Codes, String)> {
        let table = self.decoder.table(value, &STATUS)?;
        let [library, function, refused, unloading, text] =
            STATUS.map(|key| self.decoder.required(&table, key, &value.key_span));
        let codes = Codes {
            library_missing: self.code(&library?)?,
            function_missing: self.code(&function?)?,
            refused: self.code(&refused?)?,
            unloading: self.code(&unloading?)?,
        };
        Some((codes, self.decoder.string(&text?)?.value))
    }

    fn code(&mut self, value: &Value<'_>) -> Option<i32> {
        self.decoder.status(value)
    }

    fn version(&mut self, value: &Value<'_>) -> Option<(String, VersionForm)> {
        let table = self.decoder.table(value, &["function", "form"])?;
        let function = self.decoder.required(&table, "function", &value.span);
        let form = self.decoder.required(&table, "form", &value.span);
        let function = self.decoder.string(&function?)?;
        self.check_function(&function.value, function.span);
        Some((function.value, self.decoder.one_of(&form?, &FORMS)?))
    }

    fn check_function(&mut self, name: &str, span: Range<usize>) {
        if self.symbols.lookup(name).is_empty() {
            let message = format!("`{name}` is not in the symbol list");
            self.decoder.error(&UNKNOWN_FUNCTION, span, message).help =
                self.symbols.did_you_mean(name);
        }
    }

    /// The entries of a table whose keys are functions.
    fn functions<'a>(&mut self, top: &Table<'a>, key: &str) -> Vec<(&'a str, Value<'a>)> {
        let Some(value) = top.get(key) else {
            return Vec::new();
        };
        let Some(table) = self.decoder.map(&value) else {
            return Vec::new();
        };
        let entries: Vec<_> = table.entries().collect();
        for (name, value) in &entries {
            self.check_function(name, value.key_span.clone());
        }
        entries
    }

    /// `[fallback]` and `[zero-out]`, together.
    fn fallbacks(&mut self, top: &Table<'_>) -> ByName<Fallback> {
        let mut fallbacks: ByName<Fallback> = ByName::new();
        for (name, value) in self.functions(top, "fallback") {
            if let Some(fallback) = self.fallback(&value) {
                fallbacks.insert(name, fallback);
            }
        }
        for (name, value) in self.functions(top, "zero-out") {
            let outs: Vec<Out> = self.decoder.outs(&value, false);
            let fallback = fallbacks.get_or_default(name);
            if !fallback.outs.is_empty() {
                let message =
                    format!("`{name}` has out-parameters in `fallback` and in `zero-out`");
                self.decoder.error(&INVALID_VALUE, value.key_span, message);
            }
            fallback.outs = outs;
        }
        fallbacks
    }

    fn fallback(&mut self, value: &Value<'_>) -> Option<Fallback> {
        let table = self.decoder.table(value, &["returns", "out", "missing"])?;
        Some(Fallback {
            returns: match table.get("returns") {
                Some(value) => self.returns(&value)?,
                None => Returns::Status,
            },
            outs: table
                .get("out")
                .map_or(Vec::new(), |value| self.decoder.outs(&value, true)),
            missing: match table.get("missing") {
                Some(value) => Some(self.code(&value)?),
                None => None,
            },
        })
    }

    fn returns(&mut self, value: &Value<'_>) -> Option<Returns> {
        if value.is_string() {
            let names = [("text", 0), ("null", 1), ("void", 2)];
            let kinds = [Returns::Text, Returns::Null, Returns::Void];
            return self
                .decoder
                .one_of(value, &names)
                .map(|index: usize| kinds[index].clone());
        }
        let table = self.decoder.table(value, &["value", "struct"])?;
        match (table.get("value"), table.get("struct")) {
            (Some(value), None) => self.code(&value).map(Returns::Value),
            (None, Some(bytes)) => {
                let bytes = self
                    .decoder
                    .integer(&bytes, SMALLEST_STRUCT..=LARGEST_STRUCT)?;
                u32::try_from(bytes).ok().map(Returns::Struct)
            }
            _ => {
                let message = format!("`{}` takes one of value = N, struct = BYTES", value.name);
                self.decoder
                    .error(&INVALID_VALUE, value.span.clone(), message);
                None
            }
        }
    }

    /// `__cudaRegisterVar = { record = 8 }`: what it does, and its number of arguments.
    fn hooks(&mut self, top: &Table<'_>) -> ByName<Hook> {
        let mut hooks = ByName::new();
        for (name, value) in self.functions(top, "hooks") {
            let Some(table) = self.decoder.table(&value, &HOOKS.map(|(key, _)| key)) else {
                continue;
            };
            let entries: Vec<_> = table.entries().collect();
            let [(key, args)] = entries.as_slice() else {
                let message = format!("`{}` takes one of open, record, …", value.name);
                self.decoder.error(&INVALID_VALUE, value.span, message);
                continue;
            };
            let kind = HOOKS.iter().find(|(name, _)| name == key);
            let args = self.decoder.integer(args, 1..=MOST_HOOK_ARGS);
            if let (Some((_, kind)), Some(args)) = (kind, args) {
                let (kind, args) = (*kind, u8::try_from(args).unwrap_or(0));
                hooks.insert(name, Hook { kind, args });
            }
        }
        hooks
    }

    fn instead(&mut self, top: &Table<'_>) -> ByName<String> {
        let mut instead = ByName::new();
        for (name, value) in self.functions(top, "instead") {
            if let Some(other) = self.decoder.string(&value) {
                self.check_function(&other.value, other.span);
                instead.insert(name, other.value);
            }
        }
        instead
    }
}

/// `{ major = 13, name = "libcudart.so.13" }`.
fn load_name(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<LoadName> {
    let table = decoder.table(value, &["major", "name"])?;
    let name = decoder.required(&table, "name", &value.span)?;
    let major = match table.get("major") {
        Some(major) => u32::try_from(decoder.integer(&major, 1..=9999)?).ok(),
        None => None,
    };
    Some(LoadName {
        major,
        name: decoder.file_name(&name)?,
    })
}
