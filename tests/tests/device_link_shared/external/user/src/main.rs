//! Links the outputs of another workspace.

fn main() {
    println!("status {}", acme::run());
}
