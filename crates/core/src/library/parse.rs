//! A shipped manifest, from its text.

mod search;
pub(crate) mod versions;

use std::ops::Range;

use super::{
    Fallback, Hook, HookKind, Library, LoadName, Out, Returns, Role, Status, VersionEncoding,
    VersionQuery, is_id, plain_load_names,
};
use crate::abi_table::AbiTable;
use crate::by_name::ByName;
use crate::decode::{Decoder, Table, Value};
use crate::diag::{Diagnostic, INVALID_VALUE, UNKNOWN_FUNCTION, has_errors};
use crate::returns::{MAX_STRUCT_SIZE, MIN_STRUCT_SIZE};
use crate::spanned::Spanned;
use crate::symbols::SymbolList;

const KEYS: [&str; 21] = [
    "schema",
    "id",
    "title",
    "family",
    "role",
    "link-names",
    "driver",
    "version-query",
    "preload",
    "toolkit-version-from",
    "independent-major",
    "oldest-headers",
    "has-32-bit",
    "symbol-version",
    "load-names",
    "search",
    "status",
    "fallback",
    "zero-out",
    "hooks",
    "fallback-symbols",
];
const MANDATORY_KEYS: [&str; 6] = ["id", "title", "role", "link-names", "load-names", "status"];
const SEARCH_KEYS: [&str; 7] = [
    "wheel-dirs",
    "root-env",
    "roots",
    "root-subdirs",
    "dirs-before-loader",
    "dirs-after-loader",
    "windows",
];
const STATUS: [&str; 5] = [
    "library-missing",
    "missing",
    "refused",
    "unloading",
    "string",
];
const ROLES: [(&str, Role); 3] = [
    ("driver", Role::Driver),
    ("toolkit", Role::Toolkit),
    ("loader", Role::Loader),
];
const ENCODINGS: [(&str, VersionEncoding); 5] = [
    ("cuda", VersionEncoding::Cuda),
    ("pair", VersionEncoding::Pair),
    ("hip", VersionEncoding::Hip),
    ("property", VersionEncoding::Property),
    ("driver", VersionEncoding::Driver),
];

/// Values of `symbol-version`.
const SYMBOL_VERSIONS: [(&str, bool); 1] = [("soname", true)];

const HOOK_KINDS: [(&str, HookKind); 5] = [
    ("open", HookKind::Open),
    ("record", HookKind::Record),
    ("close", HookKind::Close),
    ("call", HookKind::Call),
    ("copy-through", HookKind::CopyThrough),
];

/// Maximum number of hook arguments that the run time stores (`MAX_HOOK_ARGS` of
/// `runtime/shared.h`).
pub(crate) const MAX_HOOK_ARGS: i64 = 12;

impl Library {
    /// Reads a shipped manifest. `file` names it in diagnostics, and names its symbol list and its
    /// ABI table.
    pub fn parse(
        file: &str,
        manifest: &str,
        symbols: &str,
        abi: &str,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        library(file, manifest, symbols, abi)
    }
}

fn library(
    file: &str,
    manifest: &str,
    symbols: &str,
    abi: &str,
) -> (Option<Library>, Vec<Diagnostic>) {
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let (symbols, mut diagnostics) = SymbolList::parse(&format!("{stem}.symbols"), symbols);
    let (abi, wrong) = AbiTable::parse(&format!("{stem}.abi"), abi);
    diagnostics.extend(wrong);
    let mut decoder = Decoder::new(file);
    let mut library = Library::default();
    let mut is_complete = false;
    if let Some(document) = decoder.document(manifest) {
        let top = document.top();
        let mut reader = Reader {
            decoder: &mut decoder,
            symbols: &symbols,
        };
        is_complete = reader.decoder.schema(&top) && reader.library(&top, &mut library).is_some();
    }
    library.symbols = symbols;
    library.abi = abi;
    diagnostics.extend(decoder.finish());
    let is_valid = is_complete && !has_errors(&diagnostics);
    (is_valid.then_some(library), diagnostics)
}

struct Reader<'r, 'f> {
    decoder: &'r mut Decoder<'f>,
    symbols: &'r SymbolList,
}

