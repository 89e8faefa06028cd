//! `tests/cases/adapters.toml`: calls that an adapter must make of a library function with another ABI.

use std::collections::BTreeMap;
use std::fs;

use gpustub_core::library::Library;
use gpustub_core::version::Version;
use gpustub_tests::{Result, repository};
use serde::Deserialize;

/// The file, whose head describes the keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapters {
    pub fields: BTreeMap<String, BTreeMap<String, Substitute>>,
    #[serde(default)]
    cuda: Vec<Row>,
    #[serde(default)]
    cudart: Vec<Row>,
    #[serde(default)]
    hip: Vec<Row>,
    #[serde(default)]
    hipblas: Vec<Row>,
    #[serde(default)]
    hipsparse: Vec<Row>,
    #[serde(default)]
    rocblas: Vec<Row>,
}

/// Value of a field that only the caller's struct or only the library's has.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Substitute {
    Constant(i64),
    Attribute(Attribute),
    Field(Field),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    pub attribute: i64,
    /// First driver version that knows the attribute.
    since: Option<String>,
    /// Value if the driver does not; without one, the adapter must fail if the library does.
    pub default: Option<i64>,
}

/// A field with this path in the other struct.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub field: String,
}

impl Attribute {
    pub fn is_known(&self, driver: Version) -> bool {
        let since = self.since.as_deref().map(parse_version);
        since.is_none_or(|since| since <= driver)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Number(i64),
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

type Values = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    function: Vec<String>,
    headers: String,
    library: String,
    calls: Option<String>,
    /// Key of [`Adapters::fields`].
    pub fields: Option<String>,
    #[serde(default)]
    drivers: Vec<String>,
    #[serde(default)]
    set: Values,
    #[serde(default)]
    writes: Values,
    #[serde(default)]
    out: Values,
    #[serde(default)]
    failed: Values,
    #[serde(default)]
    cases: Vec<Case>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    set: Values,
    #[serde(default)]
    writes: Values,
    #[serde(default)]
    out: Values,
    #[serde(default)]
    failed: Values,
    calls: Option<String>,
    also: Option<String>,
    result: Option<i32>,
    status: Option<i32>,
    #[serde(default)]
    refused: bool,
}

/// Status of a library or helper function that fails.
pub const FAILURE: i32 = 46;

/// Failure of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    Nothing,
    /// The library's functions, before they write anything.
    Library,
    /// The functions that the adapter calls for itself.
    Helper,
}

/// A call to make, with its expectations.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// Exported name that the caller calls.
    pub name: String,
    pub row: &'a Row,
    pub header: Version,
    pub driver: Version,
    pub fails: Fails,
    /// The library function and its arguments; `None`: refused.
    pub calls: Option<(String, Vec<Expression>)>,
    /// A second function, likewise.
    pub also: Option<(String, Vec<Expression>)>,
    pub set: Values,
    pub writes: Values,
    pub out: Values,
    pub failed: Values,
    /// Status that the library's function returns, and that the caller receives.
    pub result: i32,
    pub status: i32,
}

/// An argument of a library function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// `$1`: the caller's, unchanged.
    Same(usize),
    /// `*$1`: a pointer to the same fields.
    Fields(usize),
    /// `$1.flags`: a field of the caller's struct.
    Field(String),
    Null,
    /// `_`
    Any,
    /// `{type=1, id=$2}`
    Struct(Vec<(String, Expression)>),
    Number(i64),
    /// `header`: version of the caller's header.
    Header,
    /// `driver`: version of the driver.
    Driver,
}

fn parse_version(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|| panic!("adapters.toml: `{text}` is no version"))
}

/// Whether a range, `12.3..13`, has a version. Each end may be missing; the last one is excluded.
fn contains(range: &str, version: Version) -> bool {
    let (from, below) =
        (range.split_once("..")).unwrap_or_else(|| panic!("adapters.toml: `{range}` has no `..`"));
    (from.is_empty() || parse_version(from) <= version)
        && (below.is_empty() || version < parse_version(below))
}

/// Suffix that stands for `~` in a pattern, if the pattern fits a name.
fn twin<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    match pattern.strip_suffix('~') {
        None => (pattern == name).then_some(""),
        Some(stem) => {
            let rest = name.strip_prefix(stem)?;
            ["", "_64", "_ptsz", "_ptds", "_spt"]
                .contains(&rest)
                .then_some(rest)
        }
    }
}

/// Reads `$1`.
fn argument_index(text: &str) -> Option<usize> {
    text.strip_prefix('$')?.parse().ok()
}

