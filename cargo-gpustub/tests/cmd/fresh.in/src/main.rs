//! The program.
#![allow(unused)]

use std::env;

fn main() {}
