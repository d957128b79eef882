//! A pattern as causes' files write it. The build script reads built-in causes by the same type.

use super::fact::{AskedFacts, Fact, with_facts};
use serde::Deserialize;
use std::collections::BTreeMap;

macro_rules! pattern_file {
    ($($(#[$doc:meta])* $name:ident => $fact:ident { $($_:tt)* }),* $(,)?) => {
        /// A pattern as a file writes it.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct PatternFile {
            #[serde(default)]
            pub kinds: Vec<String>,
            #[serde(default)]
            pub syscalls: Vec<String>,
            #[serde(default)]
            pub apis: Vec<String>,
            #[serde(default)]
            pub objects: Vec<String>,
            #[serde(default)]
            pub on: Vec<String>,
            #[serde(default)]
            pub languages: Vec<String>,
            #[serde(default)]
            pub args: BTreeMap<String, Vec<i32>>,
            #[serde(default)]
            pub not_args: BTreeMap<String, Vec<i32>>,
            #[serde(default)]
            pub results: Vec<i64>,
            $($name: Option<bool>,)*
            #[serde(default)]
            pub remark: bool,
            pub why: Option<String>,
        }

        impl PatternFile {
            /// Returns the facts that the pattern asks for.
            pub(crate) fn facts(&self) -> AskedFacts {
                AskedFacts::default()$(.ask(Fact::$fact, self.$name))*
            }
        }
    };
}
with_facts!(pattern_file);
