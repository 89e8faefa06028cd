//! Tables that have no effect, because cargo features of their package are not enabled.

use std::collections::BTreeSet;
use std::fmt::Write;

use cargo_metadata::Package;
use gpustub_core::manifest::{Manifest, RequiredFeatures, is_same_feature};
use gpustub_core::target::Target;
use gpustub_workspace::workspace::Workspace;

/// A table without effect.
pub struct TableOff<'a> {
    /// For example `stub.nvrtc`.
    table: String,
    /// Features that it requires and that are not enabled.
    missing: Vec<&'a str>,
}

/// The tables of a file that these features of its package leave without effect.
pub fn tables_off<'a>(
    manifest: &'a Manifest,
    enabled: &[String],
    target: &Target,
) -> Vec<TableOff<'a>> {
    let stubs = manifest.stubs.iter();
    let stubs = stubs.filter(|stub| stub.targets.include(target));
    let stubs = stubs.map(|stub| ("stub", &stub.id.value, &stub.required_features));
    let links = manifest.device_links.iter();
    let links = links.map(|link| ("device-link", &link.name.value, &link.required_features));
    let archives = manifest.archives.iter();
    let archives = archives.map(|table| ("archive", &table.name.value, &table.required_features));
    let mut off = Vec::new();
    for (kind, name, required) in stubs.chain(links).chain(archives) {
        let missing = missing(required, enabled);
        if !missing.is_empty() {
            let table = format!("{kind}.{name}");
            off.push(TableOff { table, missing });
        }
    }
    off
}

fn missing<'a>(required: &'a RequiredFeatures, enabled: &[String]) -> Vec<&'a str> {
    let is_enabled = |feature: &str| {
        let mut names = enabled.iter();
        names.any(|name| is_same_feature(name, feature))
    };
    let required = required.0.iter().map(|feature| feature.value.as_str());
    required.filter(|feature| !is_enabled(feature)).collect()
}

/// Appends a line for each table, and the next step.
pub fn describe(text: &mut String, off: &[TableOff<'_>], package: &Package, workspace: &Workspace) {
    for TableOff { table, missing } in off {
        let plural = if missing.len() == 1 { "" } else { "s" };
        let names = missing.join(", ");
        let _ = writeln!(text, "  {table}: off, without the feature{plural} {names}");
    }
    if off.is_empty() {
        return;
    }
    let features: BTreeSet<&str> = (off.iter())
        .flat_map(|table| table.missing.iter().copied())
        .collect();
    let pronoun = |count| if count == 1 { "it" } else { "them" };
    let (feature_pronoun, table_pronoun) = (pronoun(features.len()), pronoun(off.len()));
    let features = Vec::from_iter(features);
    let members = workspace.members();
    let is_member = members.iter().any(|member| member.id == package.id);
    let option = format!("--features {}", features.join(","));
    let step = match members.len() {
        _ if !is_member => {
            let features = features.join("\", \"");
            format!("its dependents enable {feature_pronoun} with `features = [\"{features}\"]`")
        }
        1 => format!("`cargo gpustub plan {option}` shows {table_pronoun}"),
        _ => {
            let package = &package.name;
            format!("`cargo gpustub plan -p {package} {option}` shows {table_pronoun}")
        }
    };
    let _ = writeln!(text, "    note        {step}");
}
