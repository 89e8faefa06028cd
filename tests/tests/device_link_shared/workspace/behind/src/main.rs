//! Its CUDA code stands behind a crate without any.

fn main() {
    println!("status {}", plain::run());
}
