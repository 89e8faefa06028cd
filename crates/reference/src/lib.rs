//! Reference of gpustub: all diagnostic codes, the JSON schema of `GpuStub.toml`, and the generated
//! pages of `docs/`.

pub mod codes;
mod pages;
mod schema;

pub use pages::pages;
pub use schema::schema;
