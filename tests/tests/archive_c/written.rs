//! Views of the conformance files, written again.
//!
//! The bytes differ, although both follow FORMAT.md: the order of texts and contents, the views that share a dictionary,
//! alignments, and the modes in the headers of `ar` are choices of a writer.

use std::collections::BTreeMap;

use gpustub_archive::{Error, SuperArchive};
use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId,
};
use gpustub_tests::Result;

use crate::cases::all;

/// Sound files that this repository's writer cannot give.
const NOT_WRITTEN: [(&str, &str); 10] = [
    ("bad-frame", "contents are compressed"),
    ("compressed", "contents are compressed"),
    ("bitcode", SYMBOLS),
    ("closure", SYMBOLS),
    ("elf32", SYMBOLS),
    ("elf32be", SYMBOLS),
    ("elf64", SYMBOLS),
    ("elf64be", SYMBOLS),
    ("feature-unused", SYMBOLS),
    ("sym64", SYMBOLS),
];
const SYMBOLS: &str = "members of equal contents define different symbols";

/// A view as a reader finds it.
#[derive(Debug, PartialEq)]
struct ReadView {
    name: Vec<u8>,
    layers: Vec<Vec<u8>>,
    /// Names, positions of layers, contents.
    members: Vec<(Vec<u8>, usize, Vec<u8>)>,
    /// Positions of members.
    symbols: BTreeMap<Vec<u8>, usize>,
}

/// The views, and the name of the default one.
fn read_views(bytes: &[u8]) -> Result<(Vec<ReadView>, Option<Vec<u8>>), Error> {
    let archive = SuperArchive::parse(bytes)?;
    archive.verify()?;
    let views = archive.views().map(|view| {
        let view = view?;
        let layers = view.layers().map(|layer| Ok(layer?.name.to_vec()));
        let members = view.members().map(|member| {
            let member = member?;
            let (name, data) = (member.name().to_vec(), member.data()?.to_vec());
            Ok((name, member.layer(), data))
        });
        let symbols = view.symbols().map(|symbol| {
            let symbol = symbol?;
            Ok((symbol.name.to_vec(), symbol.member.position()))
        });
        Ok(ReadView {
            name: view.name().to_vec(),
            layers: layers.collect::<Result<_, _>>()?,
            members: members.collect::<Result<_, _>>()?,
            symbols: symbols.collect::<Result<_, _>>()?,
        })
    });
    let default = archive.default_view()?.map(|view| view.name().to_vec());
    Ok((views.collect::<Result<_, _>>()?, default))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Symbols of a member.
fn definitions(view: &ReadView, position: usize) -> Vec<Definition<'_>> {
    (view.symbols.iter())
        .filter(|(_, member)| **member == position)
        .map(|(name, _)| Definition {
            name: name.into(),
            binding: Binding::Strong,
        })
        .collect()
}

/// A request for these views, with layers of their own.
fn request<'a>(views: &'a [ReadView], default: Option<&[u8]>) -> Request<'a> {
    let mut request = Request::default();
    for (index, view) in views.iter().enumerate() {
        let first = request.layers.len();
        for (number, name) in view.layers.iter().enumerate() {
            let mut members = Vec::new();
            for (position, (name, layer, data)) in view.members.iter().enumerate() {
                if *layer == number {
                    members.push(Input {
                        name: name.into(),
                        data,
                        symbols: definitions(view, position),
                    });
                }
            }
            request.layers.push(Layer::new(text(name), members));
        }
        request.views.push(View {
            name: text(&view.name),
            layers: (first..request.layers.len()).map(LayerId).collect(),
        });
        if default == Some(&view.name) {
            request.default = Some(ViewId(index));
        }
    }
    request
}

#[test]
fn writer_gives_the_views_of_the_conformance_files() -> Result<()> {
    let mut compared = Vec::new();
    for case in all()? {
        let is_sound = case.answers.ends_with("verify ok\n");
        if !is_sound || NOT_WRITTEN.iter().any(|(name, _)| *name == case.name) {
            continue;
        }
        let failed = |error: Error| format!("{}: {error}", case.name);
        let (views, default) = read_views(&case.bytes).map_err(failed)?;
        let request = request(&views, default.as_deref());
        let plan = Plan::new(&request).map_err(|error| format!("{}: {error:?}", case.name))?;
        let mut bytes = Vec::new();
        plan.write(&mut bytes)?;
        let written = read_views(&bytes).map_err(failed)?;
        assert_eq!(written, (views, default), "{}", case.name);
        compared.push(case.name);
    }
    assert_eq!(compared.len(), 9, "{compared:?}");
    Ok(())
}
