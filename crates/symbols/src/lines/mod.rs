//! Places in source code: lines and inlined functions by DWARF, and lines of scripts, interned so that
//! they stand among a stack's frames.

mod ahead;
pub(crate) mod dwarf;
mod scope;
mod script;

pub(crate) use ahead::LinesAhead;
pub use ahead::Spawn;
pub(crate) use script::{MAX_NAME, ScriptLine, ScriptLines};
