//! Functions by address and by name: symbol tables, and demangled names.

mod demangle;
mod functions;
mod reserved;

pub(crate) use demangle::demangle;
pub use functions::Function;
pub(crate) use functions::Names;
pub(crate) use reserved::is_reserved;
