//! The toolkit in a wheel's name or version.

/// A toolkit in a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelledToolkit {
    /// `cu126`, `cuda12`, `cuda12x`.
    Cuda,
    /// `rocm6.2`, `rocm60`.
    Rocm,
    /// `cpu`: none.
    Cpu,
}

/// A label, for example `-cu12` of a name or `+rocm6.2` of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolkitLabel {
    /// The label as written.
    pub text: String,
    /// The toolkit.
    pub toolkit: LabelledToolkit,
    /// Major of the toolkit; `None` without a toolkit or a number.
    pub major: Option<u32>,
}

/// The label of the version's local part, which describes this build, or else that of the name.
pub fn label(name: &str, version: &str) -> Option<ToolkitLabel> {
    let local = version.split_once('+').map_or("", |(_, local)| local);
    local
        .split(['.', '-', '_'])
        .enumerate()
        .find_map(|(index, word)| match word {
            // `cpu` is a label of versions only: the name `cpu-features` has no label.
            "cpu" if index == 0 => Some(ToolkitLabel {
                text: word.to_owned(),
                toolkit: LabelledToolkit::Cpu,
                major: None,
            }),
            word => toolkit_label(word),
        })
        .or_else(|| name.split('-').find_map(toolkit_label))
}

fn toolkit_label(word: &str) -> Option<ToolkitLabel> {
    let (toolkit, major) = if let Some(rest) = word
        .strip_prefix("cuda")
        .or_else(|| word.strip_prefix("cu"))
    {
        (LabelledToolkit::Cuda, cuda_major(leading_digits(rest))?)
    } else {
        let rest = word.strip_prefix("rocm")?;
        (LabelledToolkit::Rocm, rocm_major(leading_digits(rest))?)
    };
    Some(ToolkitLabel {
        text: word.to_owned(),
        toolkit,
        major: Some(major.parse().ok()?),
    })
}

fn leading_digits(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    &text[..end]
}

/// `cu92` is 9.2, `cu12` and `cu126` are 12: no wheels were labelled for CUDA 1 to 7.
fn cuda_major(digits: &str) -> Option<&str> {
    if digits.starts_with(['8', '9']) {
        digits.get(..1)
    } else if (2..=4).contains(&digits.len()) {
        digits.get(..2)
    } else {
        None
    }
}

/// `rocm60` and `rocm6` are 6: no wheels were labelled for ROCm 10.
fn rocm_major(digits: &str) -> Option<&str> {
    let is_known = (1..=3).contains(&digits.len()) && !digits.starts_with('1');
    digits.get(..1).filter(|_| is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read() {
        use LabelledToolkit::{Cuda, Rocm};
        for (name, version, expected) in [
            ("nvidia-cublas-cu12", "12.9.1", Some((Cuda, Some(12)))),
            ("jax-cuda12-plugin", "0.5", Some((Cuda, Some(12)))),
            ("cupy-cuda12x", "13", Some((Cuda, Some(12)))),
            ("torch", "2.6.0+cu126", Some((Cuda, Some(12)))),
            ("torch", "1.0+cu92", Some((Cuda, Some(9)))),
            ("torch", "2.6.0+rocm6.2.4", Some((Rocm, Some(6)))),
            ("jax-rocm60-plugin", "0.5", Some((Rocm, Some(6)))),
            ("jax-rocm7-plugin", "0.5", Some((Rocm, Some(7)))),
            ("flash-attn", "2.8+cu12torch2.8", Some((Cuda, Some(12)))),
            // The version describes the build, the name describes the project.
            ("x-cu11", "1+cu126", Some((Cuda, Some(12)))),
            ("torch", "2.6.0+cpu", Some((LabelledToolkit::Cpu, None))),
            ("cpu-features", "1", None),
            ("cuda-python", "13.0", None),
            ("custom", "1", None),
            ("cuml", "1+curl", None),
            ("rocm-sdk", "7.0", None),
            ("x", "1+cu1", None),
            ("x-cu", "1+git1234", None),
        ] {
            let label = label(name, version).map(|label| (label.toolkit, label.major));
            assert_eq!(label, expected, "{name} {version}");
        }
    }
}
