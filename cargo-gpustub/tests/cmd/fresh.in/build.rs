use std::error::Error;

// fn main() {
fn main() -> Result<(), Box<dyn Error>> {
    // Ours.
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
