//! The kinds of change that cures are.

use serde::Deserialize;

/// The kind of change that a cure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CureKind {
    /// A newer version of a program or library.
    Upgrade,
    /// A setting of the program or the box.
    Configuration,
    /// An environment variable.
    Environment,
    /// A library of systoll's that is loaded before the others.
    Shim,
    /// Another build of the same source.
    BuildFlag,
    /// A change of the source.
    Code,
}

impl CureKind {
    /// Returns true if the cure needs no change of code or build.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Configuration | Self::Environment)
    }

    /// Returns the kind's name in causes' files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Configuration => "configuration",
            Self::Environment => "environment",
            Self::Shim => "shim",
            Self::BuildFlag => "build-flag",
            Self::Code => "code",
        }
    }
}
