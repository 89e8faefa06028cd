//! The pages of `docs/` match the tables that they are generated from.

use std::fs;
use std::path::Path;

use gpustub_reference::pages;

/// `BLESS=1 cargo test -p gpustub-reference` writes the pages, as `cargo xtask reference` does.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn the_reference_is_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let bless = std::env::var_os("BLESS").is_some();
    for (name, text) in pages() {
        let path = docs.join(name);
        if bless {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/{name} is out of date: `cargo xtask reference`"
        );
    }
}
