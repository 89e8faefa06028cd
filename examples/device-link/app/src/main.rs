//! Prints a report. With a path as argument, also that of the plugin there.

use gpustub_final_app as _; // the device link of its CUDA code

fn main() {
    println!("app: {}", report::report(1000));
}

#[test]
fn a_report_is_written_everywhere() {
    assert!(!report::report(3).contains("WRONG"));
}
