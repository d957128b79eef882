#![doc = include_str!("../README.md")]
#![cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), expect(unused))]

mod counts;
mod dispatch;
mod limits;
#[cfg(feature = "criterion")]
mod measurement;
mod names;
mod problem;

pub use counts::{Block, Caller, Counts, calls};
#[doc(hidden)]
pub use dispatch::{PythonFrames, ScriptFrame};
#[doc(hidden)]
pub use limits::{check, known};
#[cfg(feature = "criterion")]
pub use measurement::SystemCalls;
pub use names::{all_made_as, made_as, name, names, number};
pub use problem::{Incomplete, Unavailable};
#[doc(hidden)]
pub mod abi;
