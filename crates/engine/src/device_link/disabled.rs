//! Metadata of libraries whose cargo feature is disabled, for the error messages of dependents.

use gpustub_core::directives::Directive;
use gpustub_core::text::join;

use crate::env::Env;

/// Key of the metadata: `<library>=<feature> …`. Neither name can contain a space.
const KEY: &str = "GPUSTUB_DISABLED_DEVICE_LINK";

/// A library and the disabled cargo feature that it follows.
pub(super) type Disabled<'a> = (&'a str, &'a str);

/// Announces disabled libraries to the packages that may require them.
pub(super) fn publish(env: &Env, disabled: &[Disabled<'_>]) -> Option<Directive> {
    if disabled.is_empty() || env.get("CARGO_MANIFEST_LINKS").is_none() {
        return None;
    }
    let mut words = Vec::new();
    for (library, feature) in disabled {
        words.push(format!("{library}={feature}"));
    }
    Some(Directive::Metadata(KEY.to_owned(), join(&words, " ")))
}

/// Feature that enables a library, if the library is disabled in a direct dependency or in this package,
/// whose disabled libraries are given.
pub(super) fn feature_of(name: &str, env: &Env, disabled: &[Disabled<'_>]) -> Option<String> {
    for (_, words) in &env.dependency_metadata(KEY) {
        for word in words.to_string_lossy().split(' ') {
            match word.split_once('=') {
                Some((library, feature)) if library == name => return Some(feature.to_owned()),
                _ => {}
            }
        }
    }
    let (_, feature) = disabled.iter().find(|(library, _)| *library == name)?;
    Some((*feature).to_owned())
}
