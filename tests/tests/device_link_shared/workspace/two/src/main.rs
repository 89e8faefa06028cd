//! Links two libraries of which no final is over both.

fn main() {
    println!("status {}", area::run() | volume::run());
}
