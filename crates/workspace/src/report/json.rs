//! One object per line, each with `reason` and `format_version`, like cargo's own messages.

use std::borrow::Cow;

use gpustub_core::diag::{Diagnostic, LineColumn};
use serde::Serialize;

use super::{Sources, level_name, location};
use crate::codes;
use crate::error::Error;
use crate::ops::Operation;

/// Raised when a field changes its meaning or is removed, but not for new fields and reasons.
pub const FORMAT_VERSION: u32 = 1;

/// A diagnostic.
#[derive(Debug, Serialize)]
pub struct Finding<'a> {
    reason: &'static str,
    format_version: u32,
    level: &'static str,
    code: &'static str,
    url: String,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Location<'a> {
    /// Display path: of a member with its archive.
    file: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    #[serde(flatten)]
    position: Option<Position>,
    byte_start: usize,
    byte_end: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    label: &'a str,
}

#[derive(Debug, Serialize)]
struct Position {
    line: usize,
    column: usize,
}

/// Reason why the command could not run.
#[derive(Debug, Serialize)]
pub struct Failure<'a> {
    reason: &'static str,
    format_version: u32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

/// A change to a file.
#[derive(Debug, Serialize)]
pub struct Change<'a> {
    reason: &'static str,
    format_version: u32,
    state: &'static str,
    path: &'a str,
    change: &'static str,
    diff: String,
}

/// The message of an operation; `state`: `planned` or `applied`.
pub fn change<'a>(operation: &'a Operation, state: &'static str) -> Change<'a> {
    Change {
        reason: "operation",
        format_version: FORMAT_VERSION,
        state,
        path: &operation.display_path,
        change: if operation.removes() {
            "remove"
        } else if operation.creates() {
            "create"
        } else {
            "update"
        },
        diff: operation.diff(),
    }
}

/// The message of a diagnostic.
pub fn finding<'a>(diagnostic: &'a Diagnostic, sources: &Sources) -> Finding<'a> {
    let location = location(diagnostic, sources).map(|(file, position)| {
        let origin = diagnostic.origin.as_ref();
        let span = origin.map_or(0..0, |origin| origin.span.clone());
        Location {
            file,
            member: origin.and_then(|origin| origin.member.as_deref()),
            position: position.map(|LineColumn { line, column }| Position { line, column }),
            byte_start: span.start,
            byte_end: span.end,
            label: &diagnostic.label,
        }
    });
    Finding {
        reason: "diagnostic",
        format_version: FORMAT_VERSION,
        level: level_name(diagnostic.level),
        code: diagnostic.code.id,
        url: codes::url(diagnostic.code),
        message: &diagnostic.message,
        location,
        help: diagnostic.help.as_deref(),
    }
}

/// The message of a command that ends with 101.
pub fn failure(error: &Error) -> Failure<'_> {
    Failure {
        reason: "failure",
        format_version: FORMAT_VERSION,
        message: &error.message,
        help: error.help.as_deref(),
    }
}
