//! Links one library, whose final has the device link.

fn main() {
    println!("status {}", area::run());
}

#[test]
fn it_runs() {
    assert_eq!(area::run(), 0);
}
