//! Graphs of libraries and of the programs above them, in the notation of `plan --graph`.

use std::fmt::Write;

pub const LIBRARIES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The statements of a graph's libraries, or of its programs.
pub type Statements = Vec<String>;

/// All graphs of one to three libraries.
pub fn small() -> Vec<Statements> {
    let shapes = |count| (0..1_u32 << bits(count)).map(move |shape| libraries(count, shape));
    (1..=3).flat_map(shapes).collect()
}

/// Some graphs of five libraries.
pub fn large(count: u32) -> Vec<Statements> {
    // A stride that is coprime with the number of shapes visits each at most once.
    let shape = |number: u32| (number * 12_345 + 6_789) % (1 << bits(5));
    (0..count)
        .map(|number| libraries(5, shape(number)))
        .collect()
}

/// Number of the forms of a graph's nodes, and of its possible links.
fn bits(count: usize) -> usize {
    count + count * (count - 1) / 2
}

/// Libraries with relocatable code. The bits of `shape` choose their forms and links to earlier ones.
fn libraries(count: usize, shape: u32) -> Statements {
    let mut bits = (0..).map(|bit| shape >> bit & 1 == 1);
    let mut next = || bits.next().unwrap_or_default();
    let mut graph = Vec::new();
    for (index, name) in LIBRARIES[..count].iter().enumerate() {
        let form = if next() { "shared" } else { "static" };
        let links = LIBRARIES[..index].iter().filter(|_| next());
        graph.push(format!("{name}*:{form}{}", arrow(links.copied())));
    }
    graph
}

/// Programs over any of `count` libraries, with and without relocatable code: programs, cdylibs that a
/// program opens, two cdylibs over a library each, and two over the same two libraries. The first
/// statement's node is the process.
pub fn programs(count: usize) -> Vec<Statements> {
    let names = &LIBRARIES[..count];
    let mut programs = Vec::new();
    for set in 1..1_u32 << count {
        let links = (0..count)
            .filter(|index| set >> index & 1 == 1)
            .map(|index| names[index]);
        let arrow = arrow(links);
        for star in ["", "*"] {
            programs.push(vec![format!("exe{star}:bin{arrow}")]);
            programs.push(opened(&[format!("p{star}:cdylib{arrow}")]));
        }
    }
    for (index, first) in names.iter().enumerate() {
        for second in &names[index..] {
            programs.push(opened(&[
                format!("p:cdylib -> {first}"),
                format!("q:cdylib -> {second}"),
            ]));
            if first != second {
                programs.push(opened(&[
                    format!("p:cdylib -> {first},{second}"),
                    format!("q:cdylib -> {first},{second}"),
                ]));
            }
        }
    }
    programs
}

fn opened(cdylibs: &[String]) -> Statements {
    let names = ["p", "q"];
    let mut statements = vec![format!(
        "host:bin opens {}",
        names[..cdylibs.len()].join(",")
    )];
    statements.extend_from_slice(cdylibs);
    statements
}

fn arrow<'a>(links: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for link in links {
        let before = if text.is_empty() { " -> " } else { "," };
        let _ = write!(text, "{before}{link}");
    }
    text
}
