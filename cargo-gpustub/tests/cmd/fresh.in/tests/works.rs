// Copyright.

#[test]
fn works() {}
