//! `gpustub_archive.h`: conformance, targets, closure, languages, installation.

mod cases;
mod conformance;
mod data_sets;
mod differential;
mod gaps;
mod header;
mod install;
mod reader;
mod targets;
mod walker;
mod written;
mod zstd;