fn expression(text: &str) -> Option<Expression> {
    let text = text.trim();
    if let Some(text) = text.strip_prefix('{') {
        let mut fields = Vec::new();
        for field in text.strip_suffix('}')?.split(',') {
            let (path, value) = field.split_once('=')?;
            fields.push((path.trim().to_owned(), expression(value)?));
        }
        return Some(Expression::Struct(fields));
    }
    let pointer = text.strip_prefix('*').and_then(argument_index);
    Some(match text {
        "null" => Expression::Null,
        "_" => Expression::Any,
        "header" => Expression::Header,
        "driver" => Expression::Driver,
        _ => match (argument_index(text), pointer) {
            (Some(index), _) => Expression::Same(index),
            (_, Some(index)) => Expression::Fields(index),
            _ if text.starts_with('$') && text.contains('.') => {
                Expression::Field(text[1..].to_owned())
            }
            _ => Expression::Number(text.parse().ok()?),
        },
    })
}

/// Reads `name(argument, ...)`.
fn call(text: &str) -> Option<(String, Vec<Expression>)> {
    let (name, arguments) = text.strip_suffix(')')?.split_once('(')?;
    let mut depth = 0;
    let arguments: Option<_> = arguments
        .split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        })
        .map(expression)
        .collect();
    Some((name.to_owned(), arguments?))
}

/// Values of a row and of its case, which wins.
fn merged(row: &Values, case: &Values) -> Values {
    (row.iter().chain(case))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

impl Adapters {
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(repository().join("tests/cases/adapters.toml"))?;
        Ok(toml::from_str(&text)?)
    }

    fn rows(&self, id: &str) -> &[Row] {
        match id {
            "cuda" => &self.cuda,
            "cudart" => &self.cudart,
            "hipblas" => &self.hipblas,
            "hipsparse" => &self.hipsparse,
            "rocblas" => &self.rocblas,
            _ => &self.hip,
        }
    }

    /// Calls to make of a function, for a header and a library. Empty: the file has no row.
    pub fn trials(
        &self,
        id: &str,
        name: &str,
        header: Version,
        library: Version,
    ) -> Vec<Trial<'_>> {
        let mut trials = Vec::new();
        for row in self.rows(id) {
            let Some(twin) = (row.function.iter()).find_map(|pattern| twin(pattern, name)) else {
                continue;
            };
            if !contains(&row.headers, header) || !contains(&row.library, library) {
                continue;
            }
            let mut drivers: Vec<Version> =
                row.drivers.iter().map(|text| parse_version(text)).collect();
            if drivers.is_empty() {
                drivers.push(library);
            }
            let cases = if row.cases.is_empty() {
                vec![Case::default()]
            } else {
                row.cases.clone()
            };
            for driver in drivers {
                for case in &cases {
                    let mut fails = vec![Fails::Nothing];
                    // A failure replaces the library's result.
                    if !case.refused && case.result.is_none() {
                        fails.push(Fails::Library);
                        fails.extend(self.needs_helper(row, driver).then_some(Fails::Helper));
                    }
                    for fails in fails {
                        trials.push(trial(row, case, twin, (name, header, driver, fails)));
                    }
                    if case.writes.is_empty() && case.result.is_none() {
                        let trial = trial(row, case, twin, (name, header, driver, Fails::Nothing));
                        trials.extend(with_null(&trial));
                    }
                }
            }
        }
        trials
    }

    /// Whether an adapter must fail if it cannot query an attribute.
    fn needs_helper(&self, row: &Row, driver: Version) -> bool {
        let table = row.fields.as_ref().map(|name| &self.fields[name]);
        table
            .into_iter()
            .flatten()
            .any(|(_, substitute)| match substitute {
                Substitute::Attribute(query) => query.default.is_none() && query.is_known(driver),
                Substitute::Constant(_) | Substitute::Field(_) => false,
            })
    }

    /// Value that a field gets whose path one of the two structs lacks.
    pub fn substitute(&self, row: &Row, path: &str) -> Option<&Substitute> {
        self.fields[row.fields.as_ref()?].get(path)
    }
}

/// Reads a call of the file, with the suffix of a function.
fn twin_call(text: &str, twin: &str) -> (String, Vec<Expression>) {
    let text = text.replace('~', twin);
    call(&text).unwrap_or_else(|| panic!("adapters.toml: `{text}` is no call"))
}

