//! `gpustub_archive.h`: conformance, targets, closure, languages, installation.

mod cases;
mod conformance;
mod header;
mod install;
mod walker;
