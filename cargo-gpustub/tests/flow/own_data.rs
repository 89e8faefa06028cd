//! User-defined libraries with data, in lists that a user edited, and their later releases.

use std::path::Path;
use std::process::Command;

use super::own::{library, output, project, read};
use super::{cc, ends, write};

/// Data of the first release is an `int`, that of the next a `long`. Neither has a copy of the thread-local data.
fn release(directory: &Path, soname: &str, declared: &str) {
    let code = format!(
        "{declared} acmeLevel = 3; __thread int acmeThread;\nint acmeOpen(void) {{ return 5; }}\n\
         const char *acmeName(void) {{ return \"acme\"; }}\n"
    );
    library(directory, soname, &code);
}

fn add(file: &str) -> [&str; 4] {
    ["add", "acme", "--from", file]
}

const LIST: &str = "symbols/acme.symbols";
const LINE: &str = "acmeLevel kind=object size=4 copied\n";

/// A package with the list of `libacme.so.3`, to which a user added the data.
fn project_with_data() -> (tempfile::TempDir, std::path::PathBuf) {
    let (guard, directory) = project();
    release(&directory, "libacme.so.3", "int");
    let (_, err) = ends(0, &directory, &add("libacme.so.3"));
    let help = "for data that it only reads, add to the symbol list: `acmeLevel kind=object size=4 copied`\n";
    assert!(err.contains(help), "{err}");
    let list = read(&directory, LIST)
        .replace("acmeName", "acmeName returns=string")
        .replace("acmeOpen", "acmeOpen updates returns=status");
    write(
        &directory,
        LIST,
        &(list + "# Read by the program.\n" + LINE),
    );
    (guard, directory)
}

#[test]
fn data_of_a_list_stays() {
    let (_guard, directory) = project_with_data();
    let (_, err) = ends(0, &directory, &add("libacme.so.3"));
    assert!(err.contains("gets no stub: acmeThread\n"), "{err}");
    assert!(!err.contains("missing-load-name"), "{err}");
    let list = read(&directory, LIST);
    let lines = format!(
        "\n# Read by the program.\n{LINE}acmeName returns=string\nacmeOpen updates returns=status\n"
    );
    assert!(list.ends_with(&lines), "{list}");

    // The next release has another size, and a name that programs do not load yet.
    release(&directory, "libacme.so.4", "long");
    let table = read(&directory, "GpuStub.toml");
    let (_, err) = ends(0, &directory, &add("libacme.so.4"));
    for part in [
        "warning[missing-load-name]: `libacme.so.4`, the name of `libacme.so.4`, is not among the load names of `acme`: \
         programs load libacme.so.3",
        "GpuStub.toml:4:25",
        "`linux = [\"libacme.so.4\", \"libacme.so.3\"]`",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert_eq!(read(&directory, "GpuStub.toml"), table);
    let list = read(&directory, LIST);
    assert!(list.contains(&lines.replace("size=4", "size=8")), "{list}");
}

const NAMES: &str = "#include <stdio.h>\nint acmeOpen(void); const char *acmeName(void);\n\
    int main(void) { printf(\"%d %s\\n\", acmeOpen(), acmeName()); }\n";
const READS: &str = "#include <stdio.h>\nint acmeOpen(void); extern int acmeLevel;\n\
    int main(void) { int before = *(volatile int *)&acmeLevel, opened = acmeOpen();\n\
    printf(\"%d %d %d\\n\", before, opened, *(volatile int *)&acmeLevel); }\n";

/// Output of a program, and its report.
fn run(directory: &Path, program: &str, path: &str) -> (String, String) {
    let mut command = Command::new(directory.join(program));
    let command = command
        .env("GPUSTUB_ACME_PATH", path)
        .env("GPUSTUB_LOG", "1");
    let output = command.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{out}{err}");
    (out, err)
}

#[test]
fn reports_count_data_apart_from_functions() {
    let (_guard, directory) = project_with_data();
    assert_eq!(output(&directory, "cc", READS, "acme", "off"), "0 -1 0\n");
    let library = directory.join("libacme.so.3");
    let (out, report) = run(&directory, "program", library.to_str().unwrap());
    assert_eq!(out, "0 5 3\n");
    let counts = ": 1 functions bound, 0 refused, 0 missing, copies of data: 1\n";
    assert!(report.ends_with(counts), "{report}");
    let (_, report) = run(&directory, "program", "libacme.so.3");
    let reason = "unavailable: GPUSTUB_ACME_PATH is not an absolute path: libacme.so.3\n";
    assert!(report.contains(reason), "{report}");
}

/// `repair --library` uses the data of a list as a build does.
#[test]
fn repaired_programs_read_data_of_a_list() {
    let (_guard, directory) = project_with_data();
    let library = directory.join("libacme.so.3");
    let library = library.to_str().unwrap();
    let missing = "acme is not available; GPUSTUB_LOG=1 shows why";
    for (name, code, plan, without, with) in [
        (
            "names",
            NAMES,
            ": 2 functions acme\n",
            format!("-1 {missing}\n"),
            "5 acme\n",
        ),
        (
            "reads",
            READS,
            ": 1 function acme, 1 copy of data\n",
            "0 -1 0\n".to_owned(),
            "0 5 3\n",
        ),
    ] {
        write(&directory, "main.c", code);
        cc(&directory, &["main.c", "-o", name, library]);
        let repair = [
            "repair",
            name,
            "--library",
            "acme",
            "--out-dir",
            "out",
            "-v",
        ];
        let (_, err) = ends(0, &directory, &repair);
        assert!(err.contains(plan), "{err}");
        let repaired = format!("out/{name}");
        assert_eq!(run(&directory, &repaired, "off").0, without);
        assert_eq!(run(&directory, &repaired, library).0, with);
    }
    // Other data is refused by the prefix of its functions.
    let code = "extern __thread int acmeThread; int main(void) { return acmeThread; }\n";
    write(&directory, "main.c", code);
    cc(&directory, &["main.c", "-o", "thread", library]);
    let repair = ["repair", "thread", "--library", "acme", "--out-dir", "out"];
    let (_, err) = ends(1, &directory, &repair);
    assert!(
        err.contains("imports the thread-local data `acmeThread`"),
        "{err}"
    );
}

/// The first run of a newcomer has no `--library`. The second replaces what it copied.
#[test]
fn a_copy_is_replaced() {
    let (_guard, directory) = project_with_data();
    write(&directory, "main.c", NAMES);
    std::fs::create_dir(directory.join("tree")).unwrap();
    cc(&directory, &["main.c", "-o", "app", "libacme.so.3"]);
    cc(&directory, &["main.c", "-o", "tree/app", "libacme.so.3"]);
    for (input, hint) in [("app", true), ("tree", false)] {
        let repair = ["repair", input, "--out-dir", "out"];
        let (_, err) = ends(0, &directory, &repair);
        let copied = format!("Copied out/{input}: no GPU library to replace");
        assert!(err.contains(&copied), "{err}");
        let note = "gpustub does not know libacme.so.3: `--library NAME=path/to/libacme.so.3`";
        assert_eq!(err.contains(note), hint, "{err}");
        let with_library = [&repair[..], &["--library", "acme"]].concat();
        ends(0, &directory, &with_library);
    }
    assert!(run(&directory, "out/tree/app", "off").0.starts_with("-1 "));
}
