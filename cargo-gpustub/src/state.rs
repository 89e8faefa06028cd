//! State of a workspace that several commands read: no command imports another.

pub mod dlopen;
pub mod facts;
pub mod headers;
pub mod pending;
pub mod plan_errors;
