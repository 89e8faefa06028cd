//! Calls CUDA code, like the program.

fn main() {
    println!("status {}", plain::run());
}
