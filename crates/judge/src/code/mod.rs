//! The code that makes the calls: its language, files and owner.

pub(crate) mod author;
pub(crate) mod language;
pub(crate) mod owner;
