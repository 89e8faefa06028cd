//! Reasons why a module of bitcode has no canonical form.

use std::fmt;

use crate::error::{Error, Problem};

/// Reason why a module of bitcode is kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotCanonical {
    /// The module has a form that cannot be changed safely, described in words.
    UnsupportedForm(&'static str),
    /// The module is malformed.
    Malformed(Problem),
}

impl From<Problem> for NotCanonical {
    fn from(problem: Problem) -> Self {
        Self::Malformed(problem)
    }
}

impl fmt::Display for NotCanonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedForm(form) => f.write_str(form),
            Self::Malformed(problem) => write!(f, "{}", Error::from(problem.clone())),
        }
    }
}
