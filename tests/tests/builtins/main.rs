//! Super-archives of real libraries of device code, as the programs have them that link for GPUs.

mod chain;
mod embedded;
mod levels;
mod libclc;
mod libdevice;
mod naive;

/// Counts what a thread allocates.
#[global_allocator]
static ALLOCATOR: embedded::Counting = embedded::Counting;
