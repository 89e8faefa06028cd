//! Names that a stub would take from the program itself.

use std::sync::OnceLock;

use gpustub_manifests::C_RUNTIME_NAMES;

/// Owner of a reserved name.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The C or C++ run time: the program's own calls would reach the stubbed library.
    Runtime,
    /// Each program, its linker, or gpustub's run time: the stub would not link.
    Image,
}

/// Names of the linker and of the C start-up files (gABI, "Dynamic Section"; x86-64 psABI 5.2).
const OF_IMAGE: [&str; 4] = ["_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "_start", "main"];

/// Symbols that linkers and start-up files define in every image: no part of a library's interface, though
/// some linkers export them, and a stub would clash with the program's.
const OF_EVERY_IMAGE: [&str; 6] = ["__bss_start", "_edata", "_end", "_etext", "_fini", "_init"];

/// Whether linkers and start-up files define the symbol in every image.
pub fn is_of_every_image(name: &str) -> bool {
    OF_EVERY_IMAGE.contains(&name)
}

/// Owner of a name; `None`: a library's function may have it.
pub fn owner(name: &str) -> Option<Owner> {
    let is_ours = name.starts_with("gpustub_") || name.starts_with("gpustub1_");
    if is_ours || OF_IMAGE.contains(&name) {
        return Some(Owner::Image);
    }
    // No entry begins with another one that ends with `*`, so the nearest entry below is the only candidate.
    let names = names();
    let after = names.partition_point(|entry| entry.trim_end_matches('*') <= name);
    let nearest = names.get(after.checked_sub(1)?)?;
    let covers_name = match nearest.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *nearest == name,
    };
    covers_name.then_some(Owner::Runtime)
}

fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        C_RUNTIME_NAMES
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;

    #[test]
    fn names_have_owners() {
        for (name, expected) in [
            ("malloc", Some(Owner::Runtime)),
            ("open64", Some(Owner::Runtime)),
            ("errno", Some(Owner::Runtime)),
            ("_Znwm", Some(Owner::Runtime)),
            ("_ZNSt13runtime_errorC1EPKc", Some(Owner::Runtime)),
            ("_ZGTtNKSt11logic_error4whatEv", Some(Owner::Runtime)),
            ("__cxa_throw", Some(Owner::Runtime)),
            ("_Unwind_Resume", Some(Owner::Runtime)),
            ("__udivti3", Some(Owner::Runtime)),
            ("main", Some(Owner::Image)),
            ("_start", Some(Owner::Image)),
            ("gpustub_load", Some(Owner::Image)),
            ("gpustub1_enter", Some(Owner::Image)),
            // Plain words that one C library has.
            ("error", None),
            ("gamma", None),
            ("login", None),
            ("mallocate", None),
            ("_ZN4acme4openEv", None),
            ("__cudaRegisterFunction", None),
            ("", None),
        ] {
            assert_eq!(owner(name), expected, "{name}");
        }
    }

    /// The precondition of the search.
    #[test]
    fn entries_are_sorted_and_none_covers_another() {
        let bare: Vec<&str> = names()
            .iter()
            .map(|entry| entry.trim_end_matches('*'))
            .collect();
        assert!(bare.is_sorted_by(|a, b| a < b));
        for pair in names().windows(2) {
            if let Some(prefix) = pair[0].strip_suffix('*') {
                assert!(!pair[1].starts_with(prefix), "{pair:?}");
            }
        }
        for name in bare {
            assert_eq!(owner(name), Some(Owner::Runtime), "{name}");
        }
    }

    #[test]
    fn no_function_of_a_shipped_library_is_reserved() {
        for library in Library::builtin_ids().filter_map(Library::builtin) {
            for symbol in library.symbols.functions() {
                assert_eq!(owner(&symbol.name), None, "{}", library.id);
            }
        }
    }
}
