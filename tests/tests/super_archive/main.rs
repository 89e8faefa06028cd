//! Super-archives in the hands of the tools of static libraries: what they show, link and change.

mod bitcode;
mod canonical;
mod cases;
mod changes;
mod links;
mod machines;
mod reads;
mod sample;
mod second_reader;
