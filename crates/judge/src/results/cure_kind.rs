//! The kinds of change that cures are.

use crate::collections::named::named;
use serde::Deserialize;

named! {
    /// The kind of change that a cure is.
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    CureKind:
    /// A newer version of a program or library.
    Upgrade = "upgrade",
    /// A setting of the program or the box.
    Configuration = "configuration",
    /// An environment variable.
    Environment = "environment",
    /// A library of systoll's that is loaded before the others.
    Shim = "shim",
    /// Another build of the same source.
    BuildFlag = "build-flag",
    /// A change of the source.
    Code = "code",
    /// A change of the language's own code, which makes the calls: no reader makes it.
    Language = "language",
}

impl CureKind {
    /// Returns true if the cure needs no change of code or build.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Configuration | Self::Environment)
    }
}
