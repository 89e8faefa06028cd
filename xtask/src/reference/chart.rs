//! `docs/images/functions.svg`: functions of each release, in a panel for each library.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use gpustub_core::library::Library;
use gpustub_core::symbols::Symbol;
use gpustub_core::version::Version;

/// Path of the picture below `docs/`.
pub const PICTURE: &str = "images/functions.svg";

const COLUMNS: usize = 3;
/// Size of a panel, and of the bars in it.
const PANEL: (usize, usize) = (270, 104);
const BARS: (usize, usize) = (240, 56);
/// Distance of bars, for libraries with few releases.
const MAX_STEP: usize = 30;

/// The picture.
pub fn svg() -> String {
    let libraries: Vec<&Library> = Library::builtin_ids()
        .filter_map(Library::builtin)
        .filter(|library| library.symbols.releases.len() > 1)
        .collect();
    let height = libraries.len().div_ceil(COLUMNS) * PANEL.1;
    let width = COLUMNS * PANEL.0;
    // Readable on light and dark pages.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\" fill=\"#808080\">\n<title>Functions of each library by release</title>\n\
         <style>.kept {{ fill: #5b8fc7 }} .new {{ fill: #e09f3e }}</style>\n"
    );
    for (index, library) in libraries.into_iter().enumerate() {
        let (x, y) = (index % COLUMNS * PANEL.0, index / COLUMNS * PANEL.1);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        panel(&mut svg, library);
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

/// Functions of a release.
fn functions(library: &Library, release: Version) -> BTreeSet<&str> {
    let is_accepted = move |symbol: &Symbol| symbol.is_on("linux") && symbol.is_in(release);
    let functions = library.symbols.functions_among(is_accepted);
    functions.map(|symbol| symbol.name.as_str()).collect()
}

fn panel(svg: &mut String, library: &Library) {
    let releases = &library.symbols.releases;
    let functions: Vec<BTreeSet<&str>> = (releases.iter())
        .map(|release| functions(library, *release))
        .collect();
    let most = functions
        .iter()
        .map(BTreeSet::len)
        .max()
        .unwrap_or(1)
        .max(1);
    let (Some(first), Some(last), Some(newest)) =
        (releases.first(), releases.last(), functions.last())
    else {
        return;
    };
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"16\">{}: {}</text>",
        library.id,
        newest.len()
    );
    let base = 24 + BARS.1;
    let step = (BARS.0 / releases.len()).min(MAX_STEP);
    for (index, release) in releases.iter().enumerate() {
        let total = functions[index].len();
        let added = match index.checked_sub(1) {
            Some(before) => functions[index].difference(&functions[before]).count(),
            None => 0,
        };
        let (x, width) = (8 + index * step, step - 2);
        let (whole, new) = (total * BARS.1 / most, (added * BARS.1).div_ceil(most));
        let _ = writeln!(
            svg,
            "<g><title>{} {release}: {total} functions, {added} new</title>\
             <rect class=\"kept\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{whole}\"/>\
             <rect class=\"new\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{new}\"/></g>",
            library.id,
            base - whole,
            base - whole,
        );
    }
    let y = base + 13;
    let end = 8 + step * releases.len();
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"{y}\">{first}</text><text x=\"{end}\" y=\"{y}\" text-anchor=\"end\">{last}</text>"
    );
}
