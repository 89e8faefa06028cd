//! A library.

pub fn run() {}
