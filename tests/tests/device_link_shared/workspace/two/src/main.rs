//! Links two libraries without a common final.

fn main() {
    println!("status {}", area::run() | volume::run());
}
