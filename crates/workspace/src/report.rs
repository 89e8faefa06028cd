//! Diagnostics in the forms of `--message-format`.

pub mod base;
pub mod github;
pub mod human;
pub mod json;
pub mod sarif;
pub mod short;

use std::borrow::Cow;
use std::collections::BTreeMap;

use gpustub_core::diag::{Diagnostic, Level, LineColumn, line_column};

/// Texts that diagnostics refer to, by display path.
pub type Sources = BTreeMap<String, String>;

/// Whether the diagnostic makes the command fail.
pub fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.level == Level::Error
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// Display path of a diagnostic's file, and its position there if the text is known.
fn location<'a>(
    diagnostic: &'a Diagnostic,
    sources: &Sources,
) -> Option<(Cow<'a, str>, Option<LineColumn>)> {
    let origin = diagnostic.origin.as_ref()?;
    let file = origin.display();
    let position = sources
        .get(&*file)
        .map(|text| line_column(text, origin.span.start));
    Some((file, position))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gpustub_core::diag::{self, Origin};

    use super::base::Base;
    use super::*;

    const TEXT: &str = "schema = 1\n[stub.cudart]\nheadr = \"12\"\n";

    fn finding() -> (Diagnostic, Sources) {
        let diagnostic = Diagnostic::error(&diag::UNKNOWN_KEY, "unknown key `headr` in `stub`")
            .with_origin("a/GpuStub.toml", 25..30)
            .label("not a key of `stub`")
            .help("did you mean `header-version`?");
        (
            diagnostic,
            Sources::from([("a/GpuStub.toml".into(), TEXT.into())]),
        )
    }

    #[test]
    fn human_points_into_the_file() {
        let (diagnostic, sources) = finding();
        let text = human::render(&diagnostic, &[], &sources, false);
        assert_eq!(
            text,
            "error[unknown-key]: unknown key `headr` in `stub`\n --> a/GpuStub.toml:3:1\n  |\n\
             3 | headr = \"12\"\n  | ^^^^^ not a key of `stub`\n  |\n  = help: did you mean `header-version`?"
        );
    }

    #[test]
    fn human_accepts_missing_and_invalid_positions() {
        let (mut diagnostic, sources) = finding();
        diagnostic.origin.as_mut().unwrap().span = 4000..5000;
        assert!(human::render(&diagnostic, &[], &sources, false).contains("a/GpuStub.toml"));
        let text = human::render(&diagnostic, &[], &Sources::new(), false);
        assert!(text.contains(" --> a/GpuStub.toml"), "{text}");
        diagnostic.origin = None;
        assert_eq!(
            human::render(&diagnostic, &[], &sources, false),
            "error[unknown-key]: unknown key `headr` in `stub`\n  |\n  = help: did you mean `header-version`?"
        );
    }

    #[test]
    fn short_is_one_line() {
        let (diagnostic, sources) = finding();
        assert_eq!(
            short::render(&diagnostic, &sources),
            "a/GpuStub.toml:3:1: error[unknown-key]: unknown key `headr` in `stub`"
        );
    }

    #[test]
    fn github_escapes_line_breaks_and_percent_signs() {
        let (mut diagnostic, sources) = finding();
        diagnostic.message = "50%\nor so".into();
        assert_eq!(
            github::render(
                &diagnostic,
                &sources,
                &Base::new(Some(Path::new("/r")), Path::new("/r/rust"))
            ),
            "::error file=rust/a/GpuStub.toml,line=3,col=1,title=gpustub unknown-key::\
             50%25%0Aor so%0Ahelp: did you mean `header-version`?"
        );
    }

    #[test]
    fn github_paths_begin_at_the_repository() {
        let member = Some("../b.so");
        for (repository, current, file, member, expected) in [
            (Some("/r"), "/r/rust", "a.so", None, "rust/a.so"),
            (Some("/r/"), "/r", "a.so", None, "a.so"),
            (Some("/r"), "/r/rust/m", "/r/rust/a", None, "rust/a"),
            (Some("/r"), "/r/sub", "../dist/a.whl", None, "dist/a.whl"),
            (Some("/r"), "/r/sub", "./a.whl", None, "sub/a.whl"),
            (Some("/r"), "/r/sub", ".", None, "sub"),
            (Some("/r"), "/r", ".", None, "."),
            (Some("/r"), "/r/sub", "d!/../a", None, "sub/a"),
            (Some("/r"), "/r/sub", "./a.whl", member, "sub/a.whl!../b.so"),
            (Some("/r"), "/r/sub", "/r2/a.so", None, "/r2/a.so"),
            (Some("/r"), "/r/sub", "../../a.so", None, "../a.so"),
            (Some("/r"), "/q", "../r/a.so", None, "a.so"),
            (Some("/elsewhere"), "/r", "./a.so", None, "a.so"),
            (None, "/r/sub", "a.so", None, "a.so"),
            (None, "/r/sub", "/r/sub/b/../a.so", None, "a.so"),
            (None, "/r/sub", "../b/./a.so", None, "../b/a.so"),
            (None, "/r/sub", "/r/../../usr/a.so", None, "/usr/a.so"),
        ] {
            let origin = Origin {
                member: member.map(str::to_owned),
                ..Origin::new(file, 0..0)
            };
            let diagnostic = finding().0.with_location(origin);
            let base = Base::new(repository.map(Path::new), Path::new(current));
            let line = github::render(&diagnostic, &Sources::new(), &base);
            let expected = format!("::error file={expected},title=");
            assert!(line.starts_with(&expected), "{expected} {line}");
        }
    }

    #[test]
    fn json_has_location_and_format_version() {
        let (diagnostic, sources) = finding();
        let value = serde_json::to_value(json::finding(&diagnostic, &sources)).unwrap();
        assert_eq!(value["reason"], "diagnostic");
        assert_eq!(value["format_version"], 1);
        assert_eq!(value["location"]["line"], 3);
        assert_eq!(value["location"]["byte_start"], 25);
        assert_eq!(value["help"], "did you mean `header-version`?");
    }
}
