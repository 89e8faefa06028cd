//! Faults of edited images: a library that the loader found before, or the stub library, and no longer finds.

use gpustub_check::search_dirs::{SearchDir, installed, join, resolve_entry};
use gpustub_check::{Package, PackageImage};
use gpustub_core::device_link::{LoadFacts, load_faults};
use gpustub_image::ImageKind;
use gpustub_image::edit::Inspection;

use crate::package_plan::{ImagePlan, PackagePlan};

/// Reason why an image with the requirements `edited` would not load; `None`: it would.
pub fn load_fault(
    package: &Package,
    plan: &PackagePlan,
    image: &ImagePlan,
    edited: &Inspection,
) -> Option<String> {
    let original = (package.all_images()).find(|original| original.member.path == image.path)?;
    let stub = plan.stubs.get(image.stub)?;
    if original.is_pe() {
        // Windows searches the image's directory, where the stub library is, before all others.
        return None;
    }
    let facts = LoadFacts {
        is_program: edited.kind != ImageKind::Library,
        has_interpreter: edited.kind == ImageKind::Program,
        needed: edited.needed.clone(),
        run_path: edited.runpath.clone(),
        ..LoadFacts::default()
    };
    let has_file =
        |path: &str| (package.members.iter()).any(|member| installed(&member.path) == path);
    let is_kept = |path: &str| has_file(path) && plan.removed.iter().all(|removed| removed != path);
    let is_stub = |path: &str| stub.paths.iter().any(|stub| path == installed(stub));
    let leads_to = |run_path: Option<&str>, name: &str, is_file: &dyn Fn(&str) -> bool| {
        paths(&original, run_path, name).any(|path| is_file(&path))
    };
    let before = original.facts.link.runpath.as_deref();
    let after = facts.run_path.as_deref();
    let is_unreachable = |name: &str| {
        if name == stub.file {
            !leads_to(after, name, &is_stub)
        } else {
            leads_to(before, name, &has_file) && !leads_to(after, name, &is_kept)
        }
    };
    let faults = load_faults(&facts, &|_| true, &is_unreachable);
    faults.first().map(ToString::to_string)
}

/// Paths in the package at which the loader searches a library for an image.
fn paths<'a>(
    image: &'a PackageImage<'a>,
    run_path: Option<&'a str>,
    name: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let entries = run_path.into_iter().flat_map(|path| path.split(':'));
    entries.filter_map(move |entry| match resolve_entry(image, entry) {
        SearchDir::Inside(directory) => Some(join(&directory, name)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package_plan::StubPlan;
    use gpustub_check::{ContainerKind, Content, Member};
    use gpustub_image::{ImageFacts, ImageFormat};

    fn member(path: &str, run_path: &str) -> Member {
        let mut facts = ImageFacts::default();
        facts.link.runpath = Some(run_path.to_owned());
        Member {
            path: path.to_owned(),
            library: None,
            size: 0,
            content: Content::Image(Box::new(facts)),
        }
    }

    fn fault(run_path: &str, removed: &[&str]) -> Option<String> {
        let run_path_before = "$ORIGIN/../lib:/usr/local/cuda/lib64";
        let package = Package {
            name: "x.whl".to_owned(),
            outer: None,
            kind: ContainerKind::Wheel,
            size: 0,
            members: vec![
                member("x-1.data/platlib/x/_core.so", run_path_before),
                member("lib/libbase.so", ""),
            ],
            flaws: Vec::new(),
        };
        let image = ImagePlan {
            path: "x-1.data/platlib/x/_core.so".to_owned(),
            stub: 0,
            request: Default::default(),
        };
        let plan = PackagePlan {
            stubs: vec![StubPlan {
                file: "libgpustub_x.so".to_owned(),
                paths: vec!["x.libs/libgpustub_x.so".to_owned()],
                format: ImageFormat::Elf,
                machine: "x86_64".to_owned(),
                libraries: Vec::new(),
            }],
            removed: removed.iter().map(ToString::to_string).collect(),
            ..PackagePlan::default()
        };
        let edited = Inspection {
            needed: ["libgpustub_x.so", "libbase.so", "libc.so.6"]
                .map(str::to_owned)
                .into(),
            runpath: Some(run_path.to_owned()),
            ..Inspection::default()
        };
        load_fault(&package, &plan, &image, &edited)
    }

    #[test]
    fn libraries_of_the_package_are_found_after_an_edit() {
        let complete = "$ORIGIN/../lib:$ORIGIN/../x.libs";
        let no_path = "cannot be loaded: no run path leads to ";
        for (run_path, removed, lost) in [
            (complete, &[][..], None),
            ("$ORIGIN/../lib", &[], Some("libgpustub_x.so")),
            (
                "$ORIGIN/../lib:$ORIGIN/x.libs",
                &[],
                Some("libgpustub_x.so"),
            ),
            ("$ORIGIN/../x.libs", &[], Some("libbase.so")),
            (complete, &["lib/libbase.so"], Some("libbase.so")),
        ] {
            let lost = lost.map(|name| format!("{no_path}{name}"));
            assert_eq!(fault(run_path, removed), lost, "{run_path} {removed:?}");
        }
    }
}
