//! The same test as an integration test.

use gpustub_final_app as _; // the device link of its CUDA code

#[test]
fn a_report_is_written_everywhere() {
    assert!(!report::report(5).contains("WRONG"));
}
