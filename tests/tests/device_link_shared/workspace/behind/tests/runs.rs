#[test]
fn it_runs() {
    assert_eq!(plain::run(), 0);
}
