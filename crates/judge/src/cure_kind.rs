//! What kind of change a cure is.

use serde::Deserialize;

/// What kind of change a cure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CureKind {
    /// A newer version of what the program uses.
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
    /// Whether it costs no change of code or build.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Configuration | Self::Environment)
    }

    /// Its name in causes' files.
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
