//! Libraries that the loader needs before the image's first instruction runs: `DT_NEEDED`, or the import table of a PE
//! file. Delayed imports of Windows are loaded at the first call.

use gpustub_core::code;
use gpustub_core::library::Role;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::is_from_vendor;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::PackageImage;
use crate::remedy::{is_in_package, remedy};
use crate::rule::{Check, Findings, Rule};
use crate::wheel::WheelMetadata;

pub static NEEDED_TOOLKIT: Rule = Rule {
    code: code!(
        "needed-toolkit",
        "direct dependency on one major of a GPU toolkit"
    ),
    level: RuleLevel::Deny,
    check: Check::AnyImage(needed_toolkit),
};

pub static NEEDED_DRIVER: Rule = Rule {
    code: code!("needed-driver", "direct dependency on a GPU driver"),
    level: RuleLevel::Deny,
    check: Check::AnyImage(needed_driver),
};

fn needed_toolkit(image: &PackageImage<'_>, findings: &mut Findings) {
    report_missing(&NEEDED_TOOLKIT, image, findings, |gpu| {
        gpu.role == Role::Toolkit && !is_driver_like(&gpu.stem)
    });
}

fn needed_driver(image: &PackageImage<'_>, findings: &mut Findings) {
    report_missing(&NEEDED_DRIVER, image, findings, |gpu| {
        gpu.role != Role::Toolkit || is_driver_like(&gpu.stem)
    });
}

/// Reports needed libraries that the package does not contain, one finding per image. On Windows, where no image names
/// directories, a required wheel of NVIDIA's that has the library suffices. Vendors' images are exempt: libcublas is
/// always installed together with libcublasLt.
fn report_missing(
    rule: &'static Rule,
    image: &PackageImage<'_>,
    findings: &mut Findings,
    is_covered: fn(&GpuFile) -> bool,
) {
    if is_from_vendor(image) {
        return;
    }
    let wheel = Some(image.package)
        .filter(|_| image.is_pe())
        .and_then(WheelMetadata::from_package);
    let is_required = |name: &str| wheel.as_ref().is_some_and(|wheel| wheel.requires_dll(name));
    // The complete list: each library needs a table in GpuStub.toml.
    let missing: Vec<&str> = image
        .needed()
        .iter()
        .map(String::as_str)
        .filter(|name| gpu_file(name).is_some_and(|gpu| is_covered(&gpu)))
        .filter(|name| !is_in_package(image, name) && !is_required(name))
        .collect();
    let table = if image.is_pe() {
        "import table"
    } else {
        "DT_NEEDED"
    };
    let verb = match missing.len() {
        0 => return,
        1 => "is",
        _ => "are",
    };
    let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    let message = format!("fails to start where {names} {verb} missing ({table})");
    findings.on_image(rule, image, message, &remedy(image, &missing));
}

/// Whether the library is one of ROCm's run times, which are installed with the driver.
fn is_driver_like(stem: &str) -> bool {
    matches!(stem, "amdhip64" | "hsa-runtime64")
}
