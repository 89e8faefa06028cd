//! Two libraries of which no final is over both, one behind a crate without CUDA.

fn main() {
    println!("status {}", plain::run() | volume::run());
}
