//! `docs/images/functions.svg`: functions of each release, in a panel for each library.

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

/// Whether a release has a function.
fn has(symbol: &Symbol, release: Version) -> bool {
    let mut ranges = symbol.releases.iter();
    symbol.releases.is_empty() || ranges.any(|(from, to)| (*from..=*to).contains(&release))
}

fn panel(svg: &mut String, library: &Library) {
    let releases = &library.symbols.releases;
    let functions: Vec<&Symbol> = library.symbols.functions_on("linux").collect();
    let count = |release| {
        functions
            .iter()
            .filter(|symbol| has(symbol, release))
            .count()
    };
    let counts: Vec<usize> = releases.iter().map(|release| count(*release)).collect();
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let (Some(first), Some(last), Some(newest)) =
        (releases.first(), releases.last(), counts.last())
    else {
        return;
    };
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"16\">{}: {newest}</text>",
        library.id
    );
    let base = 24 + BARS.1;
    let step = (BARS.0 / releases.len()).min(MAX_STEP);
    for (index, (release, total)) in releases.iter().zip(&counts).enumerate() {
        let added = match index.checked_sub(1).map(|before| releases[before]) {
            Some(before) => functions
                .iter()
                .filter(|symbol| has(symbol, *release) && !has(symbol, before))
                .count(),
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
