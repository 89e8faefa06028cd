//! A super-archive of two views, and programs that use their symbols.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_superarchive::{
    Binding, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId, definitions,
};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use tempfile::TempDir;

/// Members: name, contents as C; each contains a distinct text that linked files keep.
const DEFAULT: [(&str, &str); 2] = [
    ("foo", "int foo(void) { return 10; }"),
    ("bar", "int bar(void) { return 1; }"),
];
const HIDDEN: [(&str, &str); 2] = [
    ("bar", "int bar(void) { return 2; }"),
    ("only1", "int only1(void) { return 0; }"),
];

/// Exit status of a program linked with the default view.
pub const STATUS: i32 = 11;

/// Text of the default view's member that defines `bar`.
pub const DEFAULT_MARK: &str = "mark bar 1";
pub const HIDDEN_MARKS: [&str; 2] = ["mark bar 2", "mark only1 2"];

/// Programs without a C library, which is not installed for every machine.
const MAIN: &str = "\
int foo(void), bar(void);
#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
void start(void) {
    int status = foo() + bar();
#ifdef __x86_64__
    __asm__ volatile(\"syscall\" : : \"a\"(60), \"D\"(status) : \"memory\");
#else
    volatile int used = status;
    (void)used;
#endif
}
";
const ONLY1: &str =
    "int only1(void);\nvoid start(void) { volatile int used = only1(); (void)used; }\n";

/// Kind of the default view's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    Objects,
    /// No default view.
    None,
    Text,
    /// Bitcode of the oldest release, which all tools read.
    Bitcode,
}

impl Default {
    pub const ALL: [(&'static str, Self); 3] = [
        ("elf", Self::Objects),
        ("none", Self::None),
        ("text", Self::Text),
    ];
}

/// A super-archive in a separate directory, and its inputs.
pub struct Sample {
    dir: TempDir,
    /// Definition of each symbol in each view: view, symbol, contents.
    pub answers: Vec<(&'static str, &'static str, Option<Vec<u8>>)>,
    pub bytes: Vec<u8>,
}

impl Sample {
    pub fn new(default: Default) -> Result<Self> {
        let compiler: &[&str] = match default {
            Default::Bitcode => &[
                "clang-14",
                "-emit-llvm",
                "--target=amdgcn-amd-amdhsa",
                "-nogpulib",
            ],
            _ => &["cc"],
        };
        let compiler: Vec<String> = compiler.iter().map(ToString::to_string).collect();
        Self::build(default, &compiler, &[])
    }

    /// Names of all archives in the cases; bitcode only if its tools are installed.
    pub fn all(everywhere: bool) -> impl Iterator<Item = (&'static str, Default)> {
        let bitcode = (!everywhere).then_some(("bitcode", Default::Bitcode));
        Default::ALL.into_iter().chain(bitcode)
    }

