//! Answers of the Rust reader, in the lines of `archive-walk.c`.

use std::fmt::Write;

use gpustub_archive::hash::hash_bytes;
use gpustub_archive::{Closure, Contents, Error, Member, SuperArchive, View};

/// Sizes of contents that are not decompressed.
const LARGE: u64 = 1 << 20;

/// Name of a status.
fn status(error: Error) -> &'static str {
    match error {
        Error::NotAnArchive => "not-an-archive",
        Error::NoViews => "no-views",
        Error::UnsupportedVersion { .. }
        | Error::UnsupportedFeatures { .. }
        | Error::UnsupportedExtension { .. }
        | Error::UnsupportedContents { .. } => "unsupported",
        Error::MemberMoved { .. } => "moved",
        Error::Compressed { .. } => "compressed",
        Error::Decompression { .. } => "decompression",
        Error::Malformed(_) => "malformed",
        _ => "changed",
    }
}

/// Function that decompresses contents.
pub type Decompress = fn(u8, &[u8], Option<&[u8]>, &mut [u8]) -> bool;

pub fn walk(bytes: &[u8]) -> String {
    walk_with(bytes, raw)
}

pub fn walk_with(bytes: &[u8], decompress: Decompress) -> String {
    let mut text = String::new();
    print(bytes, &mut text, decompress).expect("a string accepts every text");
    text
}

/// One kind of zstd frame: a header of 6 bytes and one raw block, whose header has 3.
fn raw(codec: u8, stored: &[u8], _: Option<&[u8]>, out: &mut [u8]) -> bool {
    let block = stored.get(9..);
    let block = block.filter(|block| codec == 1 && block.len() == out.len());
    block.map(|block| out.copy_from_slice(block)).is_some()
}

fn print(bytes: &[u8], text: &mut String, decompress: Decompress) -> std::fmt::Result {
    let archive = match SuperArchive::parse(bytes) {
        Ok(archive) => archive,
        Err(error) => return writeln!(text, "archive {}", status(error)),
    };
    writeln!(text, "archive ok")?;
    match archive.default_view() {
        Ok(Some(view)) => writeln!(text, "default {}", name(view.name()))?,
        Ok(None) => writeln!(text, "default: none")?,
        Err(error) => writeln!(text, "default: {}", status(error))?,
    }
    match archive.best_view("gfx1100:xnack-") {
        Ok(Some(view)) => writeln!(text, "best {}", name(view.name()))?,
        Ok(None) => writeln!(text, "best: none")?,
        Err(error) => writeln!(text, "best: {}", status(error))?,
    }
    for view in archive.views() {
        match view {
            Ok(view) => print_view(&archive, &view, text)?,
            Err(error) => writeln!(text, "view: {}", status(error))?,
        }
    }
    for contents in archive.contents() {
        match contents {
            Ok(contents) => print_contents(&contents, text, decompress)?,
            Err(error) => writeln!(text, "contents: {}", status(error))?,
        }
    }
    let verified = archive.verify().map_or_else(status, |()| "ok");
    writeln!(text, "verify {verified}")
}

fn print_view(archive: &SuperArchive<'_>, view: &View<'_>, text: &mut String) -> std::fmt::Result {
    let same = match archive.view(view.name()) {
        Ok(Some(_)) => "ok",
        Ok(None) => "none",
        Err(error) => status(error),
    };
    writeln!(text, "view {} {same}", name(view.name()))?;
    for layer in view.layers() {
        match layer {
            Ok(layer) => writeln!(text, "layer {}", name(layer.name))?,
            Err(error) => writeln!(text, "layer: {}", status(error))?,
        }
    }
    for member in view.members() {
        match member {
            Ok(member) => {
                let (layer, contents) = (member.layer(), member.contents().index());
                writeln!(text, "member {} {layer} {contents}", name(member.name()))?;
            }
            Err(error) => writeln!(text, "member: {}", status(error))?,
        }
    }
    let found = |symbol: &[u8]| answer(view.find_symbol(symbol).map(position));
    for symbol in view.symbols() {
        match symbol {
            Ok(symbol) => writeln!(
                text,
                "symbol {} {} {}",
                name(symbol.name),
                symbol.member.position(),
                found(symbol.name)
            )?,
            Err(error) => writeln!(text, "symbol: {}", status(error))?,
        }
    }
    writeln!(text, "absent {}", found(b"absent"))?;
    writeln!(text, "needs {}", needed(*view).join(" "))
}

/// Members in the order in which the view's symbols need them, and again, when no other one is needed.
fn needed(view: View<'_>) -> Vec<String> {
    let mut memory = vec![0; view.member_count()];
    let mut closure = Closure::new(view, &mut memory).expect("enough memory");
    let mut found = Vec::new();
    for _ in 0..2 {
        for symbol in view.symbols().flatten() {
            let _ = closure.add(symbol.name);
        }
        let mut is_last = false;
        while !is_last {
            let next = closure.next_member().map(position);
            is_last = !matches!(next, Ok(Some(_)));
            found.push(answer(next));
        }
    }
    found
}

fn position(member: Option<Member<'_>>) -> Option<usize> {
    member.map(|member| member.position())
}

fn answer(result: Result<Option<usize>, Error>) -> String {
    match result {
        Ok(Some(number)) => number.to_string(),
        Ok(None) => "none".to_owned(),
        Err(error) => status(error).to_owned(),
    }
}

fn print_contents(
    contents: &Contents<'_>,
    text: &mut String,
    decompress: Decompress,
) -> std::fmt::Result {
    let flags = u8::from(!contents.in_default_view()) + 2 * u8::from(contents.is_variant());
    write!(text, "contents {flags} {}", contents.size())?;
    let hash = |data: &[u8]| format!("{:016x}", hash_bytes(data));
    let plain = contents.data().map_or_else(|e| status(e).to_owned(), hash);
    let copy = unpacked(contents, decompress)
        .map(|data| data.map_or("large".to_owned(), |data| hash(&data)));
    let copy = copy.unwrap_or_else(|error| status(error).to_owned());
    let original = contents.original().map(|original| Some(original.index()));
    writeln!(text, " {plain} {copy} {}", answer(original))
}

fn unpacked(contents: &Contents<'_>, decompress: Decompress) -> Result<Option<Vec<u8>>, Error> {
    let scratch = contents.scratch_size()?;
    if contents.size() > LARGE || scratch > LARGE {
        return Ok(None);
    }
    let buffer = |size: u64| vec![0; usize::try_from(size).unwrap_or_default()];
    let (mut out, mut scratch) = (buffer(contents.size()), buffer(scratch));
    contents.decompress(&mut out, &mut scratch, decompress)?;
    Ok(Some(out))
}

fn name(name: &[u8]) -> String {
    let mut text = String::new();
    for &byte in name {
        if byte.is_ascii_graphic() && byte != b'\\' {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    if text.is_empty() {
        "\\".to_owned()
    } else {
        text
    }
}
