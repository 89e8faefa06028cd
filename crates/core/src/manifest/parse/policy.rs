//! Reads `[policy]`.

use super::values::version;
use crate::date::Date;
use crate::decode::{Decoder, Value};
use crate::diag::INVALID_VALUE;
use crate::fields;
use crate::manifest::{Allow, Policy, RuleLevel, Spanned};

pub(super) const LEVELS: [(&str, RuleLevel); 3] = [
    ("allow", RuleLevel::Allow),
    ("warn", RuleLevel::Warn),
    ("deny", RuleLevel::Deny),
];

pub(super) fn policy(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Policy {
    let mut policy = Policy::default();
    let Some(table) = decoder.table(value, &fields::keys("policy")) else {
        return policy;
    };
    policy.platform_tag = table
        .get("platform-tag")
        .and_then(|value| decoder.string(&value));
    if let Some(rules) = table.get("rules").and_then(|value| decoder.map(&value)) {
        for (rule, value) in rules.entries() {
            if let Some(level) = decoder.one_of(&value, &LEVELS) {
                let level = Spanned {
                    value: level,
                    span: value.key_span.clone(),
                };
                policy.rules.insert(rule, level);
            }
        }
    }
    if let Some(value) = table.get("allow") {
        for element in decoder.list(&value, "a list of tables: [[policy.allow]]") {
            policy.allow.extend(allow(decoder, &element));
        }
    }
    policy
}

fn allow(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<Allow> {
    let table = decoder.table(value, &fields::keys("policy.allow"))?;
    let rule = decoder.required(&table, "rule", &value.span);
    let reason = decoder.required(&table, "reason", &value.span);
    let path = table.get("path").and_then(|value| decoder.string(&value));
    let takes = "a day such as \"2027-01-31\"";
    let until = version(decoder, &table, "until", takes, Date::parse);
    let reason = decoder.string(&reason?)?;
    if reason.value.trim().is_empty() {
        let message = "`policy.allow.reason` is empty";
        decoder.error(&INVALID_VALUE, reason.span, message);
    }
    Some(Allow {
        rule: decoder.string(&rule?)?,
        path,
        reason: reason.value,
        until,
    })
}
