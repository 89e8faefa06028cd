//! Cargo features that tables of `GpuStub.toml` require.

use crate::spanned::Spanned;

/// Whether two names are one cargo feature in a build script, where features have `_` for `-` and
/// are in upper case.
pub fn is_same_feature(a: &str, b: &str) -> bool {
    a.replace("-", "_")
        .eq_ignore_ascii_case(&b.replace("-", "_"))
}

/// Cargo features of the package that must all be enabled for a table to take effect. Empty: the
/// table is always in effect.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Default, Clone)]
pub struct RequiredFeatures(pub Vec<Spanned<String>>);

impl RequiredFeatures {
    /// Whether all of them are among the `enabled` features. The names are compared by [`is_same_feature`].
    pub fn are_enabled<'a>(&self, enabled: impl IntoIterator<Item = &'a str>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let enabled: Vec<&str> = enabled.into_iter().collect();
        self.first_missing(|feature| enabled.iter().any(|name| is_same_feature(name, feature)))
            .is_none()
    }

    /// The first feature that is not enabled.
    pub fn first_missing(&self, is_enabled: impl Fn(&str) -> bool) -> Option<&str> {
        self.0
            .iter()
            .map(|feature| feature.value.as_str())
            .find(|feature| !is_enabled(feature))
    }
}
