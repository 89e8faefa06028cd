//! User-defined libraries with headers: results of functions.

use std::fs;
use std::process::Command;

use super::own::{library, output, project, read};
use super::{ends, write};

const API: &str = "\
#include <stddef.h>
typedef enum { ACME_SUCCESS, ACME_BUSY, ACME_NOT_INITIALIZED = 7 } acmeStatus;
typedef enum { ACME_FAST, ACME_SLOW } acmeMode;
typedef struct acme *acme;
struct three { long a, b, c; };
struct two { long a, b; };
struct point { double x, y, z; };
struct matrix { float m[8]; };
typedef struct { acmeStatus status; int detail; } acmeError;
acmeStatus acmeOpen(acme *out);
acmeError acmeCheck(acme handle);
acmeMode acmeGetMode(void);
int acmeCount(void);
const char *acmeVersion(void);
char *acmeDuplicate(void);
acme acmeCurrent(void);
struct two acmeTwo(void);
struct three acmeThree(int scale);
struct point acmePoint(void);
struct matrix acmeMatrix(void);
double acmeTime(void);
long double acmePrecise(void);
struct precise { long double x; } acmeBoxed(void);
void acmeClose(acme handle);
";

/// The functions of `API`, which return what no missing library returns, and one that it does not declare.
const IMPLEMENTATION: &str = "\
#include \"acme.h\"
acmeStatus acmeOpen(acme *out) { return ACME_BUSY; }
acmeError acmeCheck(acme handle) { return (acmeError){ ACME_BUSY, 5 }; }
acmeMode acmeGetMode(void) { return ACME_SLOW; }
int acmeCount(void) { return 3; }
const char *acmeVersion(void) { return \"3.1\"; }
char *acmeDuplicate(void) { return (char *)\"x\"; }
acme acmeCurrent(void) { return (acme)acmeCurrent; }
struct two acmeTwo(void) { return (struct two){ 1, 2 }; }
struct three acmeThree(int scale) { return (struct three){ 1, 2, scale }; }
struct point acmePoint(void) { return (struct point){ 1, 2, 3 }; }
struct matrix acmeMatrix(void) { return (struct matrix){ { 1, 2 } }; }
double acmeTime(void) { return 1; }
long double acmePrecise(void) { return 1; }
struct precise acmeBoxed(void) { return (struct precise){ 1 }; }
void acmeClose(acme handle) { }
int acmeInternal(void) { return 9; }
";

const CALLER: &str = "\
#include <stdio.h>
#include \"acme.h\"
int main(void) {
    acme handle;
    struct three three = acmeThree(4);
    struct point point = acmePoint();
    struct matrix matrix = acmeMatrix();
    struct two two = acmeTwo();
    acmeError error = acmeCheck(NULL);
    char *copy = acmeDuplicate();
    acmeClose(NULL);
    printf(\"%d %d %d %d %d\\n\", acmeOpen(&handle), error.status, error.detail, acmeGetMode(), acmeCount());
    printf(\"%s %s %d\\n\", acmeVersion(), copy ? copy : \"-\", acmeCurrent() != NULL);
    printf(\"%ld %ld %ld %ld %ld\\n\", two.a, two.b, three.a, three.b, three.c);
    printf(\"%g %g %g %g %g %g\\n\", point.x, point.y, point.z, matrix.m[0], matrix.m[1], acmeTime());
}
";

#[test]
#[ignore = "needs clang (tests/run)"]
fn headers_give_the_return_types() {
    let (_guard, directory) = project();
    write(&directory, "acme.h", API);
    library(&directory, "libacme.so.3", IMPLEMENTATION);
    let add: Vec<&str> = "add acme --from libacme.so.3 --headers acme.h"
        .split(' ')
        .collect();
    let (_, err) = ends(0, &directory, &add);
    let unknown = "the build refuses functions of `acme` without `returns=` (3): acmeBoxed, acmeInternal, \
                   acmePrecise";
    assert!(err.contains(unknown), "{err}");
    let list = read(&directory, "symbols/acme.symbols");
    let functions: Vec<&str> = list.lines().filter(|line| !line.starts_with('@')).collect();
    assert_eq!(
        functions,
        [
            "acmeBoxed",
            "acmeCheck returns=status",
            "acmeClose returns=void",
            "acmeCount returns=null",
            "acmeCurrent returns=null",
            "acmeDuplicate returns=null",
            "acmeGetMode returns=null",
            "acmeInternal",
            "acmeMatrix returns=zeroed-struct:32",
            "acmeOpen returns=status",
            "acmePoint returns=zeroed-hfa:24",
            "acmePrecise",
            "acmeThree returns=zeroed-struct:24",
            "acmeTime returns=null",
            "acmeTwo returns=zeroed-struct:16",
            "acmeVersion returns=string",
        ]
    );
    let table = read(&directory, "GpuStub.toml");
    assert!(
        table.ends_with("\nfallback = { status = 7 } # ACME_NOT_INITIALIZED\n"),
        "{table}"
    );

    let list = ["acmeBoxed", "acmeInternal", "acmePrecise"]
        .iter()
        .fold(list, |list, name| {
            list.replace(&format!("{name}\n"), &format!("{name} returns=null\n"))
        });
    write(&directory, "symbols/acme.symbols", &list);
    let missing = output(&directory, "cc", CALLER, "acme", "off");
    assert_eq!(
        missing,
        "7 7 0 0 0\nacme is not available; GPUSTUB_LOG=1 shows why - 0\n0 0 0 0 0\n0 0 0 0 0 0\n"
    );
    let path = directory.join("libacme.so.3");
    let present = output(&directory, "cc", CALLER, "acme", path.to_str().unwrap());
    assert_eq!(present, "1 1 5 1 3\n3.1 x 1\n1 2 1 2 4\n1 2 3 1 2 1\n");

    // A person's class stays.
    let edited = list.replace("acmeCount returns=null", "acmeCount returns=value:-1");
    write(&directory, "symbols/acme.symbols", &edited);
    let (_, err) = ends(0, &directory, &add);
    assert!(
        err.contains("which the headers contradict: acmeCount"),
        "{err}"
    );
    assert_eq!(read(&directory, "symbols/acme.symbols"), edited);
}

/// Sizes and declarations are those of Windows: `long` has 32 bits, and headers include windows.h.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_headers_of_a_dll_are_read_for_windows() {
    let header = "#include <windows.h>\n#define ACME_API __declspec(dllimport)\n#define acmePair acmePair_v2\n\
        #define ACME_SLASHES _VARIANT_BOOL\n\
        typedef enum { ACME_SUCCESS, ACME_NOT_INITIALIZED = 7 } acmeStatus;\n\
        typedef struct { long a, b, c; } acmeTriple;\n\
        ACME_API acmeStatus WINAPI acmeOpen(HANDLE *);\nACME_API acmeTriple acmePair(DWORD);\n\
        ACME_API const char *acmeName(void);\n";
    let source = "#define ACME_SOURCE\n#include \"acme.h\"\nacmeStatus WINAPI acmeOpen(HANDLE *h) { return 0; }\n\
        acmeTriple acmePair_v2(DWORD d) { acmeTriple t = {d}; return t; }\nconst char *acmeName(void) { return 0; }\n";
    let (_guard, directory) = project();
    write(&directory, "acme.h", header);
    write(&directory, "acme.c", source);
    write(
        &directory,
        "acme.def",
        "EXPORTS\nacmeOpen\nacmePair_v2\nacmeName\n",
    );
    let mut command = Command::new("x86_64-w64-mingw32-gcc");
    let command = command.current_dir(&directory).args([
        "-shared",
        "-w",
        "-o",
        "acme64_3.dll",
        "acme.c",
        "acme.def",
        "-Wl,--out-implib,libacme.dll.a",
    ]);
    let output = command.output().expect("mingw-w64");
    assert!(output.status.success(), "{output:?}");
    for file in ["acme64_3.dll", "libacme.dll.a"] {
        let add = ["add", "acme", "--from", file, "--headers", "acme.h"];
        ends(0, &directory, &add);
        let list = read(&directory, "symbols/acme.symbols");
        for line in [
            "acmeName returns=string",
            "acmeOpen returns=status",
            "acmePair_v2 returns=zeroed-struct:12",
        ] {
            assert!(list.lines().any(|l| l == line), "{file}: {line}\n{list}");
        }
        fs::remove_file(directory.join("symbols/acme.symbols")).unwrap();
    }
    let table = read(&directory, "GpuStub.toml");
    assert!(table.contains("fallback = { status = 7 }"), "{table}");
    let diff = [
        "diff",
        "acme64_3.dll",
        "libacme.dll.a",
        "--old-headers",
        "acme.h",
        "--new-headers",
        "acme.h",
    ];
    let (out, err) = ends(0, &directory, &diff);
    assert!(!(out + &err).contains("acmePair_v2"));
}
