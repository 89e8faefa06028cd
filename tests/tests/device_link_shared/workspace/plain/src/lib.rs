/// A crate without CUDA in between.
pub fn run() -> i32 {
    area::run()
}
