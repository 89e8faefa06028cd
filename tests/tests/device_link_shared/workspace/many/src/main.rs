//! Links two libraries without a common final, one through a crate without CUDA.

fn main() {
    println!("status {}", plain::run() | volume::run());
}
