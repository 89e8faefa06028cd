//! Canonical bitcode as LLVM reads it: the original without the dropped parts.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_superarchive::{CanonicalBitcode, Source};
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};

use crate::cases::RELEASES;

const SOURCE: &str = "
struct A { virtual int v(int); int x; };
template <class T> inline T twice(T a) { static T last; T l = last; last = a; return a + a + l; }
inline int in(int x) { return x ? twice(x) : twice(3.0f); }
int A::v(int y) { return in(y) + x; }
__attribute__((weak)) int w(int a) { return in(a); }
static int table[4] = {1, 2, 3, 4};
int call(A *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a->v(i) + table[i & 3]; return s; }
";

/// A function whose only attributes are dropped ones, and one with other attributes.
const TEXT: &str = r#"
source_filename = "of text"
declare void @other() #1
define void @f() #0 { call void @other() #0 ret void }
define void @g() #2 { ret void }
attributes #0 = { "target-cpu"="a" "tune-cpu"="b" }
attributes #1 = { "target-cpu"="c" "target-cpus"="d" }
attributes #2 = { nounwind "target-features"="+e,-f" }
!llvm.ident = !{!0, !0}
!llvm.other = !{!0}
!0 = !{!"of text"}
"#;

/// Text beside `llvm.ident`, and whether modules of two compilers become equal: unless other
/// metadata has the text, or may have it.
const BESIDE: [(&str, bool); 6] = [
    ("", true),
    ("!llvm.other = !{!1}\n!1 = !{!\"another text\"}", true),
    ("!llvm.other = !{!0}", false),
    ("define void @f() !other !0 { ret void }", false),
    ("define void @f() { ret void, !other !0 }", false),
    (
        "declare void @llvm.experimental.noalias.scope.decl(metadata)",
        false,
    ),
];

/// Targets with two processors each, as arguments to clang.
const TARGETS: [(&str, [&[&str]; 2]); 3] = [
    ("amdgcn-amd-amdhsa", [&["-mcpu=gfx900"], &["-mcpu=gfx90a"]]),
    (
        "nvptx64-nvidia-cuda",
        [
            &["-Xclang", "-target-cpu", "-Xclang", "sm_70"],
            &["-Xclang", "-target-cpu", "-Xclang", "sm_80"],
        ],
    ),
    ("x86_64-linux-gnu", [&[], &["-march=znver2"]]),
];

/// Text of a module without the parts that canonical forms drop.
fn without_dropped_parts(text: &str) -> Result<String> {
    let (mut kept, mut empty) = (String::new(), Vec::new());
    for line in text.lines() {
        let dropped_lines = ["; ModuleID", "source_filename", "!llvm.ident ="];
        if dropped_lines.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let mut line = line.to_owned();
        if line.starts_with("attributes #") {
            for name in ["target-cpu", "target-features", "tune-cpu"] {
                let start = format!(" \"{name}\"=\"");
                if let Some((before, rest)) = line.split_once(&start) {
                    let (_, after) = rest.split_once('"').ok_or("a text without an end")?;
                    line = format!("{before}{after}");
                }
            }
        }
        if let Some(number) = line.strip_suffix(" = { }") {
            empty.push(number.replace("attributes", ""));
            continue;
        }
        // The order of predecessors is not a property of the module.
        let line = line.split("; preds = ").next().unwrap_or_default();
        writeln!(kept, "{}", line.trim_end())?;
    }
    for number in empty {
        for end in [" ", "\n"] {
            kept = kept.replace(&format!("{number}{end}"), end);
        }
    }
    Ok(kept)
}

fn text_of(file: &Path, release: &str) -> Result<String> {
    let mut tool = Command::new(format!("llvm-dis-{release}"));
    Ok(succeed(tool.arg(file).args(["-o", "-"]))?.stdout)
}