impl Reader<'_, '_> {
    /// Fills in all fields except the symbols. `None` if a mandatory key is missing, which has been reported.
    fn library(&mut self, top: &Table<'_>, library: &mut Library) -> Option<()> {
        self.decoder.check_keys(top, &KEYS);
        for key in MANDATORY_KEYS {
            self.decoder.required(top, key, &(0..0));
        }
        library.title = self.decoder.string(&top.get("title")?)?.value;
        library.role = self.decoder.one_of(&top.get("role")?, &ROLES)?;
        library.id = self.id(&top.get("id")?)?;
        library.link_names = self.strings(top.get("link-names"));
        let load_names = top.get("load-names")?;
        library.load_names = plain_load_names(&self.decoder.load_names(&load_names, load_name));
        self.check_order(top, &library.load_names);
        self.status(&top.get("status")?, library)?;
        if let Some(value) = top.get("search") {
            self.search(&value, library);
        }
        library.preload = search::preload(self.decoder, top);
        library.toolkit_version_from = versions::toolkit_version_from(self.decoder, top);
        library.independent_major = self.flag(top, "independent-major")?;
        library.oldest_headers = versions::oldest_headers(self.decoder, top);
        library.has_32_bit = self.flag(top, "has-32-bit")?;
        if let Some(value) = top.get("symbol-version") {
            library.versioned_by_soname = self.decoder.one_of(&value, &SYMBOL_VERSIONS)?;
        }
        if let Some(value) = top.get("family") {
            library.family = self.decoder.string(&value)?.value;
        }
        if let Some(value) = top.get("driver") {
            library.driver = Some(self.id(&value)?);
        }
        if let Some(value) = top.get("version-query") {
            library.version_query = Some(self.version_query(&value)?);
        }
        library.fallbacks = self.fallbacks(top);
        library.hooks = self.hooks(top);
        library.fallback_symbols = self.fallback_symbols(top);
        Some(())
    }

    fn search(&mut self, value: &Value<'_>, library: &mut Library) {
        let Some(table) = self.decoder.table(value, &SEARCH_KEYS) else {
            return;
        };
        for (key, list) in [
            ("wheel-dirs", &mut library.wheel_dirs),
            ("root-env", &mut library.root_env),
            ("roots", &mut library.roots),
            ("root-subdirs", &mut library.root_subdirs),
            ("dirs-before-loader", &mut library.dirs_before_loader),
            ("dirs-after-loader", &mut library.dirs_after_loader),
        ] {
            *list = self.strings(table.get(key));
        }
        library.windows = search::windows(self.decoder, table.get("windows"));
    }

    fn flag(&mut self, top: &Table<'_>, key: &str) -> Option<bool> {
        match top.get(key) {
            Some(value) => self.decoder.boolean(&value),
            None => Some(false),
        }
    }

    fn strings(&mut self, value: Option<Value<'_>>) -> Vec<String> {
        search::strings(self.decoder, value)
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

    /// Checks the order: newest major first, unversioned names last.
    fn check_order(&mut self, top: &Table<'_>, names: &ByName<Vec<LoadName>>) {
        for (system, names) in names {
            // `None` orders before every major, so descending puts it last.
            if names.is_sorted_by(|a, b| a.major >= b.major) {
                continue;
            }
            let span = top.get("load-names").map_or(0..0, |value| value.key_span);
            let message = format!(
                "the load names for {system} are not ordered newest major first, unversioned last"
            );
            self.decoder.error(&INVALID_VALUE, span, message);
        }
    }

    /// Status codes, and the result of string functions.
    fn status(&mut self, value: &Value<'_>, library: &mut Library) -> Option<()> {
        let table = self.decoder.table(value, &STATUS)?;
        for key in STATUS {
            self.decoder.required(&table, key, &value.key_span);
        }
        library.status = Status {
            library_missing: self.code(&table.get("library-missing")?)?,
            missing: self.code(&table.get("missing")?)?,
            refused: self.code(&table.get("refused")?)?,
            unloading: self.code(&table.get("unloading")?)?,
        };
        let string = self.decoder.string(&table.get("string")?)?.value;
        library.status_string = string.replace("{title}", &library.title);
        Some(())
    }

    fn code(&mut self, value: &Value<'_>) -> Option<i32> {
        self.decoder.status(value)
    }

    fn version_query(&mut self, value: &Value<'_>) -> Option<VersionQuery> {
        let table = self.decoder.table(value, &["function", "encoding"])?;
        let function = self.decoder.required(&table, "function", &value.span);
        let encoding = self.decoder.required(&table, "encoding", &value.span);
        let function = self.decoder.string(&function?)?;
        self.check_function(&function.value, function.span);
        Some(VersionQuery {
            function: function.value,
            encoding: self.decoder.one_of(&encoding?, &ENCODINGS)?,
        })
    }

    fn check_function(&mut self, name: &str, span: Range<usize>) {
        if self.symbols.lookup(name).is_empty() {
            let message = format!("`{name}` is not in the symbol list");
            self.decoder.error(&UNKNOWN_FUNCTION, span, message).help =
                self.symbols.did_you_mean(name);
        }
    }

    /// Entries of a table whose keys are functions.
    fn functions<'a>(&mut self, top: &Table<'a>, key: &str) -> Vec<(&'a str, Value<'a>)> {
        let Some(value) = top.get(key) else {
            return Vec::new();
        };
        let Some(table) = self.decoder.map(&value) else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        for (name, value) in table.entries() {
            self.check_function(name, value.key_span.clone());
            entries.push((name, value));
        }
        entries
    }

