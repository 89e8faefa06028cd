//! Images whose code for GPUs is in other files.

use gpustub_core::code;
use gpustub_core::manifest::RuleLevel;

use crate::package::{ContainerKind, Package};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{SearchDir, resolve_entry};

pub static MISSING_KPACK: Rule = Rule {
    code: code!(
        "missing-kpack",
        "no kpack archive with the code of an image for GPUs"
    ),
    level: RuleLevel::Warn,
    check: Check::Package(missing_kpack),
};

/// Stands for an architecture in the names of archives.
const ARCH: &str = "@GFXARCH@";

fn missing_kpack(package: &Package, findings: &mut Findings) {
    // Wheels of a library and of its archives are separate: only what is installed has both.
    if package.kind != ContainerKind::Directory {
        return;
    }
    for image in package.images() {
        let Some(reference) = &image.facts.kpack else {
            continue;
        };
        let is_there = |path: &str| match resolve_entry(&image, &format!("$ORIGIN/{path}")) {
            SearchDir::Inside(path) => {
                let (start, end) = path.split_once(ARCH).unwrap_or((&path, ""));
                let is_exact = !path.contains(ARCH);
                package.members.iter().any(|member| {
                    let rest = member.path.strip_prefix(start);
                    rest.is_some_and(|rest| rest == end || !is_exact && rest.ends_with(end))
                })
            }
            _ => true,
        };
        if let (Some(first), false) = (
            reference.paths.first(),
            reference.paths.iter().any(|path| is_there(path)),
        ) {
            let message = format!(
                "the code of this image for GPUs is in kpack archives, and no file is `{first}` beside it"
            );
            let help = "install the archives of the GPUs as well, which ROCm's packages have in packages of their own: each launch \
                        fails without them";
            findings.on_image(&MISSING_KPACK, &image, message, help);
        }
    }
}
