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
const OTHERS: [(&str, &str); 9] = [
    ("bad-frame", "contents are compressed"),
    ("compressed", "contents are compressed"),
    ("bitcode", SYMBOLS),
    ("closure", SYMBOLS),
    ("elf32", SYMBOLS),
    ("elf32be", SYMBOLS),
    ("elf64", SYMBOLS),
    ("elf64be", SYMBOLS),
    ("sym64", SYMBOLS),
];
const SYMBOLS: &str = "members of equal contents define different symbols";

/// A view as a reader finds it.
#[derive(Debug, PartialEq)]
struct Found {
    name: Vec<u8>,
    layers: Vec<Vec<u8>>,
    /// Names, positions of layers, contents.
    members: Vec<(Vec<u8>, usize, Vec<u8>)>,
    /// Positions of members.
    symbols: BTreeMap<Vec<u8>, usize>,
}

/// The views, and the name of the default one.
fn found(bytes: &[u8]) -> Result<(Vec<Found>, Option<Vec<u8>>), Error> {
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
        Ok(Found {
            name: view.name().to_vec(),
            layers: layers.collect::<Result<_, _>>()?,
            members: members.collect::<Result<_, _>>()?,
            symbols: symbols.collect::<Result<_, _>>()?,
        })
    });
    let default = archive.default_view()?.map(|view| view.name().to_vec());
    Ok((views.collect::<Result<_, _>>()?, default))
}

/// A request for these views, with layers of their own.
fn request<'a>(views: &'a [Found], default: Option<&[u8]>) -> Request<'a> {
    let mut request = Request::default();
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    for (at, view) in views.iter().enumerate() {
        let first = request.layers.len();
        for (number, name) in view.layers.iter().enumerate() {
            let members = view.members.iter().enumerate();
            let members = members.filter(|(_, (_, layer, _))| *layer == number);
            let members = members.map(|(position, (name, _, data))| {
                let symbols = view.symbols.iter().filter(|(_, at)| **at == position);
                let symbols = symbols.map(|(name, _)| Definition {
                    name: name.into(),
                    binding: Binding::Strong,
                });
                Input {
                    name: name.into(),
                    data,
                    symbols: symbols.collect(),
                }
            });
            let layer = Layer::new(text(name), members.collect());
            request.layers.push(layer);
        }
        request.views.push(View {
            name: text(&view.name),
            layers: (first..request.layers.len()).map(LayerId).collect(),
        });
        if default == Some(&view.name) {
            request.default = Some(ViewId(at));
        }
    }
    request
}

#[test]
fn writer_gives_the_views_of_the_conformance_files() -> Result<()> {
    let mut compared = Vec::new();
    for case in all()? {
        let is_sound = case.answers.ends_with("verify ok\n");
        if !is_sound || OTHERS.iter().any(|(name, _)| *name == case.name) {
            continue;
        }
        let failed = |error: Error| format!("{}: {error}", case.name);
        let (views, default) = found(&case.bytes).map_err(failed)?;
        let request = request(&views, default.as_deref());
        let plan = Plan::new(&request).map_err(|error| format!("{}: {error:?}", case.name))?;
        let mut bytes = Vec::new();
        plan.write(&mut bytes)?;
        let written = found(&bytes).map_err(failed)?;
        assert_eq!(written, (views, default), "{}", case.name);
        compared.push(case.name);
    }
    assert_eq!(compared.len(), 9, "{compared:?}");
    Ok(())
}
