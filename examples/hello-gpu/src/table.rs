//! The table: a row per library, then the rejected candidates of missing libraries.

use std::fmt::Write;

/// Table of these libraries. Loads each of them.
pub fn render(libraries: &[&str]) -> String {
    let mut rows = vec![["LIBRARY", "VERSION", "FUNCTIONS", "FOUND"].map(str::to_owned)];
    rows.extend(libraries.iter().map(|library| row(library)));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];

    let mut text = String::new();
    for [library, version, functions, found] in &rows {
        let [a, b, c] = widths;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{library:a$}  {version:b$}  {functions:c$}  {found}");
    }
    let missing = libraries
        .iter()
        .filter(|library| !gpustub::is_available(library));
    for (index, report) in missing.filter_map(|l| gpustub::report(l)).enumerate() {
        text += if index == 0 {
            "\nWhat was tried:\n"
        } else {
            ""
        };
        for line in report.to_string().lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

fn row(library: &str) -> [String; 4] {
    match gpustub::load(library) {
        Ok(loaded) => {
            let counts = loaded.counts();
            let total = counts.bound + counts.refused + counts.missing;
            [
                library.to_owned(),
                loaded
                    .version()
                    .map_or("?".to_owned(), |version| version.to_string()),
                format!("{} of {total}", counts.bound),
                loaded.path().to_string(),
            ]
        }
        Err(why) => [
            library.to_owned(),
            "-".to_owned(),
            "-".to_owned(),
            format!("no: {why}"),
        ],
    }
}
