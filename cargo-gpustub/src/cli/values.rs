//! Parsers of option values, whose errors show the expected form.

use std::path::PathBuf;

use gpustub_check::RULES;
use gpustub_check::policy::ALL_RULES;
use gpustub_core::date::Date;
use gpustub_core::library::{Library, Returns};
use gpustub_core::suggest::nearest;
use gpustub_core::version::HeaderChoice;
use gpustub_workspace::codes::unknown_rule_help;

/// A version, perhaps of one family of libraries or one library only: `12.8`, `none`, `cuda=12.8`,
/// `cudnn=9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyVersion {
    /// The family, as in library manifests, or else the library.
    pub family: Option<String>,
    /// The version as written.
    pub version: String,
}

/// As in the option.
impl std::fmt::Display for FamilyVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.family {
            Some(family) => write!(f, "{family}={}", self.version),
            None => f.write_str(&self.version),
        }
    }
}

/// `12`, `12.8`, `none`, `cuda=12.8`, `hip=6.4` (the family of ROCm, as in `--toolkit`), `cudnn=9`.
pub fn header_version(text: &str) -> Result<FamilyVersion, String> {
    let (family, version) = match text.split_once('=') {
        Some((family, version)) => (Some(family), version),
        None => (None, text),
    };
    if HeaderChoice::parse(version).is_none() {
        return Err("write the major, `12`, one release, `12.8`, or `none`".into());
    }
    let family = family.map(|family| if family == "hip" { "rocm" } else { family });
    if let Some(family) = family
        && !family_names().any(|name| name == family)
    {
        let suggestion = match nearest(family, family_names()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        return Err(format!("unknown family or library `{family}`{suggestion}"));
    }
    Ok(FamilyVersion {
        family: family.map(str::to_owned),
        version: version.to_owned(),
    })
}

/// The names of families and libraries.
fn family_names() -> impl Iterator<Item = &'static str> {
    Library::builtin_ids()
        .filter_map(Library::builtin)
        .flat_map(|library| [library.family.as_str(), library.id.as_str()])
        .filter(|name| !name.is_empty())
}

/// `cuda=12.8`, `hip=6.4`.
pub fn toolkit_release(text: &str) -> Result<FamilyVersion, String> {
    match text.split_once('=') {
        Some((family @ ("cuda" | "hip"), version)) if !version.is_empty() => Ok(FamilyVersion {
            family: Some(family.to_owned()),
            version: version.to_owned(),
        }),
        _ => Err("write it as cuda=12.8 or hip=6.4".into()),
    }
}

/// A library of `repair --library`.
#[derive(Debug, Clone)]
pub struct RepairedLibrary {
    /// Name of its table.
    pub id: String,
    /// File that describes it; `None`: the table of `GpuStub.toml`.
    pub file: Option<PathBuf>,
}

/// `acme`, `acme=libacme.so.3`.
pub fn repaired_library(text: &str) -> Result<RepairedLibrary, String> {
    let (id, file) = match text.split_once('=') {
        Some((_, "")) => return Err("write it as acme=path/to/libacme.so.3".into()),
        Some((id, file)) => (id, Some(PathBuf::from(file))),
        None => (text, None),
    };
    if id.contains(['/', '\\', '.']) {
        return Err(format!("write it with a name: acme={text}"));
    }
    Ok(RepairedLibrary {
        id: id.to_owned(),
        file,
    })
}

/// `status`, `value:1`.
pub fn returns(text: &str) -> Result<Returns, String> {
    Returns::parse(text).ok_or_else(|| format!("write {}", Returns::CLASSES))
}

/// `2027-01-31`.
pub fn date(text: &str) -> Result<Date, String> {
    Date::parse(text).ok_or_else(|| "write it as 2027-01-31".into())
}

/// The id of a rule, or `all`.
pub fn rule(text: &str) -> Result<String, String> {
    if text == ALL_RULES || RULES.iter().any(|rule| rule.code.id == text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "unknown rule; {}",
        unknown_rule_help(text, &[ALL_RULES])
    ))
}

#[cfg(test)]
mod tests {
    use super::header_version;

    #[test]
    fn a_header_version_is_of_a_family_or_a_library() {
        let family = |text| header_version(text).map(|version| version.family);
        assert_eq!(family("12.9").unwrap(), None);
        assert_eq!(family("cuda=12.9").unwrap().as_deref(), Some("cuda"));
        assert_eq!(family("hip=6").unwrap().as_deref(), Some("rocm"));
        assert_eq!(family("cudnn=9").unwrap().as_deref(), Some("cudnn"));
        let error = family("cudrat=9").unwrap_err();
        assert!(error.contains("did you mean `cudart`?"), "{error}");
        assert!(family("=9").is_err());
    }
}
