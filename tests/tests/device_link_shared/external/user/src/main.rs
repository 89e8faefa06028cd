//! Links what another workspace has built.

fn main() {
    println!("status {}", acme::run());
}
