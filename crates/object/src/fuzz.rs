//! What must hold of any bytes: the body of fuzz targets and of the tests with damaged files.

use gpustub_core::diag::has_errors;
use gpustub_core::symbols::SymbolList;

use crate::superarchive::{Definition, Input, Layer, Plan, Request, View};
use crate::{
    Options, archive_device_code, archive_members, code_may_have, read_device_code, read_image,
    read_link_facts, read_object, read_symbols, read_texts, to_ifs,
};

/// Reads `data` in every way. Panics if something does that must not be, whatever `data` is; tells
/// whether it was a readable library.
#[doc(hidden)]
pub fn check(data: &[u8]) -> bool {
    // Either answer will do; that there is one is the point.
    let _ = read_link_facts(data);
    let _ = read_image(data, &|_, _| true);
    let _ = read_object(data, &|_, _| true);
    let _ = read_texts(data, &[".so"], &|_| true, &|_| ());
    let _ = code_may_have(data, &["libcuda.so"], &|_| ());
    device(data);
    definitions(data);
    let Ok(list) = read_symbols(data, Options::default()) else {
        return false;
    };
    let unique = |pair: &[gpustub_core::symbols::Symbol]| {
        (&pair[0].name, &pair[0].node) < (&pair[1].name, &pair[1].node)
    };
    assert!(
        list.symbols.windows(2).all(unique),
        "symbols are sorted and unique"
    );
    assert!(to_ifs(&list).lines().count() >= 4);
    let text = list.to_text();
    let (again, diagnostics) = SymbolList::parse("fuzz.symbols", &text);
    assert!(!has_errors(&diagnostics), "{}", diagnostics[0]);
    assert_eq!(
        again, list,
        "a list that was written reads as the same list"
    );
    true
}

/// Reads `data` as an archive and its members as object files; tells how many could be read.
#[doc(hidden)]
pub fn archive(data: &[u8]) -> usize {
    let Ok(members) = archive_members(data) else {
        return 0;
    };
    let mut left = data.len();
    let mut read = 0;
    for member in members.flatten() {
        // Members follow one another, so that a small archive is not a large amount of work.
        left = left.checked_sub(member.data.len()).expect("no overlap");
        read += usize::from(matches!(
            read_object(member.data, &|_, _| true),
            Ok(Some(_))
        ));
    }
    read
}

/// Reads `data` as an object, an image and an archive with relocatable device code; tells how many
/// objects and device links it knows of.
#[doc(hidden)]
pub fn device(data: &[u8]) -> usize {
    let found = [read_device_code(data), archive_device_code(data)];
    let mut ids = 0;
    for code in found.into_iter().flatten() {
        assert!(code.interposable.is_subset(&code.exported));
        assert!(code.exported.is_subset(&code.links));
        let texts = code.modules.iter().map(|module| &module.id);
        let texts: usize = texts.chain(&code.links).map(|id| id.len() + 1).sum();
        // A byte that is not UTF-8 becomes three.
        assert!(texts <= 3 * data.len() + 1, "no more than the file has");
        ids += code.modules.len() + code.links.len();
    }
    ids
}

/// Reads `data` as a member of an archive; tells how many symbols it defines.
#[doc(hidden)]
pub fn definitions(data: &[u8]) -> usize {
    let Ok(found) = crate::definitions(data) else {
        return 0;
    };
    let fits = |name: &[u8]| !name.is_empty() && !name.contains(&0);
    assert!(
        found.iter().all(|one| fits(&one.name)),
        "names for an index"
    );
    let text: usize = found.iter().map(|one| one.name.len()).sum();
    assert!(text <= crate::strings::ALL, "no more than a file may have");
    if let Some(Ok(form)) = crate::definitions::canonical(data) {
        assert!(form.len() <= 4 * data.len(), "about as large as it was");
    }
    found.len()
}