fn trial<'a>(
    row: &'a Row,
    case: &Case,
    twin: &str,
    (name, header, driver, fails): (&str, Version, Version, Fails),
) -> Trial<'a> {
    let calls = (case.calls.as_ref().or(row.calls.as_ref()))
        .filter(|_| !case.refused)
        .map(|text| twin_call(text, twin));
    assert!(
        calls.is_some() || case.refused,
        "adapters.toml: {:?} neither calls nor is refused",
        row.function
    );
    let result = if fails == Fails::Library {
        FAILURE
    } else {
        case.result.unwrap_or(0)
    };
    let status = match fails {
        Fails::Nothing => case.status.unwrap_or(result),
        _ => FAILURE,
    };
    Trial {
        name: name.to_owned(),
        row,
        header,
        driver,
        fails,
        calls,
        also: case.also.as_ref().map(|text| twin_call(text, twin)),
        set: merged(&row.set, &case.set),
        writes: merged(&row.writes, &case.writes),
        out: merged(&row.out, &case.out),
        failed: merged(&row.failed, &case.failed),
        result,
        status,
    }
}

/// The same call with a null pointer instead of each struct that is not passed as it is: the library must receive
/// null as well.
fn with_null<'a>(trial: &Trial<'a>) -> Vec<Trial<'a>> {
    let mut trials = Vec::new();
    for expression in trial.calls.iter().flat_map(|(_, expressions)| expressions) {
        let Expression::Fields(index) = expression else {
            continue;
        };
        let mut set = without_argument(&trial.set, *index);
        set.insert(index.to_string(), Value::Text("null".into()));
        trials.push(Trial {
            set,
            out: without_argument(&trial.out, *index),
            failed: without_argument(&trial.failed, *index),
            ..trial.clone()
        });
    }
    trials
}

/// Values of all arguments but one.
fn without_argument(values: &Values, index: usize) -> Values {
    let mut values = values.clone();
    values.retain(|key, _| !key.starts_with(&format!("{index}.")));
    values
}

impl Trial<'_> {
    /// Line of the file that callers read (`xtask/programs/caller.h`).
    pub fn line(&self, label: usize) -> String {
        let mut line = format!("{} {label}", self.name);
        for (key, value) in &self.set {
            line += &format!(" {key}={value}");
        }
        let writes: Vec<_> = (self.writes.iter())
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if !writes.is_empty() {
            line += &format!(" GPUSTUB_TEST_FAKE_WRITES={}", writes.join(","));
        }
        if !self.row.drivers.is_empty() {
            line += &format!(" GPUSTUB_TEST_DRIVER_VERSION={}", self.driver.code());
        }
        line += &match self.fails {
            Fails::Nothing => format!(" GPUSTUB_TEST_FAKE_RESULT={}", self.result),
            Fails::Library => format!(" GPUSTUB_TEST_FAKE_STATUS={FAILURE}"),
            Fails::Helper => format!(" GPUSTUB_TEST_HELPER_STATUS={FAILURE}"),
        };
        line + "\n"
    }
}

#[test]
fn every_row_can_be_tried() {
    let adapters = Adapters::read().unwrap();
    for id in ["cuda", "cudart", "hip", "hipblas", "hipsparse", "rocblas"] {
        let abi = &Library::builtin(id).unwrap().abi;
        for row in adapters.rows(id) {
            if let Some(table) = &row.fields {
                assert!(adapters.fields.contains_key(table), "{table}");
            }
            for name in &row.function {
                let name = name.trim_end_matches('~');
                assert!(abi.contains(name), "{name} has one ABI");
                let versions = abi.headers();
                let mut pairs = (versions.iter())
                    .flat_map(|header| versions.iter().map(move |library| (*header, *library)));
                let is_tried = pairs.any(|(header, library)| {
                    (adapters.trials(id, name, header, library).iter())
                        .any(|trial| std::ptr::eq(trial.row, row))
                });
                assert!(is_tried, "{name}: no versions have {row:?}");
            }
        }
    }
}

#[test]
fn the_notation_of_calls_is_read() {
    use Expression::{Fields, Number, Same, Struct};
    let fields = vec![("type".to_owned(), Number(1)), ("id".to_owned(), Same(2))];
    let (name, arguments) = call("f($0, *$1, -1, {type=1, id=$2}, null)").unwrap();
    assert_eq!(name, "f");
    let expected = [
        Same(0),
        Fields(1),
        Number(-1),
        Struct(fields),
        Expression::Null,
    ];
    assert_eq!(arguments, expected);
    assert_eq!(call("f($x)"), None);
    assert!(contains("12.3..13", parse_version("12.9")));
    assert!(!contains("12.3..13", parse_version("13")));
    assert_eq!(twin("f~", "f_ptsz"), Some("_ptsz"));
    assert_eq!(twin("f~", "f_v2"), None);
}
