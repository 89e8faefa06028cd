//! Super-archives of real libraries of device code, as used by programs that link for GPUs.

mod chain;
mod embedded;
mod levels;
mod libclc;
mod libdevice;
mod naive;

/// Counts the allocations of a thread.
#[global_allocator]
static ALLOCATOR: embedded::Counting = embedded::Counting;
