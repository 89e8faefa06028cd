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
    let words = disabled.iter().map(|(name, by)| format!("{name}={by}"));
    let words: Vec<_> = words.collect();
    let reaches_dependents = !disabled.is_empty() && env.get("CARGO_MANIFEST_LINKS").is_some();
    reaches_dependents.then(|| Directive::Metadata(KEY.to_owned(), join(&words, " ")))
}

/// Feature that enables a library, if the library is disabled in this package or a direct dependency.
pub(super) fn feature_of(name: &str, env: &Env, own: &[Disabled<'_>]) -> Option<String> {
    let foreign = env.dependency_metadata(KEY);
    let foreign: Vec<_> = foreign.iter().map(|(_, v)| v.to_string_lossy()).collect();
    let foreign = foreign.iter().flat_map(|words| words.split(' '));
    let foreign = foreign.filter_map(|word| word.split_once('='));
    let mut all = foreign.chain(own.iter().copied());
    let (_, feature) = all.find(|(disabled, _)| *disabled == name)?;
    Some(feature.to_owned())
}
