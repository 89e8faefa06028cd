//! The build of one package: stubs, device links and super-archives, in this order.

#[cfg(not(all(feature = "archive", feature = "device-link")))]
use gpustub_core::diag::MISSING_BUILD_FEATURE;

#[cfg(feature = "archive")]
use crate::archive;
#[cfg(feature = "device-link")]
use crate::device_link;
use crate::error::Error;
use crate::input::Input;
use crate::lock::Lock;
use crate::output::Output;
use crate::settings::Settings;
use crate::stubs;

/// Builds everything that `GpuStub.toml` declares. Prints nothing: the directives are in the result.
///
/// # Errors
///
/// Problems of `GpuStub.toml`, of the tools and of the file system; see [`Error::code`].
pub fn build(settings: &Settings) -> Result<Output, Error> {
    let mut output = Output::default();
    // The build script of a killed cargo may still run, in the OUT_DIR that the next cargo uses.
    let _lock = settings.out_dir().ok().and_then(|dir| Lock::wait(&dir));
    // A documentation build ignores the user's tree: it has to succeed for every
    // target, also for targets without stubs.
    if settings.env.get("DOCS_RS").is_some() {
        #[cfg(feature = "device-link")]
        {
            device_link::build_empty_declared(settings, &mut output)?;
            device_link::build_nothing(settings)?;
        }
        #[cfg(feature = "archive")]
        archive::build_empty_declared(settings, &mut output)?;
    } else {
        let input = Input::read(settings, &mut output.directives)?;
        for library in &input.plan.libraries {
            if library.stubbed {
                output.stubs.push(library.library.id.clone());
            }
        }
        // Without stubs only the run time, for programs that query the libraries (`gpustub.h`).
        if !input.plan.libraries.is_empty() {
            stubs::build(settings, &input.plan, &mut output)?;
        }
        stubs::link_real(&input.plan, &mut output.directives);
        build_device_links(settings, &input, &mut output)?;
        build_archives(settings, &input, &mut output)?;
    }
    // Last, when every variable has been read.
    let mut directives = settings.env.rerun_lines();
    directives.append(&mut output.directives);
    output.directives = directives;
    Ok(output)
}

#[cfg(feature = "device-link")]
use device_link::build_declared as build_device_links;

#[cfg(not(feature = "device-link"))]
fn build_device_links(_: &Settings, input: &Input, _: &mut Output) -> Result<(), Error> {
    require_feature("device-link", &input.manifest.device_link_names)
}

#[cfg(feature = "archive")]
use archive::build_declared as build_archives;

#[cfg(not(feature = "archive"))]
fn build_archives(_: &Settings, input: &Input, _: &mut Output) -> Result<(), Error> {
    require_feature("archive", &input.manifest.archive_names)
}

/// Rejects a declared table whose feature is disabled. Table and feature have the same name.
#[cfg(not(all(feature = "archive", feature = "device-link")))]
fn require_feature(table: &str, declared: &[String]) -> Result<(), Error> {
    let Some(first) = declared.first() else {
        return Ok(());
    };
    Err(Error::new(
        &MISSING_BUILD_FEATURE,
        format!("[{table}.{first}] needs the feature `{table}` of gpustub-build"),
    )
    .help(format!(
        "in Cargo.toml: [build-dependencies] gpustub-build = {{ version = \"0.1\", \
         features = [\"{table}\"] }}; `cargo gpustub sync` writes it",
    )))
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_build_waits_for_another_one_in_its_out_dir() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::wait(dir.path());
        let path = dir.path().to_owned();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let settings = Settings {
                env: crate::Env::from_iter([("DOCS_RS", "1")]),
                manifest_path: Some(path.join("GpuStub.toml")),
                out_dir: Some(path),
                ..Settings::default()
            };
            sender.send(build(&settings).is_ok())
        });
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
        drop(lock);
        assert_eq!(receiver.recv(), Ok(true));
    }
}
