//! Super-archives and the tools for static libraries, which show, link and change them.

mod bitcode;
mod canonical;
mod cases;
mod changes;
mod links;
mod machines;
mod markings;
mod module_text;
mod overrides;
mod packages;
mod reads;
mod refresh;
mod sample;
mod second_reader;
mod split;
mod split_programs;
mod windows;
