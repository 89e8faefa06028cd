use std::fmt::Write;

use super::groups::{self, TextMember};
use super::llvm::Llvm;
use super::prepared::Prepared;
use super::reason::Options;
use crate::env::Env;

const OPTIONS: Options = Options { canonical: true };

/// Each form of definitions, and a function that makes a member of its own for what follows.
const TEXT: &str = r#"; ModuleID = '<stdin>'
source_filename = "a.c"
target datalayout = "e-m:e-i64:64"
target triple = "x86_64-pc-linux-gnu"

%pair = type { i32, %other* }
%other = type opaque
%0 = type { i8 }

$inline = comdat any

@0 = private unnamed_addr constant [2 x i8] c"a\00", align 1
@.str = private unnamed_addr constant [3 x i8] c"\22;\00", align 1
@counter = internal global i32 0, align 4
@"odd name" = dso_local global { i32, [2 x i8] } { i32 1, [2 x i8] c"b\00" }, align 8, !dbg !3
@thread = hidden thread_local(initialexec) local_unnamed_addr global i32 2
@llvm.used = appending global [1 x ptr] [ptr @"odd name"], section "llvm.metadata"
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @construct, ptr null }]
@same = hidden alias i32 (ptr, <4 x float>), ptr @first

define dso_local spir_func i32 @first(ptr byval(%pair) align 8 %0, <4 x float> noundef %x) unnamed_addr #0 !dbg !2 {
  %2 = load i32, ptr @counter, align 4 ; a comment with @counter
  call void @outside(ptr @.str, ptr @0) #1, !dbg !2
  ret i32 %2
}

define linkonce_odr i32 @inline(i32 %0) comdat {
  ret i32 %0
}

define internal void @construct() {
  store i32 7, ptr @counter
  ret void
}

declare void @outside(ptr, ptr) #1

attributes #0 = { nounwind memory(none) "target-cpu"="znver2" "frame-pointer"="all" }
attributes #1 = { "target-features"="+avx" }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!llvm.dbg.cu = !{!4}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{!"clang"}
!2 = distinct !DISubprogram(name: "first", unit: !4)
!3 = !DIGlobalVariableExpression(var: !5)
!4 = distinct !DICompileUnit(language: DW_LANG_C11, globals: !6, nameTableKind: None)
!5 = distinct !DIGlobalVariable(name: "odd name")
!6 = !{!3}
"#;

/// The text with many functions, each of which refers to all external definitions.
fn text() -> String {
    let mut text = TEXT.to_owned();
    for number in 0..4 {
        let _ = writeln!(text, "define void @user{number}() {{");
        for line in 0..600 {
            let _ = writeln!(
                text,
                "  %{line} = call i32 @inline(i32 {line}) ; to fill the member"
            );
        }
        text += "  %last = load i32, ptr @\"odd name\"\n  %a = load i32, ptr @thread\n";
        text += "  %b = call i32 @same(ptr null, <4 x float> zeroinitializer)\n  ret void\n}\n";
    }
    text
}

fn members(text: &str) -> Vec<TextMember> {
    let module = Prepared::read(text, OPTIONS)
        .map_err(|reason| reason.0)
        .unwrap();
    let (members, unsplit) = groups::members(&[module], OPTIONS);
    assert_eq!(unsplit, []);
    members
}

#[test]
fn members_have_declarations_of_what_others_define() {
    let members = members(&text());
    assert_eq!(members.len(), 2);
    let (definitions, users) = (&members[0].text, &members[1].text);
    for line in [
        // Local definitions, aliases and constructors stay with those that they depend on.
        "@counter = internal global i32 0, align 4",
        "@same = hidden alias i32 (ptr, <4 x float>), ptr @first",
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @construct, ptr null }]",
        // Private constants have numbers.
        "  call void @outside(ptr @0, ptr @1), !dbg !1",
        // llvm-link keeps it before anything refers to it.
        "define weak_odr i32 @inline(i32 %0) comdat {",
        "attributes #0 = { nounwind memory(none) \"frame-pointer\"=\"all\" }",
        "declare void @outside(ptr, ptr)",
    ] {
        assert!(definitions.lines().any(|l| l == line), "{line}");
    }
    for line in [
        "@\"odd name\" = external dso_local global { i32, [2 x i8] }, align 8",
        "@thread = external hidden thread_local(initialexec) local_unnamed_addr global i32",
        "declare i32 @inline(i32)",
        "declare hidden spir_func i32 @same(ptr byval(%pair) align 8, <4 x float> noundef) unnamed_addr #0",
        "%pair = type { i32, %other* }",
    ] {
        assert!(users.lines().any(|l| l == line), "{line}");
    }
    for text in [definitions, users] {
        assert!(!text.contains("znver2") && !text.contains("clang") && !text.contains("a comment"));
    }
    assert!(users.contains("@__gpustub_constructors_") && !users.contains("DICompileUnit"));
    assert!(definitions.contains("globals: !"));
}

#[test]
fn equal_members_of_modules_are_one() {
    let (first, second) = (
        text(),
        text()
            .replace("@.str", "@.str.7")
            .replace("znver2", "haswell"),
    );
    let changed = text().replace("i32 65535", "i32 1");
    let read = |text| {
        Prepared::read(text, OPTIONS)
            .map_err(|reason| reason.0)
            .unwrap()
    };
    let (members, _) = groups::members(&[read(&first), read(&second), read(&changed)], OPTIONS);
    let modules = members.iter().map(|member| member.modules.len());
    assert_eq!(modules.sum::<usize>(), 6);
    let of_first = members.iter().filter(|member| member.modules[0].0 == 0);
    assert!(
        of_first.clone().all(|member| member.modules.len() > 1),
        "not shared"
    );
}

#[test]
fn forms_that_are_not_split_have_a_reason() {
    for line in [
        "module asm \"nop\"",
        "^0 = module: (path: \"a\")",
        "unknown",
        "@a = global",
        "!a = !{!DIFile()}",
    ] {
        let text = format!("{TEXT}{line}\n");
        assert!(Prepared::read(&text, OPTIONS).is_err(), "{line}");
    }
}

/// Neither panics nor hangs.
#[test]
fn damaged_texts_are_read_or_rejected() {
    let damages = ["", "\"", "@", "}\n", "(", "é", "#1", "!9", "= "];
    for position in (0..TEXT.len())
        .step_by(5)
        .filter(|position| TEXT.is_char_boundary(*position))
    {
        let damage = damages[position % damages.len()];
        for rest in [
            "",
            &TEXT[position..],
            &TEXT[(position + 3).min(TEXT.len())..],
        ] {
            let text = format!("{}{damage}{rest}", &TEXT[..position]);
            if let Ok(module) = Prepared::read(&text, OPTIONS) {
                groups::members(&[module], OPTIONS);
            }
        }
    }
}

#[test]
fn a_missing_release_of_llvm_is_named() {
    let env = Env::from_iter([("PATH", "")]);
    let error = Llvm::find(&env, 999).unwrap_err();
    assert_eq!(error.code.id, "missing-llvm");
    assert!(
        error
            .help
            .unwrap_or_default()
            .contains("apt install llvm-999")
    );
}
