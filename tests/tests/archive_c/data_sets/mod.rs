//! Super-archives of real libraries for many targets: each symbol, each member, and their sizes.

mod compressed;
mod inputs;
mod reference;
mod sizes;
mod symbols;
