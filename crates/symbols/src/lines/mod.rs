//! Source locations: lines and inlined functions from DWARF, and lines of scripts, which are interned as frames.

mod ahead;
pub(crate) mod dwarf;
mod scope;
mod script;

pub(crate) use ahead::LinesAhead;
pub use ahead::Spawn;
pub(crate) use script::{MAX_NAME, ScriptLine, ScriptLines};
