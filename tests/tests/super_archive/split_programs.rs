//! Programs that are linked with split modules do what they do with the whole ones: also where nothing in a module refers
//! to a definition that it needs.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;

/// Compiler and linker of one release.
const CLANG: &str = "/usr/lib/llvm-19/bin/clang++";

/// A program, and what its build says of a module that stays whole.
struct Program {
    name: &'static str,
    flags: &'static [&'static str],
    /// Modules of the archive. `PAD(n)` is a function that fills a member.
    modules: &'static [&'static str],
    main: &'static str,
    expected: &'static str,
    unsplit: &'static str,
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "two modules define one symbol",
        flags: &["-fPIC", "-fsemantic-interposition"],
        modules: &[
            "int f(){return 1;} PAD(1) int a(){return f();} PAD(2)",
            "int f(){return 2;} PAD(3) int b(){return f();} PAD(4)",
        ],
        main: "int b(); int main(){printf(\"%d\\n\", b());}",
        expected: "2\n",
        unsplit: "another member of its layer defines one of its symbols",
    },
    Program {
        name: "start-up code finds a variable by its section",
        flags: &[],
        modules: &[
            "static void start(int, char **, char **){puts(\"start\");}
             __attribute__((used, section(\".init_array\"))) void (*entry)(int, char **, char **) = start;
             PAD(1) void g(){puts(\"g\");} PAD(2)",
        ],
        main: "void g(); int main(){g();}",
        expected: "start\ng\n",
        unsplit: "",
    },
    Program {
        name: "a loop over a section",
        flags: &[],
        modules: &[
            "struct entry {int value;};
             __attribute__((used, section(\"registry\"))) entry first{1}; PAD(1)
             __attribute__((used, section(\"registry\"))) entry second{2}; PAD(2)
             extern entry __start_registry[], __stop_registry[];
             int count(){return __stop_registry - __start_registry;}",
        ],
        main: "int count(); int main(){printf(\"%d\\n\", count());}",
        expected: "2\n",
        unsplit: "",
    },
    Program {
        name: "assembly calls a function",
        flags: &[],
        modules: &[
            "extern \"C\" __attribute__((used)) void callee(){puts(\"callee\");}
             PAD(1) void g(){__asm__ volatile(\"call callee\" ::: \"memory\", \"rax\", \"rcx\", \"rdx\", \"rsi\", \"rdi\", \
             \"r8\", \"r9\", \"r10\", \"r11\");} PAD(2)",
        ],
        main: "void g(); int main(){g();}",
        expected: "callee\n",
        unsplit: "inline assembly that names a definition",
    },
    Program {
        name: "two modules have the same names and constructors",
        flags: &["-Wl,--whole-archive"],
        modules: &[
            "template <class T> void fill(volatile T *p){STORES} template void fill(volatile int *);
             template <class T> void more(volatile T *p){STORES} template void more(volatile int *);
             namespace {struct Say {Say(){puts(\"said\");}} say;}",
            "template <class T> void fill(volatile T *p){STORES} template void fill(volatile int *);
             template <class T> void more(volatile T *p){STORES} template void more(volatile int *);
             namespace {struct Say {Say(){puts(\"said\");}} say;}",
        ],
        main: "int main(){}",
        expected: "said\nsaid\n",
        unsplit: "",
    },
];

/// Debug information of a C++ library, in each member.
const DEBUG_INFORMATION: Program = Program {
    name: "debug information of templates",
    flags: &["-g"],
    modules: &[
        "#include <map>\n#include <regex>\n#include <string>\n
         bool matches(const std::string &text){return std::regex_match(text, std::regex(\"a+\"));}",
    ],
    main: "#include <string>\nbool matches(const std::string &);
           int main(){printf(\"%d\\n\", matches(\"aa\"));}",
    expected: "1\n",
    unsplit: "its members would repeat too much",
};

/// Stores that optimizers keep, of more than a member's length.
fn stores() -> String {
    (0..1200).fold(String::new(), |mut text, number| {
        let _ = write!(text, "p[{number}]={number};");
        text
    })
}

/// Compiles a source to bitcode.
fn compile(directory: &Path, program: &Program, name: &str, text: &str) -> Result<String> {
    let head = "extern \"C\" int puts(const char *), printf(const char *, ...);\n\
                #define PAD(n) void pad##n(volatile int *p){STORES}\n";
    let source = format!("#define STORES {}\n{head}{text}", stores());
    fs::write(directory.join(format!("{name}.cc")), source)?;
    let mut clang = Command::new(CLANG);
    clang
        .current_dir(directory)
        .args(["-O1", "-c", "-emit-llvm"]);
    clang.args(program.flags.iter().filter(|flag| !flag.starts_with("-Wl")));
    let module = format!("{name}.bc");
    succeed(clang.arg(format!("{name}.cc")).arg("-o").arg(&module))?;
    Ok(module)
}

/// Output of a program that is linked with an archive.
fn run_with(directory: &Path, program: &Program, archive: &str) -> Result<String> {
    let mut link = Command::new(CLANG);
    link.current_dir(directory)
        .args(["-flto", "-fuse-ld=lld", "main.bc"]);
    link.args(program.flags)
        .args([archive, "-Wl,--no-whole-archive", "-o", "program"]);
    succeed(&mut link)?;
    Ok(succeed(&mut Command::new(directory.join("program")))?.stdout)
}

#[test]
#[ignore = "needs clang and lld: ./tests/run"]
fn programs_do_the_same_with_members() -> Result<()> {
    do_the_same(&PROGRAMS)
}

#[test]
#[ignore = "needs clang and lld, and a minute: ./tests/run --all"]
fn heavy_modules_whose_members_would_repeat_much_stay_whole() -> Result<()> {
    do_the_same(&[DEBUG_INFORMATION])
}

fn do_the_same(programs: &[Program]) -> Result<()> {
    for program in programs {
        let directory = tempfile::tempdir()?;
        let directory = directory.path();
        compile(directory, program, "main", program.main)?;
        let mut archive = Command::new("llvm-ar-19");
        archive.current_dir(directory).args(["rcs", "whole.a"]);
        for (number, text) in program.modules.iter().enumerate() {
            archive.arg(compile(directory, program, &format!("m{number}"), text)?);
        }
        succeed(&mut archive)?;
        assert_eq!(
            run_with(directory, program, "whole.a")?,
            program.expected,
            "{}",
            program.name
        );

        let mut build = gpustub(&["archive", "build", "--split", "-o", "split.sa", "whole.a"])?;
        let ran = succeed(build.current_dir(directory))?;
        let is_split = !ran.stderr.contains("unsplit-bitcode");
        assert_eq!(
            is_split,
            program.unsplit.is_empty(),
            "{}: {}",
            program.name,
            ran.stderr
        );
        assert!(
            ran.stderr.contains(program.unsplit),
            "{}: {}",
            program.name,
            ran.stderr
        );
        let mut extract = gpustub(&["archive", "extract", "split.sa", "-o", "split.a"])?;
        succeed(extract.args(["--view", "whole"]).current_dir(directory))?;
        assert_eq!(
            run_with(directory, program, "split.a")?,
            program.expected,
            "{}",
            program.name
        );
    }
    Ok(())
}