    /// `compiler`: its command; `hidden`: additional arguments for members of the hidden view.
    pub fn build(default: Default, compiler: &[String], hidden: &[String]) -> Result<Self> {
        let dir = scratch()?;
        let compiler = Compiler {
            directory: dir.path(),
            command: compiler,
        };
        compiler.compile(MAIN, "main.o", &[])?;
        compiler.compile(ONLY1, "other.o", &[])?;
        compiler.compile("int other_new(void) { return 3; }", "new.o", &[])?;
        let ending = match default {
            Default::Bitcode => ".bc",
            _ => ".o",
        };
        let mut members = [Vec::new(), Vec::new()];
        for (name, source) in DEFAULT {
            members[0].push(match default {
                Default::Text => (format!("{name}.txt"), format!("text {name}").into_bytes()),
                _ => {
                    let object = compiler.member(1, name, source, &[])?;
                    (format!("{name}{ending}"), object)
                }
            });
        }
        for (name, source) in HIDDEN {
            let object = compiler.member(2, name, source, hidden)?;
            members[1].push((format!("{name}{ending}"), object));
        }

        let bytes = write(default, &members)?;
        fs::write(dir.path().join("lib.a"), &bytes)?;
        let [default_foo, default_bar] = [0, 1].map(|index| {
            let (_, data) = &members[0][index];
            (default != Default::Text).then(|| data.clone())
        });
        let [hidden_bar, only1] = [0, 1].map(|index| members[1][index].1.clone());
        let answers = vec![
            ("default", "foo", default_foo.clone()),
            ("default", "bar", default_bar),
            ("default", "only1", None),
            ("gpu1", "foo", default_foo),
            ("gpu1", "bar", Some(hidden_bar)),
            ("gpu1", "only1", Some(only1)),
        ];
        // A member of the same name and length, with other contents.
        let (name, data) = &members[0][1];
        let mut changed = data.clone();
        let offset = find(data, DEFAULT_MARK.as_bytes()).unwrap_or(data.len() / 2);
        changed[offset] ^= b' ';
        fs::create_dir(dir.path().join("changed"))?;
        fs::write(dir.path().join("changed").join(name), changed)?;
        Ok(Self {
            dir,
            answers,
            bytes,
        })
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn archive(&self) -> PathBuf {
        self.dir.path().join("lib.a")
    }

    /// Path of the file that `changed` names in cases.
    pub fn changed(&self) -> Result<PathBuf> {
        gpustub_tests::components::only_entry(&self.dir.path().join("changed"))
    }
}

/// Command of a compiler, and the directory of its files.
struct Compiler<'a> {
    directory: &'a Path,
    command: &'a [String],
}

impl Compiler<'_> {
    fn compile(&self, source: &str, name: &str, options: &[String]) -> Result<Vec<u8>> {
        let file = self.directory.join("source.c");
        fs::write(&file, source)?;
        let object = self.directory.join(name);
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args(options);
        command.args([
            "-g",
            "-O1",
            "-ffreestanding",
            "-fno-stack-protector",
            "-c",
            "-o",
        ]);
        succeed(command.arg(&object).arg(&file))?;
        Ok(fs::read(object)?)
    }

    /// A member with a mark, of the view with this number.
    fn member(&self, view: u32, name: &str, source: &str, options: &[String]) -> Result<Vec<u8>> {
        let text = format!(
            "static const char mark[] __attribute__((used)) = \"mark {name} {view}\";\n{source}\n"
        );
        self.compile(&text, "member.o", options)
    }
}

/// Members of a layer: names and contents.
type Files = Vec<(String, Vec<u8>)>;

fn input((name, data): &(String, Vec<u8>)) -> Result<Input<'_>> {
    let symbols = match name.strip_suffix(".bc") {
        // One function with the name of the file.
        Some(symbol) => vec![Definition {
            name: Cow::Borrowed(symbol.as_bytes()),
            binding: Binding::Strong,
        }],
        None => definitions(data).map_err(|e| format!("{name}: {e:?}"))?,
    };
    Ok(Input {
        name: Cow::Borrowed(name.as_bytes()),
        data,
        symbols,
    })
}

fn view(name: &str, layers: &[usize]) -> View {
    View {
        name: name.to_owned(),
        layers: layers.iter().copied().map(LayerId).collect(),
    }
}

fn write(default: Default, members: &[Files; 2]) -> Result<Vec<u8>> {
    let mut layers = Vec::new();
    for (name, files) in ["common", "family"].iter().zip(members) {
        let members = files.iter().map(input).collect::<Result<_>>()?;
        layers.push(Layer::new(*name, members));
    }
    let request = Request {
        layers,
        views: vec![view("default", &[0]), view("gpu1", &[1, 0])],
        default: (default != Default::None).then_some(ViewId(0)),
    };
    let plan = Plan::new(&request).map_err(|e| format!("{e:?}"))?;
    let mut bytes = Vec::new();
    plan.write(&mut bytes)?;
    Ok(bytes)
}

/// Offset of a text in a file.
pub fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}
