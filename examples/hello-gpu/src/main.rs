//! Prints the GPU libraries of this machine, and does real work with each that it finds.
//!
//! The program builds and starts on a machine without any of them. The exit code is 0 if the
//! present libraries work: a missing library, or one without a device, is not a failure.

mod cuda;
mod hip;
mod nvrtc;
mod opencl;
mod table;

use std::process::ExitCode;

/// Lines about the work done with a library, or an error.
type Work = Result<Vec<String>, String>;

/// Length of the vectors that the kernels add: `a[i] = i`, `b[i] = 2 i`. Sums are exact in `f32`.
const LENGTH: u16 = u16::MAX;

fn main() -> ExitCode {
    const LIBRARIES: [&str; 5] = ["cuda", "cudart", "nvrtc", "opencl", "hip"];
    print!("{}", table::render(&LIBRARIES));

    let ptx = gpustub::is_available("nvrtc").then(nvrtc::compile);
    let kernel = ptx.as_ref().and_then(|ptx| ptx.as_deref().ok());
    let work = [
        (
            "nvrtc",
            ptx.clone().map(|ptx| ptx.map(|ptx| nvrtc::describe(&ptx))),
        ),
        (
            "cuda",
            gpustub::is_available("cuda").then(|| cuda::driver(kernel)),
        ),
        (
            "cudart",
            gpustub::is_available("cudart").then(cuda::runtime),
        ),
        ("opencl", gpustub::is_available("opencl").then(opencl::run)),
        ("hip", gpustub::is_available("hip").then(hip::run)),
    ];
    let mut code = ExitCode::SUCCESS;
    for (library, result) in work {
        let Some(result) = result else { continue };
        println!("\n{library}:");
        match result {
            Ok(lines) => lines.iter().for_each(|line| println!("  {line}")),
            Err(error) => {
                println!("  FAILED: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// The vectors to add.
fn inputs() -> (Vec<f32>, Vec<f32>) {
    let a: Vec<f32> = (0..LENGTH).map(f32::from).collect();
    let b = a.iter().map(|x| 2.0 * x).collect();
    (a, b)
}

/// Compares every sum with its expected value, and adds them up.
fn verify(sums: &[f32]) -> Result<f64, String> {
    let (a, b) = inputs();
    for (i, (&sum, expected)) in sums
        .iter()
        .zip(a.iter().zip(&b).map(|(a, b)| a + b))
        .enumerate()
    {
        if sum != expected {
            return Err(format!(
                "wrong sum: element {i} is {sum} instead of {expected}"
            ));
        }
    }
    Ok(sums.iter().copied().map(f64::from).sum())
}
