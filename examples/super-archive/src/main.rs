//! Links `cos(float16)` for the requested GPU family, from the archive in this program, and calls
//! it. The members are the host's own object files, so that this runs everywhere.

mod link;
mod module;

use std::error::Error;
use std::process::ExitCode;

use gpustub_archive::SuperArchive;

/// Archive written by the build script.
static BUILTINS: &[u8] = include_bytes!(env!("GPUSTUB_ARCHIVE_BUILTINS"));

/// `cos(float16)`, as OpenCL's compilers name it.
const COS16: &str = "_Z3cosDv16_f";

fn main() -> ExitCode {
    let Some(family) = std::env::args().nth(1) else {
        eprintln!("usage: super-archive FAMILY");
        return ExitCode::from(2);
    };
    match run(&family) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(family: &str) -> Result<(), Box<dyn Error>> {
    let builtins = SuperArchive::parse(BUILTINS)?;
    let Some(view) = builtins.best_view(family)? else {
        return Err(format!("no code for {family}; {}", families(&builtins)?).into());
    };

    let closure = link::closure(view, COS16)?;
    for found in &closure {
        println!("{:<8} {}", found.name, found.layer);
    }

    let file = link::link(&closure)?;
    let module = module::Module::open(file.path())?;
    let x: [f32; 16] = std::array::from_fn(|i| i as f32 / 10.0);
    let y = module.cos16(COS16, &x)?;
    let off = (0..16).map(|i| (y[i] - x[i].cos()).abs());
    let off = off.fold(0.0, f32::max);
    println!("cos(1.5) = {:.6}, off by at most {off:.0e}", y[15]);
    Ok(())
}

fn families(builtins: &SuperArchive<'_>) -> Result<String, gpustub_archive::Error> {
    let mut names = Vec::new();
    for view in builtins.views() {
        names.push(String::from_utf8_lossy(view?.name()).into_owned());
    }
    Ok(format!("only for {}", names.join(", ")))
}
