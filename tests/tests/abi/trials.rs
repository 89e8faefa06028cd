//! Expectations of calls of adapted functions: what the caller finds, and what the library receives and writes.

use super::adapters::{Adapters, Expression, Fails, Substitute, Trial, Value};
use super::traces::{Record, TracedCall};

/// Part of an argument that does not depend on the size of its struct.
fn head(argument: &str) -> &str {
    argument.split('/').next().unwrap_or_default()
}

fn is_null(argument: &str) -> bool {
    ["NULL", "(nil)", "0"].contains(&argument)
}

/// Whether a caller and a library see the same address, and a struct of the same size there.
fn is_same_memory(argument: &str, received: &str) -> bool {
    address_and_size(argument) == address_and_size(received)
}

fn address_and_size(argument: &str) -> (Option<&str>, Option<&str>) {
    let mut parts = argument.split('/');
    (parts.next(), parts.nth(1))
}

fn is_output(argument: &str) -> bool {
    argument.contains("/out/")
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if is_null(text) => Some(0),
        None => text.parse().ok(),
    }
}

/// Whether a value of at least 4 bytes is a number.
fn equals(text: &str, expected: i64) -> bool {
    let bits = expected.cast_unsigned();
    let short = bits & u64::from(u32::MAX);
    number(text).is_some_and(|number| number == bits || expected < 0 && number == short)
}

/// Path of a field of an argument.
fn path(key: &str, argument: usize) -> Option<&str> {
    let (index, path) = key.split_once('.')?;
    (index.parse() == Ok(argument)).then_some(path)
}

/// Whether a path is that of reserved bytes.
fn is_reserved(path: &str) -> bool {
    path.starts_with('~')
}

/// Path of the bytes of a struct that are no field.
const REST: &str = "(rest)";

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// A field that a caller prints after a call.
struct Output<'a> {
    key: &'a str,
    argument: &'a str,
    path: &'a str,
    value: &'a str,
}

impl Output<'_> {
    fn ensure_is(&self, expected: &str) -> Result<(), String> {
        ensure(self.value == expected, || self.mismatch(expected))
    }

    fn ensure_equals(&self, expected: i64) -> Result<(), String> {
        ensure(equals(self.value, expected), || {
            self.mismatch(&expected.to_string())
        })
    }

    fn mismatch(&self, expected: &str) -> String {
        format!("{} is {}, not {expected}", self.key, self.value)
    }
}

/// A call, with its expectations.
struct Check<'a> {
    adapters: &'a Adapters,
    trial: &'a Trial<'a>,
    call: &'a TracedCall,
}

/// Returns what is wrong with a call.
pub fn check(
    adapters: &Adapters,
    trial: &Trial<'_>,
    call: &TracedCall,
    refused: i32,
) -> Result<(), String> {
    let check = Check {
        adapters,
        trial,
        call,
    };
    let Some((name, expressions)) = &trial.calls else {
        let has_status = trial.status != 0;
        check.status(if has_status { trial.status } else { refused })?;
        ensure(call.records.is_empty(), || {
            format!("calls {:?}", call.records)
        })?;
        return check.outputs(None);
    };
    check.status(trial.status)?;
    let record = match (&call.records[..], &trial.also) {
        ([record], None) => record,
        ([record, second], Some(also)) => {
            check.record(second, also)?;
            record
        }
        _ => return Err(format!("calls {:?}", call.records)),
    };
    check.record(record, &(name.clone(), expressions.clone()))?;
    if trial.fails == Fails::Nothing {
        for key in trial.writes.keys() {
            ensure(record.fields.contains_key(key), || {
                format!("{name} does not write {key}")
            })?;
        }
    }
    check.helpers()?;
    check.outputs(Some((record, expressions)))
}

