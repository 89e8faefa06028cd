//! User-defined libraries with data, in lists that a user edited, and their later releases.

use std::path::Path;

use super::own::{library, project, read};
use super::{ends, write};

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
