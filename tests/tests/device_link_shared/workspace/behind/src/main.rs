//! Links CUDA code through a crate without any.

fn main() {
    println!("status {}", plain::run());
}
