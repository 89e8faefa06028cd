//! Libraries that the loader needs before the image's first instruction runs (`DT_NEEDED`).

use gpustub_core::diag::Code;
use gpustub_core::library::Role;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::is_from_vendor;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::Image;
use crate::rule::{Check, Findings, Rule};

pub static NEEDED_TOOLKIT: Rule = Rule {
    code: Code {
        id: "needed-toolkit",
        summary: "direct dependency on one major of a GPU toolkit",
        explanation: "\
The loader resolves DT_NEEDED entries before any code runs. The name of a CUDA or ROCm library
contains its major, so the image starts only on machines with that major: not with another
one, and not without a GPU (https://github.com/huggingface/candle/issues/3900). Link the stubs of
gpustub instead, which load the installed major at the first call.

    $ readelf -d app | grep NEEDED
     (NEEDED)  Shared library: [libcudart.so.12]      # not with gpustub",
    },
    level: RuleLevel::Deny,
    check: Check::Image(needed_toolkit),
};

pub static NEEDED_DRIVER: Rule = Rule {
    code: Code {
        id: "needed-driver",
        summary: "direct dependency on a GPU driver",
        explanation: "\
libcuda, libnvidia-ml and other driver libraries come with the kernel driver; libOpenCL and
libamdhip64 exist only where they are installed. An image that needs one does not start on machines
without a GPU, nor in a container that was built without the driver
(https://github.com/NVIDIA/nvidia-docker/issues/374). Link the stubs of gpustub instead.

    $ readelf -d app | grep NEEDED
     (NEEDED)  Shared library: [libcuda.so.1]         # not with gpustub",
    },
    level: RuleLevel::Deny,
    check: Check::Image(needed_driver),
};

fn needed_toolkit(image: &Image<'_>, findings: &mut Findings) {
    report_missing(&NEEDED_TOOLKIT, image, findings, |gpu| {
        gpu.role == Role::Toolkit && !is_driver_like(&gpu.stem)
    });
}

fn needed_driver(image: &Image<'_>, findings: &mut Findings) {
    report_missing(&NEEDED_DRIVER, image, findings, |gpu| {
        gpu.role != Role::Toolkit || is_driver_like(&gpu.stem)
    });
}

/// Reports needed libraries that the package does not contain, one finding per image. Vendors' images
/// are exempt: libcublas is always installed together with libcublasLt.
fn report_missing(
    rule: &'static Rule,
    image: &Image<'_>,
    findings: &mut Findings,
    is_covered: fn(&GpuFile) -> bool,
) {
    if is_from_vendor(image) {
        return;
    }
    // The complete list: each library needs a table in GpuStub.toml.
    let missing: Vec<String> = image
        .needed()
        .iter()
        .filter(|name| gpu_file(name).is_some_and(|gpu| is_covered(&gpu)))
        .filter(|name| {
            let mut images = image.package.images();
            !images.any(|candidate| is_found_as(&candidate, name))
        })
        .map(|name| format!("`{name}`"))
        .collect();
    let verb = match missing.len() {
        0 => return,
        1 => "is",
        _ => "are",
    };
    findings.on_image(
        rule,
        image,
        format!(
            "fails to start where {} {verb} missing (DT_NEEDED)",
            missing.join(", ")
        ),
        "link the gpustub stubs instead",
    );
}

/// Whether the loader finds a file of the package by `name`: the file name, or the soname, for which an
/// installation has a link that is no member. Files that a tool has renamed are not found.
fn is_found_as(image: &Image<'_>, name: &str) -> bool {
    match image.member.file_name().strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest.starts_with('.') && image.facts.link.soname.as_deref() == Some(name),
        None => false,
    }
}

/// Whether the library is one of ROCm's run times, which are installed with the driver.
fn is_driver_like(stem: &str) -> bool {
    matches!(stem, "amdhip64" | "hsa-runtime64")
}
