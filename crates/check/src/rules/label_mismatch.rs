//! The toolkit in a wheel's name compared with the toolkit of its images.

use std::collections::BTreeSet;

use gpustub_core::code;
use gpustub_core::library::Role;
use gpustub_core::manifest::RuleLevel;

use crate::gpu_file::gpu_file;
use crate::package::Package;
use crate::rule::{Check, Findings, Rule};
use crate::toolkit_label::{LabelledToolkit, label};
use crate::wheel::WheelMetadata;

pub static TOOLKIT_LABEL_MISMATCH: Rule = Rule {
    code: code!(
        "toolkit-label-mismatch",
        "wheel label that contradicts the toolkit of its images"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(toolkit_label_mismatch),
};

fn toolkit_label_mismatch(package: &Package, findings: &mut Findings) {
    let Some(wheel) = WheelMetadata::from_package(package) else {
        return;
    };
    let Some(label) = label(&wheel.name, &wheel.version) else {
        return;
    };
    for image in package.all_images() {
        for name in image.needed() {
            let Some((toolkit, majors)) = toolkit(name) else {
                continue;
            };
            let matches_label = match label.major {
                _ if label.toolkit != toolkit => false,
                Some(major) => majors.is_empty() || majors.contains(&major),
                None => true,
            };
            if !matches_label {
                findings.on_image(
                    &TOOLKIT_LABEL_MISMATCH,
                    &image,
                    format!("wheel label `{}`, but the image needs `{name}`", label.text),
                    "build with the toolkit of the label, or change the label",
                );
                break;
            }
        }
    }
}

/// The toolkit that a library belongs to, and the majors of it with exactly this file name.
fn toolkit(name: &str) -> Option<(LabelledToolkit, BTreeSet<u32>)> {
    let gpu = gpu_file(name).filter(|gpu| gpu.role == Role::Toolkit)?;
    let library = gpu.library?;
    let toolkit = match library.family.as_str() {
        "cuda" => LabelledToolkit::Cuda,
        "hip" | "rocm" => LabelledToolkit::Rocm,
        _ => return None,
    };
    // In ROCm only the runtime's file name reliably has ROCm's major; cuDNN and NCCL count their own.
    if library.independent_major || (toolkit == LabelledToolkit::Rocm && gpu.stem != "amdhip64") {
        return Some((toolkit, BTreeSet::new()));
    }
    let majors = gpu.toolkit_majors();
    // Major that the manifest does not know yet, or no longer: that of cudart's name is CUDA's.
    match (majors.is_empty(), gpu.major, gpu.stem.as_str()) {
        (true, Some(major), "cudart" | "nvrtc" | "amdhip64") => {
            // Names of DLLs have the minor too, up to CUDA 11 (`cudart64_102.dll`) or always (`nvrtc64_140_0.dll`).
            let has_minor = gpu.system == "windows" && major >= 80;
            let major = if has_minor { major / 10 } else { major };
            Some((toolkit, BTreeSet::from([major])))
        }
        _ => Some((toolkit, majors)),
    }
}
