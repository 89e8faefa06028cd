//! Options of `archive`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use gpustub_workspace::selection::Selection;

use crate::cli::options::TextOrJson;

/// `archive`.
#[derive(Debug, Args)]
pub struct Archive {
    /// The command.
    #[command(subcommand)]
    pub command: ArchiveCommand,
}

/// The commands of `archive`.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Build a super-archive
    Build(ArchiveBuild),
    /// List views, or the members of a view
    List(ArchiveList),
    /// Find the member that defines a symbol
    Find(ArchiveFind),
    /// List symbols with their members
    Nm(ArchiveList),
    /// Extract a view as an ordinary archive or as files
    Extract(ArchiveExtract),
    /// Verify all contents against their hashes
    Verify(ArchiveVerify),
    /// Repair a super-archive after `strip -g` or a tool like it
    Refresh(ArchiveRefresh),
    /// Show sizes and sharing
    Stats(ArchiveStats),
}

/// `archive build`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").required(true).multiple(true).args(["inputs", "view", "manifest_archive"]))]
pub struct ArchiveBuild {
    /// Archives, views of super-archives (FILE:VIEW), directories, object files; each becomes a view
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// Write the super-archive to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Add a view of several inputs, first match wins: `gfx900=gfx9.a,common.a`
    #[arg(long, value_name = "NAME=INPUT,…", value_parser = name_and_paths)]
    pub view: Vec<(String, Vec<PathBuf>)>,
    /// View that ordinary tools see [default: the first]
    #[arg(long, value_name = "NAME", conflicts_with = "no_default_view")]
    pub default_view: Option<String>,
    /// Hide all views from ordinary tools
    #[arg(long)]
    pub no_default_view: bool,
    /// Unpack device code of fat objects: a view of each target, and `host`, the default one
    #[arg(long, conflicts_with = "view")]
    pub unpack: bool,
    /// Strip the processor from LLVM bitcode so that views share it (compile it with -mcpu, -mattr)
    #[arg(long)]
    pub canonical_bitcode: bool,
    /// Compress members, except those of the default view (zstd)
    #[arg(long)]
    pub compress: bool,
    /// Split LLVM bitcode modules into members that views share (needs llvm-dis, llvm-as)
    #[arg(long)]
    pub split: bool,
    /// Layer whose strong definitions can be overridden (-fPIC -fsemantic-interposition)
    #[arg(long, value_name = "LAYER")]
    pub interposable: Vec<String>,
    /// Print definitions overridden by earlier layers
    #[arg(long)]
    pub print_overrides: bool,
    /// Build `[archive.NAME]` of GpuStub.toml
    #[arg(long, value_name = "NAME")]
    #[arg(conflicts_with_all = ["inputs", "view", "default_view", "no_default_view", "unpack", "canonical_bitcode", "compress", "split", "interposable"])]
    pub manifest_archive: Option<String>,
    /// Package of the GpuStub.toml.
    #[command(flatten)]
    pub cargo: Selection,
}

/// `archive list` and `archive nm`.
#[derive(Debug, Args)]
pub struct ArchiveList {
    /// A super-archive
    pub file: PathBuf,
    /// Only this view
    #[arg(long, value_name = "NAME")]
    pub view: Option<String>,
    /// Output format: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
}

/// `archive find`.
#[derive(Debug, Args)]
pub struct ArchiveFind {
    /// A super-archive
    pub file: PathBuf,
    /// Symbol names as linkers see them
    #[arg(required_unless_present = "best", value_name = "SYMBOL")]
    pub symbols: Vec<String>,
    /// Only this view
    #[arg(long, value_name = "NAME")]
    pub view: Option<String>,
    /// Only the view that a program would choose for TARGET (gfx1101, sm_86, x86-64-v3); without SYMBOL, print its name
    #[arg(long, value_name = "TARGET", conflicts_with = "view")]
    pub best: Option<String>,
    /// Output format: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
}

/// `archive extract`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("to").required(true).args(["output", "members"]))]
pub struct ArchiveExtract {
    /// A super-archive
    pub file: PathBuf,
    /// View to extract
    #[arg(long, value_name = "NAME")]
    pub view: String,
    /// Write an ordinary archive to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write each member as a file below --out-dir
    #[arg(long, requires = "out_dir")]
    pub members: bool,
    /// Extract members as linkers see them: what an earlier layer overrides is undefined
    #[arg(long)]
    pub linked: bool,
    /// Directory for --members
    #[arg(long, value_name = "DIR", requires = "members")]
    pub out_dir: Option<PathBuf>,
}

/// `archive verify`.
#[derive(Debug, Args)]
pub struct ArchiveVerify {
    /// A super-archive
    pub file: PathBuf,
}

/// `archive refresh`.
#[derive(Debug, Args)]
pub struct ArchiveRefresh {
    /// A super-archive
    pub file: PathBuf,
}

/// `archive stats`.
#[derive(Debug, Args)]
pub struct ArchiveStats {
    /// A super-archive
    pub file: PathBuf,
    /// Output format: text, json
    #[arg(long, hide_possible_values = true, default_value = "text")]
    pub format: TextOrJson,
}

fn name_and_paths(text: &str) -> Result<(String, Vec<PathBuf>), String> {
    let (name, paths) = text.split_once('=').unwrap_or_default();
    let paths: Vec<PathBuf> = paths.split(',').map(PathBuf::from).collect();
    if name.is_empty() || paths.iter().any(|path| path.as_os_str().is_empty()) {
        return Err("write it as NAME=INPUT,INPUT, for example gfx900=gfx9.a,common.a".into());
    }
    Ok((name.to_owned(), paths))
}
