//! Bitcode libraries for families of GPUs, split into one member per symbol, and layered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::succeed;
use crate::components::component;
use crate::{Result, repository};

/// The differing families of libclc, newest first: in the order in which each is searched. The
/// other files of the package are links to these. Names contain `size_t`, so that 64 and 32 bits
/// share no functions.
pub const CHAINS: [&[&str]; 4] = [
    &[
        "cayman-r600--",
        "cypress-r600--",
        "barts-r600--",
        "cedar-r600--",
    ],
    &[
        "amdgcn--amdhsa",
        "tahiti-amdgcn-mesa-mesa3d",
        "tahiti-amdgcn--",
    ],
    &["nvptx64--nvidiacl", "nvptx64--"],
    &["nvptx--nvidiacl", "nvptx--"],
];

/// Some two hundred functions of libclc; half of them differ between old and new families of R600.
pub const SOME: &str = "^_Z[0-9]+(a?(sin|cos|tan)(pi|h)?|sincos|fma|mad|pow|exp2?|log|fm(in|ax)|clamp|mix)(Dv[0-9]+_)?[fi]";

/// Path of a library of libclc.
pub fn libclc(family: &str) -> Result<PathBuf> {
    component(&format!("libclc-19/{family}.bc"))
}

/// Layer: its name and the files of its members.
pub struct Layer {
    /// Name of the layer.
    pub name: String,
    /// Paths of the members.
    pub files: Vec<PathBuf>,
}

impl Layer {
    /// All files of a directory.
    pub fn from_directory(name: &str, directory: &Path) -> Result<Self> {
        let entries =
            fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        Ok(Self {
            name: name.to_owned(),
            files,
        })
    }

    /// Creates `NAME.a` in a directory with LLVM's own tool.
    pub fn archive(&self, directory: &Path) -> Result<PathBuf> {
        let file = directory.join(format!("{}.a", self.name));
        // The tool would add to an existing file.
        if file.exists() {
            fs::remove_file(&file)?;
        }
        // Longer than a command line may be.
        let response_file = directory.join(format!("{}.members", self.name));
        let mut members = String::new();
        for path in &self.files {
            members += &format!("\"{}\"\n", path.display());
        }
        fs::write(&response_file, members)?;
        let mut ar = Command::new("llvm-ar-19");
        ar.arg("rcs").arg(&file);
        succeed(ar.arg(format!("@{}", response_file.display())))?;
        Ok(file)
    }
}

/// Splits modules of bitcode.
pub struct Splitter(PathBuf);

impl Splitter {
    /// Compiles the program in a directory.
    pub fn new(directory: &Path) -> Result<Self> {
        let program = directory.join("split-bitcode");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-o"]).arg(&program);
        cc.arg(repository().join("tests/programs/split-bitcode.c"));
        succeed(cc.arg("-l:libLLVM.so.19.1"))?;
        Ok(Self(program))
    }

    /// Writes a file into `directory` for each symbol of a module, or for those that match the regular
    /// expression `filter`, and the variants without processor attributes into its directory `plain`.
    pub fn split(&self, module: &Path, directory: &Path, filter: Option<&str>) -> Result<()> {
        fs::create_dir_all(directory.join("plain"))?;
        let mut split = Command::new(&self.0);
        split.arg(module).arg(directory).args(filter);
        succeed(&mut split)?;
        Ok(())
    }
}

/// Splits each family of a chain into a directory of its name.
pub fn split_chain(chain: &[&str], directory: &Path, filter: Option<&str>) -> Result<()> {
    let splitter = Splitter::new(directory)?;
    for family in chain {
        splitter.split(&libclc(family)?, &directory.join(family), filter)?;
    }
    Ok(())
}

/// The layers of a split chain, newest first, then `common`, named after the oldest family: a
/// member that is the same for any processor is only in the last layer that can have it.
pub fn layers(chain: &[&str], directory: &Path) -> Result<Vec<Layer>> {
    let oldest = *chain.last().ok_or("no family")?;
    let plain = |family: &str, file: &Path| -> Option<Vec<u8>> {
        fs::read(directory.join(family).join("plain").join(file.file_name()?)).ok()
    };
    let mut layers = Vec::new();
    for (index, family) in chain.iter().enumerate() {
        let mut layer = Layer::from_directory(family, &directory.join(family))?;
        if let Some(older) = chain.get(index + 1) {
            layer
                .files
                .retain(|file| plain(family, file) != plain(older, file));
        }
        layers.push(layer);
    }
    let oldest_layer = layers.last_mut().ok_or("no family")?;
    let (common, specific) = std::mem::take(&mut oldest_layer.files)
        .into_iter()
        .partition(|file| {
            let oldest_text = plain(oldest, file);
            chain
                .iter()
                .all(|family| plain(family, file) == oldest_text)
        });
    oldest_layer.files = specific;
    layers.push(Layer {
        name: format!("common-{oldest}"),
        files: common,
    });
    Ok(layers)
}
