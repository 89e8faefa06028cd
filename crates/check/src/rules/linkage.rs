//! Libraries that the loader needs before the image's first instruction runs: `DT_NEEDED`, or the import table of a PE
//! file. Delayed imports of Windows are loaded at the first call.

use gpustub_core::code;
use gpustub_core::library::Role;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::{is_found_as, is_from_vendor};
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::PackageImage;
use crate::rule::{Check, Findings, Rule};
use crate::wheel::WheelMetadata;

/// Help for images that need GPU libraries.
pub const USE_STUBS: &str =
    "link the gpustub stubs instead, or edit the finished file with `cargo gpustub repair`";

/// Help for images of Windows that import from GPU libraries.
const USE_STUBS_OF_WINDOWS: &str = "link the gpustub stubs for Windows instead (`cargo gpustub add`, or `export stubs` without \
     cargo), edit the finished file with `cargo gpustub repair FILE`, or require the wheel that has the DLL";

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
    let missing: Vec<String> = image
        .needed()
        .iter()
        .filter(|name| gpu_file(name).is_some_and(|gpu| is_covered(&gpu)))
        .filter(|name| {
            let mut images = image.package.all_images();
            !images.any(|candidate| is_found_as(&candidate, name)) && !is_required(name)
        })
        .map(|name| format!("`{name}`"))
        .collect();
    let (table, help) = if image.is_pe() {
        ("import table", USE_STUBS_OF_WINDOWS)
    } else {
        ("DT_NEEDED", USE_STUBS)
    };
    let verb = match missing.len() {
        0 => return,
        1 => "is",
        _ => "are",
    };
    findings.on_image(
        rule,
        image,
        format!(
            "fails to start where {} {verb} missing ({table})",
            missing.join(", ")
        ),
        help,
    );
}

/// Whether the library is one of ROCm's run times, which are installed with the driver.
fn is_driver_like(stem: &str) -> bool {
    matches!(stem, "amdhip64" | "hsa-runtime64")
}
