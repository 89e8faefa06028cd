//! Faults of a linked image that appear only when it is loaded: before `main`, or when a program opens it.
//!
//! Linkers accept all of these. Whoever links an image reads it again and calls [`load_faults`].

use std::fmt;

use crate::diag::{Diagnostic, UNLOADABLE_IMAGE, listing};

/// Requests of an image to the dynamic loader, and the registering functions of device code in it.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, Default)]
pub struct LoadFacts {
    /// Whether it is a program, linked as such (`DF_1_PIE`) or with an interpreter.
    pub is_program: bool,
    /// Whether it names an interpreter, which loads what the program needs.
    pub has_interpreter: bool,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RUNPATH`, or else `DT_RPATH`.
    pub run_path: Option<String>,
    /// Functions of device links that relocatable objects in the image call, and that it does not define.
    pub unregistered: Vec<String>,
    /// Functions of its device link that the image exports.
    pub registered: Vec<String>,
}

/// A fault of an image.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub enum LoadFault {
    /// No image of the process defines these functions of a device link.
    Unregistered(Vec<String>),
    /// The run path leads to none of these needed libraries.
    Unreachable(Vec<String>),
    /// The program has no interpreter, and so nobody loads these libraries.
    NoInterpreter(Vec<String>),
}

/// Faults of an image. `is_registered`: whether another image of the process defines a function of a device link;
/// `is_unreachable`: whether the loader would not find a needed library. Unknown libraries, such as those of
/// the system, are to be accepted.
pub fn load_faults(
    image: &LoadFacts,
    is_registered: &dyn Fn(&str) -> bool,
    is_unreachable: &dyn Fn(&str) -> bool,
) -> Vec<LoadFault> {
    let mut faults = Vec::new();
    if image.is_program && !image.has_interpreter && !image.needed.is_empty() {
        faults.push(LoadFault::NoInterpreter(image.needed.clone()));
    }
    let unregistered = (image.unregistered.iter())
        .filter(|name| !is_registered(name))
        .cloned();
    let unreachable = (image.needed.iter())
        .filter(|name| is_unreachable(name))
        .cloned();
    let (unregistered, unreachable) = (unregistered.collect(), unreachable.collect());
    for fault in [
        LoadFault::Unregistered(unregistered),
        LoadFault::Unreachable(unreachable),
    ] {
        if !fault.names().is_empty() {
            faults.push(fault);
        }
    }
    faults
}

impl LoadFault {
    fn names(&self) -> &[String] {
        match self {
            Self::Unregistered(names) | Self::Unreachable(names) | Self::NoInterpreter(names) => {
                names
            }
        }
    }

    /// Next step.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unregistered(_) => {
                "device-link all objects of the process once (CUDA: `nvcc -dlink`), and link the result into it"
            }
            Self::Unreachable(_) => {
                "put the libraries into the directory of the image, and link it with `-Wl,-rpath,$ORIGIN`; some linker \
                 wrappers and packaging tools remove run paths"
            }
            Self::NoInterpreter(_) => {
                "link the C library dynamically: without `-static-pie`, for Rust with `-C target-feature=-crt-static`"
            }
        }
    }

    /// The fault as an error about the file of this name.
    pub fn diagnostic(&self, file: &str) -> Diagnostic {
        Diagnostic::error(&UNLOADABLE_IMAGE, format!("`{file}` {self}")).help(self.help())
    }
}

/// Predicate of a sentence about the image.
impl fmt::Display for LoadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().iter().map(String::as_str).collect();
        match self {
            Self::Unregistered(functions) => {
                let first = functions.first().map_or("", String::as_str);
                write!(f, "cannot be loaded: no device link defines `{first}`")?;
                match functions.len() {
                    0 | 1 => Ok(()),
                    count => write!(f, " and {} more", count - 1),
                }
            }
            Self::Unreachable(_) => {
                write!(
                    f,
                    "cannot be loaded: no run path leads to {}",
                    listing(&names)
                )
            }
            Self::NoInterpreter(_) => write!(
                f,
                "crashes before `main`: it has no interpreter, which would load {}",
                listing(&names)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_fault_is_found() {
        let library = LoadFacts {
            needed: names(&["libbase.so", "libc.so.6"]),
            unregistered: names(&["_1_a", "_2_b"]),
            ..LoadFacts::default()
        };
        let program = LoadFacts {
            is_program: true,
            has_interpreter: true,
            ..library.clone()
        };
        let static_pie = LoadFacts {
            has_interpreter: false,
            ..program.clone()
        };
        let faults = |image: &LoadFacts| {
            load_faults(image, &|id| id == "_1_a", &|name| name == "libbase.so")
        };
        let common = [
            LoadFault::Unregistered(names(&["_2_b"])),
            LoadFault::Unreachable(names(&["libbase.so"])),
        ];
        assert_eq!(faults(&library), common);
        assert_eq!(faults(&program), common);
        let interpreter = LoadFault::NoInterpreter(library.needed.clone());
        assert_eq!(faults(&static_pie)[0], interpreter);
        assert_eq!(faults(&static_pie)[1..], common);
        assert_eq!(load_faults(&library, &|_| true, &|_| false), []);
    }

    #[test]
    fn a_static_program_without_libraries_is_complete() {
        let image = LoadFacts {
            is_program: true,
            ..LoadFacts::default()
        };
        assert_eq!(load_faults(&image, &|_| false, &|_| true), []);
    }
}
