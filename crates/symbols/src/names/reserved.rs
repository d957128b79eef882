//! Names that C libraries reserve.

use super::functions::{NamedSymbol, Names};

impl Names {
    /// Returns the start of the first function behind `after` whose name a C library reserves.
    pub(crate) fn first_of_libc(&self, after: u64) -> Option<u64> {
        let is_libc = |s: &NamedSymbol<'_>| s.name.starts_with(b"__libc_") || (!s.is_static && is_reserved(&s.name));
        self.all().filter(|symbol| symbol.addr > after && is_libc(symbol)).map(|symbol| symbol.addr).min()
    }
}

/// Returns true for names that the C standard reserves for implementations, except those of compilers and C++.
pub(crate) fn is_reserved(name: &[u8]) -> bool {
    const OTHERS: &[&[u8]] = &[
        b"_Z",
        b"__Z",
        b"_R",
        b"__rust",
        b"__rdl",
        b"__rg_",
        b"_Unwind_",
        b"__cxa_",
        b"__gxx_",
        b"__gnu",
        b"__asan",
        b"__ubsan",
        b"__tsan",
        b"__sanitizer",
        b"__interceptor",
        b"__gcov",
        b"__do_global",
        b"_GLOBAL_",
        b"__deregister",
        b"__register",
        b"__emutls",
        b"__dso",
    ];
    let reserved = matches!(name, [b'_', b'_' | b'A'..=b'Z', ..]);
    reserved && !OTHERS.iter().any(|o| name.starts_with(o))
}
