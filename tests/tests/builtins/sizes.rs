//! Super-archives of many similar views are hardly larger than their members, and have each symbol of each view.

use std::collections::HashMap;
use std::fs;

use gpustub_archive::SuperArchive;
use gpustub_superarchive::{Layer, LayerId, Plan, Request, Source, View, ViewId};
use gpustub_tests::Result;
use gpustub_tests::components::component;

#[test]
#[ignore = "needs libclc-19 and a minute: ./tests/run --all"]
fn heavy_libclc_of_all_families_takes_hardly_more_than_its_members() -> Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(component("libclc-19")?)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".bc") && name.matches('-').count() > 1 {
            paths.push(path);
        }
    }
    paths.sort();
    let sources = paths
        .iter()
        .map(|path| Source::open(path).map_err(|e| e.to_string()));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let layers = sources
        .iter()
        .map(Source::layer)
        .collect::<Result<Vec<Layer<'_>>, _>>();
    let layers = layers.map_err(|e| e.to_string())?;
    let views = layers.iter().enumerate().map(|(at, layer)| View {
        name: layer.name.clone(),
        layers: vec![LayerId(at)],
    });
    let views: Vec<View> = views.collect();
    assert!(views.len() > 50, "{}", views.len());
    for default in [None, Some(ViewId(0))] {
        let request = Request {
            layers: layers.clone(),
            views: views.clone(),
            default,
        };
        let plan = Plan::new(&request).map_err(|e| format!("{e:?}"))?;
        let (file, members) = (plan.size(), plan.contents_bytes());
        assert!(file * 100 <= members * 103, "{file} of {members}");
        let mut bytes = Vec::new();
        plan.write(&mut bytes)?;
        let failed = |e: gpustub_archive::Error| e.to_string();
        let archive = SuperArchive::parse(&bytes).map_err(failed)?;
        archive.verify().map_err(failed)?;
        for (view, layer) in archive.views().zip(&layers) {
            let view = view.map_err(failed)?;
            let mut expected = HashMap::new();
            for member in &layer.members {
                for symbol in &member.symbols {
                    expected.entry(&*symbol.name).or_insert(&member.name);
                }
            }
            for (symbol, name) in &expected {
                let found = view.find_symbol(symbol).map_err(failed)?;
                assert_eq!(found.map(|member| member.name()), Some(&***name));
            }
            assert_eq!(view.symbol_count(), expected.len());
        }
    }
    Ok(())
}