    /// Reads `[fallback]` and `[zero-out]`, together.
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
        let table = self
            .decoder
            .table(value, &["returns", "out", "wide", "status-if-missing"])?;
        Some(Fallback {
            returns: match table.get("returns") {
                Some(value) => self.returns(&value)?,
                None => Returns::Status,
            },
            outs: table
                .get("out")
                .map_or(Vec::new(), |value| self.decoder.outs(&value, true)),
            wide: self.arguments(&table, "wide"),
            status_if_missing: match table.get("status-if-missing") {
                Some(value) => Some(self.code(&value)?),
                None => None,
            },
        })
    }

    fn arguments(&mut self, table: &Table<'_>, key: &str) -> Vec<u8> {
        match table.get(key) {
            Some(value) => self.decoder.arguments(&value),
            None => Vec::new(),
        }
    }

    fn returns(&mut self, value: &Value<'_>) -> Option<Returns> {
        if value.is_string() {
            let classes = [
                Returns::String,
                Returns::Null,
                Returns::Void,
                Returns::ErrorName,
                Returns::ErrorString,
            ];
            let indexes = [
                ("string", 0),
                ("null", 1),
                ("void", 2),
                ("error-name", 3),
                ("error-string", 4),
            ];
            return self
                .decoder
                .one_of(value, &indexes)
                .map(|index: usize| classes[index].clone());
        }
        let keys = ["value", "zeroed-struct", "unknown-error"];
        let table = self.decoder.table(value, &keys)?;
        match keys.map(|key| table.get(key)) {
            [Some(value), None, None] => self.code(&value).map(Returns::Value),
            [None, None, Some(code)] => self.code(&code).map(Returns::UnknownError),
            [None, Some(size), None] => {
                let size = self
                    .decoder
                    .integer(&size, MIN_STRUCT_SIZE..=MAX_STRUCT_SIZE)?;
                u32::try_from(size).ok().map(Returns::ZeroedStruct)
            }
            _ => {
                let message = format!(
                    "`{}` takes one of value = N, zeroed-struct = SIZE, unknown-error = N",
                    value.name
                );
                self.decoder
                    .error(&INVALID_VALUE, value.span.clone(), message);
                None
            }
        }
    }

    /// Reads hooks such as `__cudaRegisterVar = { kind = "record", args = 8 }`.
    fn hooks(&mut self, top: &Table<'_>) -> ByName<Hook> {
        let mut hooks = ByName::new();
        for (name, value) in self.functions(top, "hooks") {
            if let Some(hook) = self.hook(&value) {
                hooks.insert(name, hook);
            }
        }
        hooks
    }

    fn hook(&mut self, value: &Value<'_>) -> Option<Hook> {
        let table = self.decoder.table(value, &["kind", "args"])?;
        let kind = self.decoder.required(&table, "kind", &value.span);
        let args = self.decoder.required(&table, "args", &value.span);
        let kind = self.decoder.one_of(&kind?, &HOOK_KINDS)?;
        let args = self.decoder.integer(&args?, 1..=MAX_HOOK_ARGS)?;
        let args = u8::try_from(args).ok()?;
        Some(Hook { kind, args })
    }

    fn fallback_symbols(&mut self, top: &Table<'_>) -> ByName<String> {
        let mut symbols = ByName::new();
        for (name, value) in self.functions(top, "fallback-symbols") {
            if let Some(symbol) = self.decoder.string(&value) {
                self.check_function(&symbol.value, symbol.span);
                symbols.insert(name, symbol.value);
            }
        }
        symbols
    }
}

/// Reads `{ major = 13, name = "libcudart.so.13" }`.
fn load_name(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<Spanned<LoadName>> {
    let table = decoder.table(value, &["major", "name"])?;
    let name = decoder.required(&table, "name", &value.span)?;
    let major = match table.get("major") {
        Some(major) => u32::try_from(decoder.integer(&major, 1..=9999)?).ok(),
        None => None,
    };
    let name = decoder.file_name(&name)?;
    Some(Spanned {
        value: LoadName { major, name },
        span: value.span.clone(),
    })
}
