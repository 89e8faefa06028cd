/// Calls a crate with CUDA code, itself without any.
pub fn run() -> i32 {
    area::run()
}