/// Reads `data` as a super-archive: opens, walks and searches all of it, whether it verifies or not.
///
/// # Errors
///
/// That of opening or verifying it.
#[doc(hidden)]
pub fn super_archive(data: &[u8]) -> Result<(), gpustub_archive::Error> {
    let archive = gpustub_archive::SuperArchive::parse(data)?;
    let verified = archive.verify();
    // Searches in tables that nothing is known of may take as long as these are.
    let mut steps = 1 << 16;
    for view in archive.views().flatten() {
        assert!(view.member_count() <= data.len() && view.layer_count() <= data.len());
        let _ = archive.view(view.name());
        for symbol in view.symbols().flatten() {
            let found = view.find(symbol.name);
            if verified.is_ok() {
                // Of two slots with one name, the first.
                assert!(matches!(found, Ok(Some(_))), "each symbol is found");
            }
            steps -= 1;
            if steps == 0 {
                return verified;
            }
        }
        for member in view.members().flatten() {
            assert!(member.1 < view.layer_count());
        }
        assert!(view.layers().count() == view.layer_count());
        let _ = view.find("absent");
    }
    for member in archive.members() {
        let found = member.and_then(|member| Ok((member.size(), member.data()?)));
        match found {
            Ok((size, data)) => assert_eq!(size, data.len() as u64),
            Err(error) => assert!(verified.is_err(), "{error}"),
        }
    }
    let _ = archive.default_view();
    verified
}

/// Writes the super-archive that `text` asks for, and reads it again. A line is a word and names:
/// `layer NAME`; `member NAME SYMBOL…`, whose contents are its symbols (`~`: weak); `object NAME SYMBOL…`, the
/// same behind the header of an object file; `view NAME INDEX…`; `default INDEX`. Tells how many symbols all
/// views have, if there is a plan.
#[doc(hidden)]
pub fn super_archive_write(text: &str) -> Option<usize> {
    let contents = contents(text);
    let request = request(text, &contents);
    let plan = Plan::new(&request).ok()?;
    let mut bytes = Vec::new();
    plan.write(&mut bytes).expect("a vector takes all");
    let mut again = Vec::new();
    let plan = Plan::new(&request).expect("as before");
    plan.write(&mut again).expect("a vector takes all");
    assert!(bytes == again, "two runs differ");
    super_archive(&bytes).expect("what is written is read");
    let archive = gpustub_archive::SuperArchive::parse(&bytes).expect("read before");
    let mut count = 0;
    for wanted in &request.views {
        let view = archive.view(&wanted.name).expect("sound").expect("written");
        let layers = wanted.layers.iter().map(|&at| &request.layers[at]);
        let members: Vec<_> = layers.flat_map(|layer| &layer.members).collect();
        for symbol in members.iter().flat_map(|member| &member.symbols) {
            let has = |one: &&&Input<'_>| one.symbols.iter().any(|s| s.name == symbol.name);
            let first = members.iter().find(has).map(|member| member.data);
            let found = view.find(&symbol.name).expect("sound");
            let found = found.map(|member| member.data().expect("sound"));
            assert_eq!(found, first, "{symbol:?}");
        }
        count += view.symbol_count();
    }
    Some(count)
}

/// Of each line the contents of its member.
fn contents(text: &str) -> Vec<Vec<u8>> {
    let contents = text.lines().map(|line| {
        let mut words = line.splitn(3, ' ');
        let (kind, symbols) = (words.next(), words.nth(1));
        let mut data = Vec::new();
        if kind == Some("object") {
            // A relocatable file of 64 bits for x86-64: `<elf.h>`.
            data.extend(b"\x7fELF\x02\x01\x01");
            data.resize(16, 0);
            data.extend([1, 0, 62, 0]);
            data.resize(64, 0);
        }
        // As of files, the same contents define the same symbols: none, or one without a name.
        data.extend(symbols.map(|_| b' '));
        data.extend(symbols.unwrap_or_default().as_bytes());
        data
    });
    contents.collect()
}

fn request<'d>(text: &'d str, contents: &'d [Vec<u8>]) -> Request<'d> {
    let mut request = Request::default();
    let mut default = None;
    for (line, data) in text.lines().zip(contents) {
        let mut words = line.split(' ');
        let (kind, name) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        match kind {
            "layer" => request.layers.push(Layer {
                name: name.to_owned(),
                members: Vec::new(),
            }),
            "member" | "object" => {
                let symbols = words.map(|word| Definition {
                    name: word.trim_start_matches('~').as_bytes().into(),
                    weak: word.starts_with('~'),
                });
                let input = Input {
                    name: name.as_bytes().into(),
                    data,
                    symbols: symbols.collect(),
                };
                if let Some(layer) = request.layers.last_mut() {
                    layer.members.push(input);
                }
            }
            "view" => request.views.push(View {
                name: name.to_owned(),
                layers: words.filter_map(|word| word.parse().ok()).collect(),
            }),
            "default" => default = name.parse().ok(),
            _ => {}
        }
    }
    for view in &mut request.views {
        view.layers.retain(|&layer| layer < request.layers.len());
    }
    request.default = default.filter(|&index: &usize| index < request.views.len());
    request
}
