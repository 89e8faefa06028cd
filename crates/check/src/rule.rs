//! Rules and their findings.

use gpustub_core::diag::{Code, Diagnostic, Origin};
use gpustub_core::manifest::{Policy, RuleLevel};

use crate::display_path::printable;
use crate::package::{Package, PackageImage};
use crate::workspace::WorkspaceFacts;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Id, summary and explanation.
    pub code: Code,
    /// Default level.
    pub level: RuleLevel,
    /// Function that applies it, by its scope.
    pub check: Check,
}

/// Scope of a rule, and the function that checks it.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// Each ELF program and library that uses GPUs.
    Image(fn(&PackageImage<'_>, &mut Findings)),
    /// Each program and library that uses GPUs, in ELF or PE.
    AnyImage(fn(&PackageImage<'_>, &mut Findings)),
    /// The package as a whole.
    Package(fn(&Package, &mut Findings)),
    /// Images that are loaded into one process: those of a package, or files that are named together.
    Process(fn(&Package, &mut Findings)),
    /// The package as a whole, with the policy.
    Policy(fn(&Package, &Policy, &mut Findings)),
    /// A cargo workspace.
    Workspace(fn(&WorkspaceFacts<'_>, &mut Findings)),
    /// Applied by the subcommand itself.
    Command,
}

/// Findings of the rules.
#[derive(Debug, Default)]
pub struct Findings(pub(crate) Vec<Diagnostic>);

impl Rule {
    /// A finding about the file at a location. The message may contain text of the file.
    pub(crate) fn finding(&'static self, origin: Origin, message: String) -> Diagnostic {
        Diagnostic::error(&self.code, printable(message.as_bytes())).with_location(origin)
    }
}

impl Findings {
    /// Adds a finding.
    pub(crate) fn push(&mut self, finding: Diagnostic) {
        self.0.push(finding);
    }

    /// Adds a finding about an image, with the next step.
    pub(crate) fn on_image(
        &mut self,
        rule: &'static Rule,
        image: &PackageImage<'_>,
        message: String,
        help: &str,
    ) {
        self.push(rule.finding(image.location(), message).help(help));
    }
}
