//! Demangling: names as they are in the source.

/// Returns a name as it is in the source: Rust and C++ demangled, without hashes; others unchanged.
pub(crate) fn demangle(name: &str) -> String {
    // These suffixes of Go's linker mark its two calling conventions.
    if let Some(go) = name.strip_suffix(".abi0").or_else(|| name.strip_suffix(".abiinternal")) {
        return go.to_owned();
    }
    // Compilers add suffixes to names of parts of a function: `.cold`, `.part.0`, `.isra.0`, `.constprop.0`.
    let plain = match name.find(['.', '@']).and_then(|at| name.split_at_checked(at)) {
        Some((plain, suffix)) if !plain.is_empty() && is_clone_suffix(suffix) => plain,
        _ => name,
    };
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if plain.starts_with("_Z") || plain.starts_with("__Z") {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type().recursion_limit(64);
        if let Ok(symbol) =
            cpp_demangle::Symbol::new_with_options(plain, &cpp_demangle::ParseOptions::default().recursion_limit(96))
            && let Ok(text) = symbol.demangle_with_options(&options)
            && text.len() < 4096
        {
            return text;
        }
    }
    plain.to_owned()
}

fn is_clone_suffix(suffix: &str) -> bool {
    suffix.starts_with('@')
        || [".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".localalias", ".llvm."]
            .iter()
            .any(|s| suffix.starts_with(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_as_in_the_source() {
        for (mangled, plain) in [
            ("localtime", "localtime"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"),
            ("_ZN3foo3bar17h0123456789abcdefE", "foo::bar"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("work.cold", "work"),
            ("work.constprop.0", "work"),
            ("main.main", "main.main"),
            ("syscall.rawSyscallNoError.abi0", "syscall.rawSyscallNoError"),
            ("os.(*File).Write", "os.(*File).Write"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(demangle(mangled), plain);
        }
    }
}
