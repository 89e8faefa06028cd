//! Arbitrary text in place of clang's output: types or an error, never a panic or endless work.

use std::rc::Rc;
use std::sync::Arc;

use gpustub_cdecl::{DeclaredFunction, Types, check_call};
use proptest::prelude::*;

/// Lines of metadata that refer to each other, and to themselves, at random.
fn line() -> impl Strategy<Value = String> {
    let id = 0..12_u32;
    let number = prop_oneof![Just(0), Just(1), Just(32), Just(u64::MAX), any::<u64>()];
    let name = prop_oneof![Just("a"), Just("b"), Just("reserved"), Just("")];
    (id.clone(), 0..11_u8, id.clone(), id, number, name).prop_map(|(id, kind, a, b, n, name)| {
        let composite = |tag| format!("!DICompositeType(tag: {tag}, name: \"{name}\", size: {n}, elements: !{a}, baseType: !{b})");
        let node = match kind {
            0 => format!("!DIBasicType(name: \"{name}\", size: {n}, encoding: DW_ATE_float)"),
            1 => format!("!DISubroutineType(types: !{a})"),
            2 => format!("!DIDerivedType(tag: DW_TAG_pointer_type, baseType: !{a}, size: 64)"),
            3 => format!("!DIDerivedType(tag: DW_TAG_typedef, baseType: !{a})"),
            4 => format!("!DIDerivedType(tag: DW_TAG_member, name: \"{name}\", baseType: !{a}, size: {n}, offset: {n})"),
            5 => composite("DW_TAG_structure_type"),
            6 => composite("DW_TAG_array_type"),
            7 => composite("DW_TAG_enumeration_type"),
            8 => format!("!DIGlobalVariable(name: \"{name}\", type: !{a})"),
            9 => format!("!{{!{a}, !{b}, null}}"),
            _ => format!("!{name}({n}, \"(, {{"),
        };
        format!("!{id} = {node}")
    })
}

/// Reads a module, and compares each of its function pointers with every other.
fn check(module: &str) -> usize {
    let Ok(types) = Types::read(module) else {
        return 0;
    };
    let types = Rc::new(types);
    let declared = |function: u32| DeclaredFunction {
        name: String::new(),
        types: Rc::clone(&types),
        function,
        prototype: Rc::default(),
        untyped_pointees: [("x".to_owned(), function)].into(),
        rules: Arc::default(),
    };
    for a in 0..12 {
        for b in 0..12 {
            let _ = check_call(&declared(a), &declared(b));
        }
        types.is_constant(a);
        types.names(a).count();
    }
    1
}

#[test]
fn a_cycle_of_typedefs_terminates() {
    let line =
        |kind: &str| format!("!0 = {kind}\n!1 = !{{!0, !0}}\n!2 = !DISubroutineType(types: !1)\n");
    for kind in [
        "!DIDerivedType(tag: DW_TAG_typedef, baseType: !0)",
        "!DIDerivedType(tag: DW_TAG_pointer_type, baseType: !0)",
        "!DICompositeType(tag: DW_TAG_array_type, baseType: !0, size: 8)",
    ] {
        assert_eq!(check(&line(kind)), 1, "{kind}");
    }
    let inside = "!0 = !DICompositeType(tag: DW_TAG_structure_type, size: 8, elements: !3)\n\
                  !1 = !{!0, !0}\n!2 = !DISubroutineType(types: !1)\n!3 = !{!4, !4}\n\
                  !4 = !DIDerivedType(tag: DW_TAG_member, name: \"a\", baseType: !0, size: 8)\n";
    assert_eq!(check(inside), 1);
}

proptest! {
    #[test]
    fn metadata_that_refers_anywhere(lines in proptest::collection::vec(line(), 1..24)) {
        check(&lines.join("\n"));
    }

    #[test]
    fn any_text(text in "(![0-9]{1,2} = (distinct )?![A-Za-z]*[({][^\n]*[)}]\n|[^\n]*\n){0,8}") {
        check(&text);
    }
}
