//! Archives, names of their members, and files that cannot be read.

use gpustub_core::diag::{Code, Diagnostic, IO_ERROR};
use gpustub_core::manifest::RuleLevel;
use gpustub_image::Error;

use crate::package::{Content, FlawKind, Package};
use crate::rule::{Check, Findings, Rule};

pub static MALFORMED_ARCHIVE: Rule = Rule {
    code: Code {
        id: "malformed-archive",
        summary: "malformed, contradictory or unreadable archive",
        explanation: "\
A truncated archive cannot be installed. If two records of an archive contradict each other, tools
unpack it differently; the Python index has refused such wheels since 2025
(its notice of August 7 on wheel archive confusion attacks). Members that are encrypted, compressed
by another method than deflate, or inflate to a hundred times their size are not read and therefore
not checked. Build the package again, with the usual tools.

    python -m build --wheel
    cargo package",
    },
    level: RuleLevel::Deny,
    check: Check::Package(malformed_archive),
};

pub static UNSAFE_PATH: Rule = Rule {
    code: Code {
        id: "unsafe-path",
        summary: "unsafe or nonportable member path",
        explanation: "\
A member named `../x` or `/etc/x`, or a link that leads there, is unpacked outside of the target
directory (https://github.com/rust-lang/cargo/security/advisories/GHSA-rfj2-q3h3-hm5j). Names
with `\\`, control characters or a NUL byte, and two that differ only in case, mean different files
on other systems. Build the package without them.

    unzip -l demo-1.0-py3-none-any.whl",
    },
    level: RuleLevel::Deny,
    check: Check::Package(unsafe_path),
};

pub static MALFORMED_IMAGE: Rule = Rule {
    code: Code {
        id: "malformed-image",
        summary: "malformed program, library or object file",
        explanation: "\
The file begins like an ELF file, but is truncated, or its tables contradict each other. The
loader rejects the file or crashes. The usual cause is an interrupted copy, or a tool that
rewrote the file. Build or unpack it again.

    readelf -d demo/libx.so",
    },
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
                .at(origin)
                .help("check the permissions"),
            ),
            FlawKind::Path | FlawKind::Skipped => {}
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
