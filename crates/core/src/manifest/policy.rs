//! `[policy]`: the settings of `cargo gpustub check`.

use super::Spanned;
use crate::by_name::ByName;
use crate::date::Date;

/// A `[policy]`, of a workspace or of a package, for `cargo gpustub check`.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The platform tag that wheels must keep.
    pub platform_tag: Option<Spanned<String>>,
    /// Levels by rule; the spans are those of the names.
    pub rules: ByName<Spanned<RuleLevel>>,
    /// Accepted findings.
    pub allow: Vec<Allow>,
}

/// Level of a rule of `check`.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleLevel {
    /// Not checked.
    Allow,
    /// Reported; the check passes.
    Warn,
    /// Fails the check.
    Deny,
}

/// A finding that is accepted: one `[[policy.allow]]`.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub struct Allow {
    /// The rule.
    pub rule: Spanned<String>,
    /// The file; none: everywhere.
    pub path: Option<Spanned<String>>,
    /// Reason.
    pub reason: String,
    /// Last day on which it is accepted; `None`: no end.
    pub until: Option<Spanned<Date>>,
}
