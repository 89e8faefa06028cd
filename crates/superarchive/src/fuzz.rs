//! Properties that hold for any bytes: bodies of fuzz targets and of the tests with damaged files.

use gpustub_archive::{Error, SuperArchive};

use crate::definitions::collector::{Binding, Definition, MAX_NAMES_LENGTH};
use crate::ids::{LayerId, ViewId};
use crate::request::{Input, Layer, Request, View};
use crate::write::Plan;

/// Reads `data` as a member of an archive; returns the number of symbols that it defines.
#[doc(hidden)]
pub fn definitions(data: &[u8]) -> usize {
    let Ok(definitions) = crate::definitions::definitions(data) else {
        return 0;
    };
    assert!(
        definitions
            .iter()
            .all(|symbol| !symbol.name.is_empty() && !symbol.name.contains(&0)),
        "names for an index"
    );
    let length: usize = definitions.iter().map(|symbol| symbol.name.len()).sum();
    assert!(length <= MAX_NAMES_LENGTH, "no more than a file may have");
    if let Some(Ok(form)) = crate::definitions::canonical(data) {
        assert!(form.len() <= 4 * data.len(), "about as large as it was");
    }
    definitions.len()
}

/// Reads `data` as a super-archive: opens, walks and searches all of it, even if it does not verify.
///
/// # Errors
///
/// The error of opening or verifying it.
#[doc(hidden)]
pub fn super_archive(data: &[u8]) -> Result<(), Error> {
    let archive = SuperArchive::parse(data)?;
    let verified = archive.verify();
    // A search in unverified tables may scan them completely.
    let mut steps = 1 << 16;
    for view in archive.views().flatten() {
        assert!(view.member_count() <= data.len() && view.layer_count() <= data.len());
        let _ = archive.view(view.name());
        for symbol in view.symbols().flatten() {
            let member = view.find_symbol(symbol.name);
            if verified.is_ok() {
                // The first of two slots with one name.
                assert!(matches!(member, Ok(Some(_))), "each symbol is found");
            }
            steps -= 1;
            if steps == 0 {
                return verified;
            }
        }
        for member in view.members().flatten() {
            assert!(member.layer() < view.layer_count());
        }
        assert!(view.layers().count() == view.layer_count());
        let _ = view.find_symbol("absent");
    }
    for contents in archive.contents() {
        match contents.and_then(|contents| Ok((contents.size(), contents.data()?))) {
            Ok((size, data)) => assert_eq!(size, data.len() as u64),
            Err(error) => assert!(verified.is_err(), "{error}"),
        }
    }
    let _ = archive.default_view();
    verified
}

/// Writes the super-archive that `text` describes, and reads it again. A line is a word and names:
/// `layer NAME`; `member NAME SYMBOL…`, whose contents are its symbols (`~`: weak); `object NAME SYMBOL…`, the
/// same after the header of an object file; `view NAME INDEX…`; `default INDEX`. Returns the number of
/// symbols of all views, if there is a plan.
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
    let archive = SuperArchive::parse(&bytes).expect("read before");
    let mut count = 0;
    for requested in &request.views {
        let view = archive
            .view(&requested.name)
            .expect("sound")
            .expect("written");
        let members: Vec<_> = requested
            .layers
            .iter()
            .flat_map(|layer| &request.layers[layer.0].members)
            .collect();
        for symbol in members.iter().flat_map(|member| &member.symbols) {
            let first = members
                .iter()
                .find(|member| member.symbols.iter().any(|s| s.name == symbol.name));
            let member = view.find_symbol(&symbol.name).expect("sound");
            assert_eq!(
                member.map(|member| member.data().expect("sound")),
                first.map(|member| member.data),
                "{symbol:?}"
            );
        }
        count += view.symbol_count();
    }
    Some(count)
}

/// Contents of the member of each line.
fn contents(text: &str) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for line in text.lines() {
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
        // As in files, equal contents define the same symbols: none, or one without a name.
        data.extend(symbols.map(|_| b' '));
        data.extend(symbols.unwrap_or_default().as_bytes());
        contents.push(data);
    }
    contents
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
            "layer" => request.layers.push(Layer::new(name, Vec::new())),
            "member" | "object" => {
                let symbols = words.map(|word| Definition {
                    name: word.trim_start_matches('~').as_bytes().into(),
                    binding: Binding::weak_if(word.starts_with('~')),
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
                layers: words
                    .filter_map(|word| word.parse().ok().map(LayerId))
                    .collect(),
            }),
            "default" => default = name.parse().ok().map(ViewId),
            _ => {}
        }
    }
    for view in &mut request.views {
        view.layers.retain(|layer| layer.0 < request.layers.len());
    }
    request.default = default.filter(|view| view.0 < request.views.len());
    request
}
