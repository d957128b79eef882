//! Functions by address and by name: symbol tables as linkers write them, and names as programmers do.

mod demangle;
mod functions;

pub(crate) use demangle::demangle;
pub(crate) use functions::{Function, NamedSymbol, Names};
