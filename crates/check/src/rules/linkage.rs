//! Libraries that the loader needs before the image's first instruction runs (`DT_NEEDED`).

use gpustub_core::code;
use gpustub_core::library::Role;
use gpustub_core::manifest::RuleLevel;

use crate::evidence::is_from_vendor;
use crate::gpu_file::{GpuFile, gpu_file};
use crate::package::Image;
use crate::rule::{Check, Findings, Rule};

pub static NEEDED_TOOLKIT: Rule = Rule {
    code: code!(
        "needed-toolkit",
        "direct dependency on one major of a GPU toolkit"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(needed_toolkit),
};

pub static NEEDED_DRIVER: Rule = Rule {
    code: code!("needed-driver", "direct dependency on a GPU driver"),
    level: RuleLevel::Deny,
    check: Check::Image(needed_driver),
};

fn needed_toolkit(image: &Image<'_>, findings: &mut Findings) {
    missing(&NEEDED_TOOLKIT, image, findings, |gpu| {
        gpu.role == Role::Toolkit && !is_driver_like(&gpu.stem)
    });
}

fn needed_driver(image: &Image<'_>, findings: &mut Findings) {
    missing(&NEEDED_DRIVER, image, findings, |gpu| {
        gpu.role != Role::Toolkit || is_driver_like(&gpu.stem)
    });
}

/// Reports needed libraries that the package does not contain, one finding per image. Vendors' images
/// are exempt: libcublas is always installed together with libcublasLt.
fn missing(
    rule: &'static Rule,
    image: &Image<'_>,
    findings: &mut Findings,
    of_rule: impl Fn(&GpuFile) -> bool,
) {
    if is_from_vendor(image) {
        return;
    }
    let carried = |name: &str| {
        image
            .package
            .images()
            .any(|other| is_found_as(&other, name))
    };
    let needed = image.needed().iter().map(String::as_str);
    // The complete list: each library needs a table in GpuStub.toml.
    let missing: Vec<String> = needed
        .filter(|name| gpu_file(name).is_some_and(|gpu| of_rule(&gpu)) && !carried(name))
        .map(|name| format!("`{name}`"))
        .collect();
    let are = match missing.len() {
        0 => return,
        1 => "is",
        _ => "are",
    };
    findings.on_image(
        rule,
        image,
        format!(
            "fails to start where {} {are} missing (DT_NEEDED)",
            missing.join(", ")
        ),
        "link the gpustub stubs instead",
    );
}

/// Whether the loader finds a file of the package by `name`: the file name, or the soname, for which an
/// installation has a link that is no member. Files that a tool has renamed are not found.
fn is_found_as(image: &Image<'_>, name: &str) -> bool {
    let file = image.member.file_name();
    let longer = || {
        file.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    file == name || (image.facts.link.soname.as_deref() == Some(name) && longer())
}

/// Whether the library is one of ROCm's run times, which are installed with the driver.
fn is_driver_like(stem: &str) -> bool {
    matches!(stem, "amdhip64" | "hsa-runtime64")
}
