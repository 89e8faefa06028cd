//! Super-archives are written, and read again.

#[cfg(not(miri))]
mod changed_inputs;
#[path = "../../../image/tests/support/damage.rs"]
mod damage;
mod hostile;
mod requests;
mod search;
#[cfg(not(miri))]
mod tools;

use std::borrow::Cow;

use gpustub_archive::SuperArchive;
use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId, WriteError,
};

fn member<'d>(name: &'d str, data: &'d str, symbols: &[&'d str]) -> Input<'d> {
    Input {
        name: Cow::Borrowed(name.as_bytes()),
        data: data.as_bytes(),
        symbols: symbols
            .iter()
            .map(|symbol| Definition {
                name: Cow::Borrowed(symbol.trim_start_matches('~').as_bytes()),
                binding: Binding::weak_if(symbol.starts_with('~')),
            })
            .collect(),
    }
}

fn layer<'d>(name: &str, members: Vec<Input<'d>>) -> Layer<'d> {
    Layer::new(name, members)
}

fn view(name: &str, layers: &[usize]) -> View {
    View {
        name: name.to_owned(),
        layers: layers.iter().copied().map(LayerId).collect(),
    }
}

#[test]
fn written_archives_are_read() {
    for default in [None, Some(0), Some(1)] {
        let request = Request {
            layers: vec![
                layer("gpu1", vec![member("cos1.o", "one", &["cos"])]),
                layer(
                    "gpu2",
                    vec![
                        member("cos2.o", "two!", &["cos"]),
                        member("a very long name.o", "one", &[]),
                    ],
                ),
                layer(
                    "common",
                    vec![
                        member("cos.o", "", &["cos"]),
                        member("cos16.o", "wide", &["cos16", "cos8"]),
                    ],
                ),
            ],
            views: vec![view("g1", &[0, 2]), view("g2", &[1, 0, 2])],
            default: default.map(ViewId),
        };
        let plan = Plan::new(&request).unwrap();
        let mut bytes = Vec::new();
        plan.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, plan.size());
        let archive = SuperArchive::parse(&bytes).unwrap();
        archive.verify().unwrap();
        for (view, symbol, data) in [
            ("g1", "cos", Some("one")),
            ("g2", "cos", Some("two!")),
            ("g1", "cos16", Some("wide")),
            ("g2", "cos8", Some("wide")),
            ("g2", "sin", None),
        ] {
            let view = archive.view(view).unwrap().unwrap();
            let member = view.find_symbol(symbol).unwrap();
            assert_eq!(
                member.map(|member| member.data().unwrap()),
                data.map(str::as_bytes),
                "{symbol} {default:?}"
            );
        }
        assert!(archive.view("g3").unwrap().is_none());
    }
}

#[test]
fn indices_of_nothing_are_refused() {
    let layers = vec![layer("a", vec![member("a.o", "a", &["a"])])];
    let request = |layer: usize, default: usize| Request {
        layers: layers.clone(),
        views: vec![view("v", &[0]), view("w", &[layer])],
        default: Some(ViewId(default)),
    };
    assert!(Plan::new(&request(0, 1)).is_ok());
    let refused = |request: &Request<'_>| match Plan::new(request).unwrap_err() {
        WriteError::UnknownLayer { view, layer } => (view, Some(layer)),
        WriteError::UnknownDefaultView(view) => (view, None),
        error => panic!("{error:?}"),
    };
    assert_eq!(refused(&request(1, 0)), (ViewId(1), Some(LayerId(1))));
    assert_eq!(refused(&request(0, 2)), (ViewId(2), None));
}

/// A symbol has no limit but that of the tables, however many views share it.
#[test]
fn long_names_are_shared_by_many_views() {
    let names: Vec<String> = (0..500).map(|view| view.to_string()).collect();
    let long = "n".repeat(70_000);
    let request = Request {
        layers: vec![layer("a", vec![member("a.o", "a", &[&long, "short"])])],
        views: names.iter().map(|name| view(name, &[0])).collect(),
        default: None,
    };
    let mut bytes = Vec::new();
    Plan::new(&request).unwrap().write(&mut bytes).unwrap();
    assert!(bytes.len() < 120_000, "{}", bytes.len());
    let archive = SuperArchive::parse(&bytes).unwrap();
    archive.verify().unwrap();
    for view in archive.views() {
        assert!(view.unwrap().find_symbol(&long).unwrap().is_some());
    }
}
