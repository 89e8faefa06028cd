//! Archives, names of their members, and files that cannot be read.

use gpustub_core::code;
use gpustub_core::diag::{Diagnostic, IO_ERROR};
use gpustub_core::manifest::RuleLevel;
use gpustub_image::Error;

use crate::package::{Content, FlawKind, Package};
use crate::rule::{Check, Findings, Rule};

pub static MALFORMED_ARCHIVE: Rule = Rule {
    code: code!(
        "malformed-archive",
        "malformed, contradictory or unreadable archive"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(malformed_archive),
};

pub static UNSAFE_PATH: Rule = Rule {
    code: code!("unsafe-path", "unsafe or nonportable member path"),
    level: RuleLevel::Deny,
    check: Check::Package(unsafe_path),
};

pub static MALFORMED_IMAGE: Rule = Rule {
    code: code!(
        "malformed-image",
        "malformed program, library or object file"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(malformed_image),
};

fn malformed_archive(package: &Package, findings: &mut Findings) {
    for flaw in &package.flaws {
        let origin = package.location_of(&flaw.path);
        match flaw.kind {
            FlawKind::Archive => findings.push(
                MALFORMED_ARCHIVE
                    .finding(origin, flaw.message.clone())
                    .help("build the package again, or check the unpacked files"),
            ),
            // Not a rule, which a policy could allow: the file was not read.
            FlawKind::Unreadable => findings.push(
                Diagnostic::error(
                    &IO_ERROR,
                    format!("unreadable file or directory: {}", flaw.message),
                )
                .with_location(origin)
                .help("check the permissions"),
            ),
            FlawKind::Path | FlawKind::Special | FlawKind::Skipped => {}
        }
    }
}

fn unsafe_path(package: &Package, findings: &mut Findings) {
    for flaw in &package.flaws {
        if flaw.kind == FlawKind::Path {
            findings.push(
                UNSAFE_PATH
                    .finding(package.location_of(&flaw.path), flaw.message.clone())
                    .help("build the package without this member"),
            );
        }
    }
}

fn malformed_image(package: &Package, findings: &mut Findings) {
    for member in &package.members {
        let Content::Damaged(problem) = &member.content else {
            continue;
        };
        let error = Error::from(problem.clone());
        findings.push(
            MALFORMED_IMAGE
                .finding(package.location(member), error.to_string())
                .help(error.help()),
        );
    }
}