impl Check<'_> {
    /// Checks a call of the library.
    fn record(
        &self,
        record: &Record,
        (name, expressions): &(String, Vec<Expression>),
    ) -> Result<(), String> {
        ensure(record.name == *name, || format!("calls {}", record.name))?;
        ensure(record.arguments.len() == expressions.len(), || {
            format!("{} arguments", record.arguments.len())
        })?;
        for (index, expression) in expressions.iter().enumerate() {
            self.argument(record, index, expression)
                .map_err(|e| format!("argument {index} of {name}: {e}"))?;
        }
        Ok(())
    }

    fn status(&self, status: i32) -> Result<(), String> {
        let result = &self.call.result;
        let rest = result.strip_prefix(&format!("{status} "));
        ensure(rest.is_some_and(|rest| rest != "overrun"), || {
            format!("`{result}`, not status {status}")
        })
    }

    /// The caller's argument.
    fn caller_argument(&self, index: usize) -> Result<&str, String> {
        let argument = self.call.arguments.get(index).map(String::as_str);
        argument.ok_or_else(|| format!("the caller has no argument {index}"))
    }

    /// Checks an argument of the library's function, and the fields that it reads.
    fn argument(
        &self,
        record: &Record,
        index: usize,
        expression: &Expression,
    ) -> Result<(), String> {
        let received = &record.arguments[index];
        let problem = || format!("{received}, not {expression:?}");
        match expression {
            Expression::Any => Ok(()),
            Expression::Null => ensure(is_null(received), problem),
            Expression::Number(number) => ensure(equals(received, *number), problem),
            Expression::Header => {
                let code = i64::from(self.trial.header.code());
                ensure(equals(received, code), problem)
            }
            Expression::Driver => {
                let code = i64::from(self.trial.driver.code());
                ensure(equals(received, code), problem)
            }
            Expression::Field(key) => {
                let field = (self.call.before.get(key)).and_then(|value| number(value));
                ensure(field.is_some() && field == number(head(received)), problem)
            }
            Expression::Same(caller_index) => {
                let argument = self.caller_argument(*caller_index)?;
                let is_same =
                    head(argument) == head(received) || is_null(argument) && is_null(received);
                ensure(is_same, problem)?;
                if is_same_memory(argument, received) {
                    return Ok(());
                }
                self.inputs(record, index, *caller_index)
            }
            Expression::Fields(caller_index) => {
                let argument = self.caller_argument(*caller_index)?;
                ensure(is_null(argument) == is_null(received), problem)?;
                self.inputs(record, index, *caller_index)
            }
            Expression::Struct(expected) => self.structure(record, index, expected),
        }
    }

    /// Checks that the library read the fields of the caller's struct.
    fn inputs(&self, record: &Record, index: usize, caller_index: usize) -> Result<(), String> {
        if is_output(&record.arguments[index]) || is_null(&record.arguments[index]) {
            return Ok(());
        }
        let caller_fields = &self.call.before;
        for (key, value) in &record.fields {
            let Some(path) = path(key, index) else {
                continue;
            };
            let expected = caller_fields.get(&format!("{caller_index}.{path}"));
            let holds = match (expected, self.adapters.substitute(self.trial.row, path)) {
                // The largest member of a union: the bytes of the others.
                _ if path.ends_with("~pad") => true,
                _ if is_reserved(path) => equals(value, 0),
                (Some(expected), _) => expected == value,
                (None, Some(Substitute::Constant(constant))) => equals(value, *constant),
                (None, Some(Substitute::Field(renamed))) => {
                    caller_fields.get(&format!("{caller_index}.{}", renamed.field)) == Some(value)
                }
                (None, _) => return Err(format!("nothing is said about {path}")),
            };
            ensure(holds, || format!("{path} is {value}, not {expected:?}"))?;
        }
        // A field is only dropped where the file says so.
        for key in caller_fields.keys() {
            let Some(path) = path(key, caller_index).filter(|path| !is_reserved(path)) else {
                continue;
            };
            let is_known = record.fields.contains_key(&format!("{index}.{path}"))
                || self.adapters.substitute(self.trial.row, path).is_some();
            ensure(is_known, || format!("{path} is dropped"))?;
        }
        Ok(())
    }

    /// Checks a struct of which all fields are named, or the inputs in one that the library writes.
    fn structure(
        &self,
        record: &Record,
        index: usize,
        expected: &[(String, Expression)],
    ) -> Result<(), String> {
        let is_output = is_output(&record.arguments[index]);
        let fields = if is_output {
            &record.before
        } else {
            &record.fields
        };
        for (path, expression) in expected {
            let value = fields.get(&format!("{index}.{path}"));
            let value = value.ok_or_else(|| format!("no field {path}"))?;
            let holds = match expression {
                Expression::Number(number) => equals(value, *number),
                Expression::Same(caller_index) => self.caller_argument(*caller_index)? == value,
                _ => false,
            };
            ensure(holds, || format!("{path} is {value}"))?;
        }
        for (key, value) in fields {
            let Some(path) = path(key, index) else {
                continue;
            };
            let is_named = expected.iter().any(|(named, _)| named == path);
            let holds = is_named || is_output || is_reserved(path) && equals(value, 0);
            ensure(holds, || format!("{path} is {value}"))?;
        }
        Ok(())
    }

    /// Checks that attributes are queried of the caller's object, and only if the driver knows them.
    fn helpers(&self) -> Result<(), String> {
        let driver = self.trial.driver;
        for helper in &self.call.helpers {
            let words: Vec<&str> = helper.split(' ').collect();
            let [name, object, number] = words[..] else {
                return Err(format!("`{helper}`"));
            };
            let is_passed = (self.call.arguments.iter()).any(|argument| head(argument) == object);
            ensure(is_passed, || format!("`{helper}`: not the caller's"))?;
            if !name.ends_with("Attribute") {
                continue;
            }
            let table = self.trial.row.fields.as_ref();
            let mut substitutes = table
                .into_iter()
                .flat_map(|name| self.adapters.fields[name].values());
            let is_known = substitutes.any(|substitute| match substitute {
                Substitute::Attribute(query) => {
                    equals(number, query.attribute) && query.is_known(driver)
                }
                Substitute::Constant(_) | Substitute::Field(_) => false,
            });
            ensure(is_known, || format!("`{helper}` with driver {driver}"))?;
        }
        Ok(())
    }

    /// Checks the outputs that the caller finds.
    fn outputs(&self, called: Option<(&Record, &Vec<Expression>)>) -> Result<(), String> {
        let trial = self.trial;
        let is_success = called.is_some() && trial.fails == Fails::Nothing;
        let explicit = if is_success {
            &trial.out
        } else {
            &trial.failed
        };
        for key in explicit.keys() {
            let is_printed = self.call.after.contains_key(key);
            let index = key.split('.').next().and_then(|index| index.parse().ok());
            let is_null = index.is_some_and(|index| self.caller_argument(index).is_ok_and(is_null));
            ensure(is_printed || is_null, || format!("no output {key}"))?;
        }
        for (key, value) in &self.call.after {
            let Some((argument, path)) = key.split_once('.') else {
                continue;
            };
            let output = Output {
                key,
                argument,
                path,
                value,
            };
            if let Some(expected) = explicit.get(key).filter(|_| called.is_some()) {
                let record = called.map(|(record, _)| record);
                ensure(is_value(value, expected, record), || {
                    output.mismatch(&expected.to_string())
                })?;
                continue;
            }
            let mapped = called
                .filter(|_| is_success && trial.status == 0)
                .and_then(|(record, expressions)| mapped_output(record, expressions, argument));
            match mapped {
                _ if path == REST => {
                    let is_passed_on = mapped.is_some_and(|(record, index)| {
                        self.is_passed_on(argument, &record.arguments[index])
                    });
                    let may_be_clean = mapped.is_some() || !explicit.is_empty();
                    let holds =
                        is_passed_on || value == "before" || may_be_clean && value == "clean";
                    ensure(holds, || output.mismatch("clean"))?;
                }
                Some((record, index)) => self.written_output(&output, record, index)?,
                None => {
                    output.ensure_is(self.call.before.get(key).map_or("before", String::as_str))?;
                }
            }
        }
        Ok(())
    }

    /// Checks an output in a struct that the library's function wrote, or that an adapter made of it.
    fn written_output(
        &self,
        output: &Output<'_>,
        record: &Record,
        index: usize,
    ) -> Result<(), String> {
        let path = output.path;
        let written = record.fields.get(&format!("{index}.{path}"));
        let received = &record.arguments[index];
        match (written, self.adapters.substitute(self.trial.row, path)) {
            // A union: the padding of its other members, which the library writes.
            _ if path.ends_with("~pad") && self.is_written_in_place(output.argument, received) => {
                Ok(())
            }
            _ if is_reserved(path) => {
                let is_plausible = ["before", "filled"].contains(&output.value);
                ensure(is_plausible || equals(output.value, 0), || {
                    output.mismatch("zero")
                })
            }
            (Some(written), _) => output.ensure_is(written),
            (None, Some(Substitute::Constant(constant))) => output.ensure_equals(*constant),
            (None, Some(Substitute::Field(renamed))) => {
                let written = record.fields.get(&format!("{index}.{}", renamed.field));
                ensure(
                    written.is_some_and(|written| written == output.value),
                    || output.mismatch(&format!("{written:?}")),
                )
            }
            (None, Some(Substitute::Attribute(query))) => {
                output.ensure_equals(match query.default {
                    Some(default) if !query.is_known(self.trial.driver) => default,
                    _ => 1000 + query.attribute,
                })
            }
            // Versions with different fields that share a variant in the ABI table.
            (None, None) if self.is_passed_on(output.argument, received) => Ok(()),
            (None, None) => Err(format!("nothing is said about {}", output.key)),
        }
    }

    /// Whether an argument of the caller is that of the library.
    fn is_passed_on(&self, index: &str, received: &str) -> bool {
        let argument = (index.parse().ok()).and_then(|index| self.caller_argument(index).ok());
        argument.is_some_and(|argument| is_same_memory(argument, received))
    }

    /// Whether the library writes to the caller's address, a struct of any size.
    fn is_written_in_place(&self, index: &str, received: &str) -> bool {
        let argument = (index.parse().ok()).and_then(|index| self.caller_argument(index).ok());
        argument.is_some_and(|argument| head(argument) == head(received))
    }
}

/// The library's argument that it writes for an argument of the caller.
fn mapped_output<'a>(
    record: &'a Record,
    expressions: &[Expression],
    argument: &str,
) -> Option<(&'a Record, usize)> {
    let caller_index: usize = argument.parse().ok()?;
    let index = expressions.iter().position(|expression| {
        [
            Expression::Same(caller_index),
            Expression::Fields(caller_index),
        ]
        .contains(expression)
    })?;
    is_output(&record.arguments[index]).then_some((record, index))
}

/// Whether a value is the expected one: a number, a name, `any`, `before`, or `@ARGUMENT.PATH`, which the library
/// wrote.
fn is_value(text: &str, expected: &Value, record: Option<&Record>) -> bool {
    match expected {
        Value::Number(number) => equals(text, *number),
        Value::Text(expected) if expected == "any" => true,
        Value::Text(expected) => match expected.strip_prefix('@') {
            Some(key) => {
                let written = record.and_then(|record| record.fields.get(key));
                written.is_some_and(|written| written == text)
            }
            None => text == expected,
        },
    }
}
