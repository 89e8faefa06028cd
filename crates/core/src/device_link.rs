//! Where relocatable CUDA code is device-linked: a function of a graph of libraries and programs.
//!
//! Each object of relocatable code calls, when its image is loaded, a function that only a device
//! link over it defines. In a process each object needs just one such link, and the link registers
//! its kernels only when all its objects have called. [`plan`] says for every node of a
//! [`Graph`] what is built of it, which device links there are, over what, and what is linked where;
//! it refuses graphs in which an object would have none or several.

mod check;
mod explain;
mod graph;
mod notation;
mod plan;
mod process;
mod render;
mod runtime;
mod walk;

pub use graph::{Graph, Kind, Link, Node, NodeForm, Open};
pub use plan::{Artifact, LinkItem, LinkPlan, Planned, Role, Why, plan};
pub use runtime::{hidden_stubs, static_runtime};
