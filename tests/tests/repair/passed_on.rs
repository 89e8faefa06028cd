//! Images that find GPU functions in a library that only another image needs: `libuser.so`, or a plugin of a
//! program, uses what `libbase.so` needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, run, succeed};

/// Compiles a directory `tree` with `LINK` options. `libuser.so` needs `libbase.so`; `plugin.so` needs neither
/// it nor libcudart, and `app` needs both.
/// The libraries use libc, and so have symbol versions.
const MAKE: &str = r#"set -eu
mkdir -p tree real
printf 'int cudaGetDeviceCount(int *n) { return 7; }' >cudart.c
printf 'libcudart.so.12 { global: *; };' >map
cc -shared -fPIC -Wl,-soname,libcudart.so.12 -Wl,--version-script=map -o real/libcudart.so.12 cudart.c
ln -sf libcudart.so.12 real/libcudart.so
printf 'char *getenv(char *); int cudaGetDeviceCount(int *); int base(void) { int n; return !!getenv("NOTHING") + cudaGetDeviceCount(&n); }' >base.c
cc $LINK -shared -fPIC -o tree/libbase.so base.c -Lreal -Wl,--no-as-needed -lcudart
printf 'char *getenv(char *); int base(void), cudaGetDeviceCount(int *); int user(void) { int n; return !!getenv("NOTHING") + 100 * base() + cudaGetDeviceCount(&n); }' >user.c
cc $LINK $USER -shared -fPIC -o tree/libuser.so user.c -Ltree -lbase '-Wl,-rpath,$ORIGIN'
printf 'char *getenv(char *); int cudaGetDeviceCount(int *); int plugin(void) { int n; return !!getenv("NOTHING") + cudaGetDeviceCount(&n); }' >plugin.c
cc $LINK -shared -fPIC -Wl,-soname,plugin.so -o tree/plugin.so plugin.c
printf '#include <stdio.h>\nint base(void), user(void), plugin(void); int main(void) { printf("%%d %%d\\n", user(), plugin()); }' >app.c
cc $LINK -Wl,--no-as-needed,--allow-shlib-undefined -o tree/app app.c tree/plugin.so -Ltree -luser -lbase '-Wl,-rpath,$ORIGIN'
"#;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(link: &str, user: &str) -> Result<Self> {
        let tree = Self(gpustub_tests::scratch::scratch()?);
        let mut make = Command::new("sh");
        make.args(["-c", MAKE]).env("LINK", link).env("USER", user);
        succeed(make.current_dir(tree.path()))?;
        Ok(tree)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Output of the program of a tree.
    fn start(&self, tree: &str, real: bool) -> Result<String> {
        let mut app = Command::new(self.path().join(tree).join("app"));
        app.env_remove("LD_LIBRARY_PATH").env("LD_BIND_NOW", "1");
        if real {
            app.env("LD_LIBRARY_PATH", self.path().join("real"));
        }
        Ok(succeed(&mut app)?.stdout)
    }

    fn repair(&self) -> Result<Ran> {
        let mut repair = gpustub(&["repair", "tree", "-v", "--message-format", "short"])?;
        run(repair.args(["--out-dir", "out"]).current_dir(self.path()))
    }

    /// Repairs the tree, and starts the result; `user` is the edit of `libuser.so`.
    fn check_repair(&self, user: &str) -> Result<()> {
        assert_eq!(self.start("tree", true)?, "707 7\n");
        let ran = self.repair()?.success()?;
        let user = format!("tree/libuser.so: {user}");
        for image in [&user, "tree/plugin.so: with libgpustub_tree_"] {
            assert!(ran.stderr.contains(image), "{image}\n{}", ran.stderr);
        }
        // cudaErrorInsufficientDriver.
        assert_eq!(self.start("out/tree", false)?, "3535 35\n");
        Ok(())
    }
}

#[test]
fn images_that_use_a_library_of_others_are_edited() -> Result<()> {
    Tree::new("", "")?.check_repair("with libgpustub_tree_")
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_images_of_each_linker_that_use_a_library_of_others_are_edited() -> Result<()> {
    for linker in ["bfd", "gold", "lld", "mold"] {
        let tree = Tree::new(&format!("-fuse-ld={linker}"), "")?;
        tree.check_repair("with libgpustub_tree_")
            .map_err(|error| format!("{linker}: {error:?}"))?;
    }
    Ok(())
}

/// Tools that remove libraries from `DT_NEEDED` leave their versions.
#[test]
#[ignore = "needs patchelf: ./tests/run"]
fn images_with_versions_of_a_library_that_others_need_are_edited() -> Result<()> {
    let tree = Tree::new("", "-Lreal -Wl,--no-as-needed -lcudart")?;
    let mut patchelf = Command::new("patchelf");
    patchelf.args(["--remove-needed", "libcudart.so.12"]);
    succeed(patchelf.arg(tree.path().join("tree/libuser.so")))?;
    tree.check_repair("without libcudart.so.12")
}

#[test]
fn images_that_others_depend_on_keep_their_library() -> Result<()> {
    // Without any version an import cannot be bound to a stub of its own.
    let tree = Tree::new("", "-nostdlib")?;
    let ran = tree.repair()?;
    assert_eq!(ran.status.code(), Some(1), "{}", ran.stderr);
    for message in [
        "tree/libuser.so: error[unsupported-image]: `libuser.so` imports `cudaGetDeviceCount` of a library \
         that only libbase.so needs, and cannot be edited: it requires no symbol versions",
        "tree/libbase.so: error[unsupported-image]: `libbase.so` keeps the library that `libuser.so` finds \
         `cudaGetDeviceCount` in: that image cannot be edited",
    ] {
        assert!(ran.stderr.contains(message), "{message}\n{}", ran.stderr);
    }
    assert!(!fs::exists(tree.path().join("out"))?);
    Ok(())
}
