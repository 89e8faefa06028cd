//! Prints what both libraries report.

fn main() {
    println!("driver version: {:?}", driver_info::driver_version());
    println!("NVML: {:?}", driver_info::init_nvml());
    println!("devices: {:?}", kernel_compiler::device_count());
    println!("NVRTC version: {:?}", kernel_compiler::nvrtc_version());
}