/// Canonical form of a module, checked by LLVM to be the module without the dropped parts.
fn canonical_form(dir: &Path, module: &Path, release: &str) -> Result<Vec<u8>> {
    let source = Source::open(module).map_err(|e| e.to_string())?;
    let layers = vec![source.layer().map_err(|e| e.to_string())?];
    let canonical = CanonicalBitcode::from_layers(&layers);
    assert_eq!(canonical.unchanged, []);
    let layers = canonical.apply(layers);
    let again = CanonicalBitcode::from_layers(&layers);
    assert_eq!(again.apply(layers.clone()), layers, "canonical already");
    let bytes = layers[0].members[0].data.to_vec();

    let file = dir.join("canonical.bc");
    fs::write(&file, &bytes)?;
    let text = text_of(&file, release)?;
    assert!(!text.contains("source_filename"), "{text}");
    let edited = dir.join("edited.ll");
    fs::write(&edited, without_dropped_parts(&text_of(module, release)?)?)?;
    // LLVM numbers equal attributes once.
    let assembled = dir.join("edited.bc");
    succeed(
        Command::new(format!("llvm-as-{release}"))
            .arg(&edited)
            .arg("-o")
            .arg(&assembled),
    )?;
    let expected = without_dropped_parts(&text_of(&assembled, release)?)?;
    let mut canonical_text = String::new();
    for line in text.lines().filter(|l| !l.starts_with("; ModuleID")) {
        let line = line.split("; preds = ").next().unwrap_or_default();
        writeln!(canonical_text, "{}", line.trim_end())?;
    }
    assert_eq!(
        canonical_text,
        expected,
        "{} with LLVM {release}",
        module.display()
    );
    let mut verify = Command::new(format!("opt-{release}"));
    let ran = run(verify
        .args(["-passes=verify", "-disable-output"])
        .arg(&file))?
    .success()?;
    assert_eq!(ran.stderr, "");
    Ok(bytes)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_llvm_reads_canonical_bitcode_as_the_original_module() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let source = dir.join("a.cc");
    fs::write(&source, SOURCE)?;
    let module = dir.join("module.bc");
    for release in RELEASES {
        for (target, processors) in TARGETS {
            // With optimization, code for two processors differs in more than these attributes.
            for (flags, alike) in [
                (&["-O0"][..], true),
                (&["-O0", "-g"], true),
                (&["-O2", "-g"], false),
            ] {
                let mut forms = Vec::new();
                for processor in processors {
                    let mut clang = Command::new(format!("clang-{release}"));
                    clang.args(["-c", "-emit-llvm", "-nogpulib", "-w", "-target", target]);
                    clang.args(["-fno-exceptions", "-fno-threadsafe-statics"]);
                    clang.args(flags).args(processor);
                    succeed(clang.arg(&source).arg("-o").arg(&module))?;
                    forms.push(canonical_form(dir, &module, release)?);
                }
                assert!(
                    !alike || forms[0] == forms[1],
                    "{target} {flags:?} {release}"
                );
            }
        }
        let text = dir.join("text.ll");
        fs::write(&text, TEXT)?;
        let mut tool = Command::new(format!("llvm-as-{release}"));
        succeed(tool.arg(&text).arg("-o").arg(&module))?;
        canonical_form(dir, &module, release)?;
        for (beside, alike) in BESIDE {
            let mut forms = Vec::new();
            // The lengths of the texts also differ in length.
            for compiler in ["clang", "clang version 19.1.7 (of another who builds it)"] {
                let ident = "!llvm.ident = !{!0, !0}\n!0 = !{!\"";
                fs::write(&text, format!("{ident}{compiler}\"}}\n{beside}\n"))?;
                let mut tool = Command::new(format!("llvm-as-{release}"));
                succeed(tool.arg(&text).arg("-o").arg(&module))?;
                forms.push(canonical_form(dir, &module, release)?);
            }
            assert_eq!(forms[0] == forms[1], alike, "{beside} with LLVM {release}");
        }
    }
    Ok(())
}
