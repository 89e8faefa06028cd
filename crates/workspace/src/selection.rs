//! Package selection: the options that `cargo gpustub` shares with cargo's own commands.

use std::process::Command;

use clap::Args;

/// Selected packages and features, and the options that are passed on to cargo.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// `-p`, `--workspace`, `--exclude`.
    #[command(flatten, next_help_heading = "Package selection")]
    pub workspace: clap_cargo::Workspace,
    /// `--features`, `--all-features`, `--no-default-features`.
    #[command(flatten, next_help_heading = "Feature selection")]
    pub features: clap_cargo::Features,
    /// `--manifest-path`.
    #[command(flatten, next_help_heading = "Manifest options")]
    pub manifest: clap_cargo::Manifest,
    /// Assert that `Cargo.lock` will remain unchanged
    #[arg(long, help_heading = "Manifest options")]
    pub locked: bool,
    /// Run without accessing the network
    #[arg(long, help_heading = "Manifest options")]
    pub offline: bool,
    /// Equivalent to specifying both --locked and --offline
    #[arg(long, help_heading = "Manifest options")]
    pub frozen: bool,
    /// Override a cargo configuration value
    #[arg(long, value_name = "KEY=VALUE|PATH", help_heading = "Manifest options")]
    pub config: Vec<String>,
}

impl Selection {
    /// Whether `Cargo.lock` must not change: `--locked` or `--frozen`.
    pub fn is_locked(&self) -> bool {
        self.locked || self.frozen
    }

    /// Whether no option selects packages or features.
    pub fn selects_nothing(&self) -> bool {
        let (packages, features) = (&self.workspace, &self.features);
        let lists = [&packages.package, &packages.exclude, &features.features];
        let flags = [
            packages.workspace,
            packages.all,
            features.all_features,
            features.no_default_features,
        ];
        lists.iter().all(|list| list.is_empty()) && !flags.contains(&true)
    }

    /// Arguments about lock file, network and configuration, for any command of cargo.
    pub fn cargo_arguments(&self) -> Vec<String> {
        let flags = [
            (self.locked, "--locked"),
            (self.offline, "--offline"),
            (self.frozen, "--frozen"),
        ];
        let mut arguments = Vec::new();
        for (is_set, flag) in flags {
            arguments.extend(is_set.then(|| flag.to_owned()));
        }
        for value in &self.config {
            arguments.extend(["--config".to_owned(), value.clone()]);
        }
        arguments
    }

    /// Appends the feature options to a command of cargo.
    pub fn add_features(&self, cargo: &mut Command) {
        add_features(&self.features, cargo);
    }
}

/// Appends feature options to a command of cargo.
pub fn add_features(features: &clap_cargo::Features, cargo: &mut Command) {
    let flags = [
        ("--all-features", features.all_features),
        ("--no-default-features", features.no_default_features),
    ];
    for (flag, is_set) in flags {
        cargo.args(is_set.then_some(flag));
    }
    for feature in &features.features {
        cargo.args(["--features", feature]);
    }
}
