//! The option that says when to colour.

use clap::{Args, ValueEnum};

/// The option that says when to colour.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ColorArgs {
    /// When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(id = "color", long = "color", value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub when: When,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
