//! Pictures of `docs/images`, and the pages that show them.

use std::fs;

use gpustub_tests::{Result, repository};

#[test]
fn each_picture_is_on_a_page() -> Result<()> {
    let root = repository();
    let mut pages = fs::read_to_string(root.join("README.md"))?;
    pages += &fs::read_to_string(root.join("BENCHMARKS.md"))?;
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages += &fs::read_to_string(path)?;
        }
    }
    for entry in fs::read_dir(root.join("docs/images"))? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_source = name.ends_with(".dot");
        assert!(
            is_source || pages.contains(&format!("images/{name})")),
            "no page shows {name}"
        );
    }
    Ok(())
}
