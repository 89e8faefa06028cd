//! `[device-link.<name>]` with `type = "module"`: device code in a file that programs load.

use super::device_link::DeviceLink;
use crate::gpu_arch::Vendor;

/// A table with `type = "module"`. No program is linked with it: its package's code embeds the file,
/// and loads it with the driver (`cuModuleLoadData`) or HIP (`hipModuleLoadData`). Architectures of both vendors
/// make two files.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct DeviceModule {
    /// Code and compile options, as of a static library. Without sources the code is that of required
    /// libraries.
    pub library: DeviceLink,
    /// Format of the file.
    pub format: ModuleFormat,
    /// `true`: relocatable code, and one device link over it and all libraries that it requires.
    /// `false`: each source is a module of its own.
    pub separable: bool,
}

/// Format of a module's file.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum ModuleFormat {
    /// Code for several architectures, as machine code and PTX, for AMD an offload bundle of code objects; the
    /// default.
    #[default]
    Fatbin,
    /// Machine code for one architecture.
    Cubin,
    /// PTX, as text.
    Ptx,
}

impl ModuleFormat {
    /// Value of `format`: also nvcc's option, and the extension of the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fatbin => "fatbin",
            Self::Cubin => "cubin",
            Self::Ptx => "ptx",
        }
    }
}

impl DeviceModule {
    /// Name of the table.
    pub fn name(&self) -> &str {
        &self.library.name.value
    }

    /// Vendors of its architectures, of each of which it has files.
    pub fn vendors(&self) -> Vec<Vendor> {
        let is_in =
            |vendor: &Vendor| vendor.is_in(self.library.archs.iter().map(|arch| arch.value));
        [Vendor::Nvidia, Vendor::Amd]
            .into_iter()
            .filter(is_in)
            .collect()
    }

    /// Environment variable with the path of its file for a vendor, for the package's own code at compile time.
    /// `stem`: the source's file name without `.cu`, if each source is a module of its own.
    pub fn variable(&self, stem: Option<&str>, vendor: Vendor) -> String {
        let mut name = variable(self.name());
        if let Some(stem) = stem.filter(|_| !self.separable) {
            name += "_";
            name += &in_variable(stem);
        }
        // Both have an end, so that a second vendor changes the meaning of no variable.
        if self.vendors().len() > 1 {
            name += match vendor {
                Vendor::Nvidia => "_CUDA",
                Vendor::Amd => "_HIP",
            };
        }
        name
    }
}

/// Variable of a module that is one file.
pub(super) fn variable(name: &str) -> String {
    format!("GPUSTUB_MODULE_{}", in_variable(name))
}

/// Upper case, with `_` for every character that is no letter or digit of ASCII.
fn in_variable(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase(),
            _ => '_',
        })
        .collect()
}
