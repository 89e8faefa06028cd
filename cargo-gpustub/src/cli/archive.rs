//! What `archive` takes.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::{Cargo, TextOrJson};

/// `archive`.
#[derive(Debug, Args)]
pub struct Archive {
    /// What to do.
    #[command(subcommand)]
    pub command: ArchiveCommand,
}

/// The commands of `archive`.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Make one file of many archives, each member once
    Build(ArchiveBuild),
    /// List the views, or the members of one
    List(ArchiveList),
    /// Say which member of which layer defines a symbol
    Find(ArchiveFind),
    /// List the symbols of the views, each with its member
    Nm(ArchiveList),
    /// Write a view as an ordinary archive, or its members as files
    Extract(ArchiveExtract),
    /// Check all contents against what was written
    Verify(ArchiveVerify),
    /// Show what the views have, and what sharing saves
    Stats(ArchiveStats),
}

/// `archive build`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").required(true).multiple(true).args(["inputs", "view", "table"]))]
pub struct ArchiveBuild {
    /// Archives, folders or object files, each a view that has the name of the file
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// A view of several inputs: the first one that has a symbol wins; `gfx900=gfx9.a,common.a`
    #[arg(long, value_name = "NAME=INPUT,…", value_parser = name_and_paths)]
    pub view: Vec<(String, Vec<PathBuf>)>,
    /// The view that ordinary tools see [default: the first]
    #[arg(long, value_name = "NAME", conflicts_with = "no_default")]
    pub default: Option<String>,
    /// Let ordinary tools see no view
    #[arg(long)]
    pub no_default: bool,
    /// Let views share LLVM bitcode: leave its processor out, which who compiles it gives (-mcpu, -mattr)
    #[arg(long)]
    pub canonical: bool,
    /// Print the definitions that an earlier layer overrides
    #[arg(long)]
    pub shadows: bool,
    /// Build what `[archive.NAME]` in GpuStub.toml says
    #[arg(long, value_name = "NAME")]
    #[arg(conflicts_with_all = ["inputs", "view", "default", "no_default", "canonical"])]
    pub table: Option<String>,
    /// Which package's GpuStub.toml.
    #[command(flatten)]
    pub cargo: Cargo,
}

/// `archive list` and `archive nm`.
#[derive(Debug, Args)]
pub struct ArchiveList {
    /// A super-archive
    pub file: PathBuf,
    /// Of this view alone
    #[arg(long, value_name = "NAME")]
    pub view: Option<String>,
    /// How the list is written: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
}

/// `archive find`.
#[derive(Debug, Args)]
pub struct ArchiveFind {
    /// A super-archive
    pub file: PathBuf,
    /// Symbols, as linkers know them
    #[arg(required = true, value_name = "SYMBOL")]
    pub symbols: Vec<String>,
    /// In this view alone
    #[arg(long, value_name = "NAME")]
    pub view: Option<String>,
    /// How the list is written: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
}

/// `archive extract`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("to").required(true).args(["output", "members"]))]
pub struct ArchiveExtract {
    /// A super-archive
    pub file: PathBuf,
    /// The view
    #[arg(long, value_name = "NAME")]
    pub view: String,
    /// Write an ordinary archive
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write each member as a file into this folder
    #[arg(long, value_name = "DIR")]
    pub members: Option<PathBuf>,
}

/// `archive verify`.
#[derive(Debug, Args)]
pub struct ArchiveVerify {
    /// A super-archive
    pub file: PathBuf,
}

/// `archive stats`.
#[derive(Debug, Args)]
pub struct ArchiveStats {
    /// A super-archive
    pub file: PathBuf,
    /// How the figures are written: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
}

fn name_and_paths(text: &str) -> Result<(String, Vec<PathBuf>), String> {
    let (name, paths) = text.split_once('=').unwrap_or_default();
    let all: Vec<PathBuf> = paths.split(',').map(PathBuf::from).collect();
    if name.is_empty() || all.iter().any(|path| path.as_os_str().is_empty()) {
        return Err("write it as NAME=INPUT,INPUT, for example gfx900=gfx9.a,common.a".into());
    }
    Ok((name.to_owned(), all))
}
