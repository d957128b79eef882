//! Which files are language runtimes, by the data they export.

use crate::elf::ElfFile;
use object::LittleEndian as Le;
use object::elf;
use systoll_binfile::c_str;

/// What a runtime has exported, as ELF virtual addresses.
#[derive(Clone, Debug)]
pub(crate) enum Runtime {
    /// CPython.
    Python {
        /// `_PyRuntime`.
        runtime: u64,
        /// `_PyEval_EvalFrameDefault`.
        evaluate: Option<u64>,
        /// `PY_VERSION_HEX` as far as the file tells: without the micro version where only its
        /// name does.
        version: Option<u32>,
    },
    /// CRuby.
    Ruby {
        /// `ruby_current_vm_ptr`.
        vm: u64,
        /// `rb_vm_exec`.
        evaluate: Option<u64>,
        /// Major and minor version.
        version: (u32, u32),
    },
}

impl Runtime {
    /// The runtime in a file, if it is one.
    pub(crate) fn of(elf: &ElfFile, path: &str) -> Option<Self> {
        let [runtime, evaluate, version, vm, execute, api] = exported(
            elf,
            [
                "_PyRuntime",
                "_PyEval_EvalFrameDefault",
                "Py_Version",
                "ruby_current_vm_ptr",
                "rb_vm_exec",
                "ruby_api_version",
            ],
        );
        let read = |at: u64| Some(u32::from_le_bytes(elf.read_vaddr(at, 4)?.try_into().ok()?));
        if let Some(runtime) = runtime {
            let soname = elf.soname.as_deref().and_then(python_version);
            let file = || python_version(path.rsplit('/').next().unwrap_or(path));
            let version = version.and_then(read).or(soname).or_else(file);
            return Some(Self::Python { runtime, evaluate, version });
        }
        let (vm, api) = (vm?, api?);
        Some(Self::Ruby { vm, evaluate: execute, version: (read(api)?, read(api.checked_add(4)?)?) })
    }

    /// The function that executes scripts.
    pub(crate) fn evaluate(&self) -> Option<u64> {
        match self {
            Self::Python { evaluate, .. } | Self::Ruby { evaluate, .. } => *evaluate,
        }
    }
}

/// The version in a file's name: `python3.9`, `libpython3.10.so.1.0`.
fn python_version(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once("python3.")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let minor: u32 = digits.parse().ok().filter(|m| *m < 256)?;
    Some(3 << 24 | minor << 16)
}

/// Addresses of exported symbols.
fn exported<const N: usize>(elf: &ElfFile, names: [&str; N]) -> [Option<u64>; N] {
    if let Some(exports) = elf.exports() {
        return names.map(|name| exports.addresses(name.as_bytes()).next());
    }
    let mut found = [None; N];
    let Some(table) = elf.dynamic_symbols() else { return found };
    let strings = table.strings.whole();
    for symbol in table.symbols().iter().filter(|s| s.st_shndx.get(Le) != elf::SHN_UNDEF) {
        let at = symbol.st_name.get(Le) as usize;
        // Most are something else, as their first bytes tell.
        let might = strings.get(at..).is_some_and(|s| names.iter().any(|n| s.starts_with(n.as_bytes())));
        if !might {
            continue;
        }
        let name = c_str(strings, at);
        for (wanted, found) in names.iter().zip(&mut found) {
            if name == Some(wanted.as_bytes()) {
                *found = Some(symbol.st_value.get(Le));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_by_names() {
        assert_eq!(python_version("python3.9"), Some(0x0309_0000));
        assert_eq!(python_version("libpython3.10.so.1.0"), Some(0x030a_0000));
        assert_eq!(python_version("python3"), None);
        assert_eq!(python_version("libruby-3.1.so.3.1"), None);
    }
}
