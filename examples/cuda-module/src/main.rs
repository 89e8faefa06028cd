//! Loads two modules of device code with cudarc, and runs a kernel of each.

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

/// A device link over `cuda/*.cu`.
static ORBITS: &[u8] = include_bytes!(env!("GPUSTUB_MODULE_ORBITS"));
/// `ptx/double.cu`.
static DOUBLE: &str = include_str!(env!("GPUSTUB_MODULE_TEXT_DOUBLE"));

fn run(count: i32) -> Result<Vec<f32>, DriverError> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let fall = context
        .load_module(Ptx::from_binary(ORBITS.to_vec()))?
        .load_function("fall")?;
    let twice = context
        .load_module(Ptx::from_src(DOUBLE))?
        .load_function("twice")?;
    let mut speeds = stream.alloc_zeros::<f32>(count.unsigned_abs() as usize)?;
    for kernel in [&fall, &twice] {
        let mut launch = stream.launch_builder(kernel);
        launch.arg(&mut speeds).arg(&count);
        // SAFETY: both kernels take a pointer to `count` floats and `count`.
        unsafe { launch.launch(LaunchConfig::for_num_elems(count.unsigned_abs())) }?;
    }
    stream.clone_dtoh(&speeds)
}

fn main() {
    match run(2) {
        Ok(speeds) => println!("speeds: {speeds:?}"),
        Err(error) => println!("no GPU: {:?}", error.0),
    }
}
