//! Identifies the build of this program that is running.

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Bytes read of the executable to find its build-id: linkers put the note right behind the headers.
const HEAD: usize = 4096;
/// Bytes of a build-id, or of the hash in its place, that a name holds: two builds of one user collide with a
/// probability of 2^-64.
const LEN: usize = 8;

/// Identity of a build of this program. It changes whenever the program's code does, and is the same wherever the same
/// code was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build(String);

impl Build {
    /// Returns the running program's build: the linker's build-id, which is a hash of what it linked, otherwise a hash
    /// of the whole executable. Returns `None` if the executable can't be read.
    #[must_use]
    pub fn own() -> Option<&'static Self> {
        static OWN: OnceLock<Option<Build>> = OnceLock::new();
        OWN.get_or_init(|| Self::of(&systoll_files::kernel("/proc/self/exe").ok()?)).as_ref()
    }

    /// Returns the build of an executable.
    fn of(executable: &File) -> Option<Self> {
        let mut head = vec![0; HEAD];
        let read = executable.read_at(&mut head, 0).ok()?;
        head.truncate(read);
        build_id(&head).map(Self::named).or_else(|| Self::hashed(executable))
    }

    /// Creates the build that is identified by `id`, at least [`LEN`] bytes.
    #[must_use]
    pub fn named(id: &[u8]) -> Self {
        let mut text = String::new();
        for byte in id.iter().take(LEN) {
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Identifies the build by its content, if the linker left no note. Only its owner could make another executable
    /// collide, and the owner's programs may change the cache anyway.
    fn hashed(mut executable: &File) -> Option<Self> {
        let mut content = Vec::new();
        executable.read_to_end(&mut content).ok()?;
        Some(Self::named(blake3::hash(&content).as_bytes()))
    }

    /// Returns the build as text of lower-case letters and digits.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the build-id in the notes of a file that begins with `head`.
fn build_id(head: &[u8]) -> Option<&[u8]> {
    let header = elf::FileHeader64::<Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head).ok()?;
    let notes = segments.iter().filter(|s| s.p_type(endian) == elf::PT_NOTE);
    notes.filter_map(|s| s.data(endian, head).ok()).find_map(systoll_binfile::elf::build_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Compiles a C program with `flags` and returns the executable.
    fn linked(folder: &std::path::Path, source: &str, flags: &[&str]) -> File {
        let (c, program) = (folder.join("a.c"), folder.join("a"));
        std::fs::write(&c, source).unwrap();
        let done = Command::new("cc").arg(&c).arg("-o").arg(&program).args(flags).status();
        assert!(done.is_ok_and(|done| done.success()), "tests need a C compiler");
        File::open(program).unwrap()
    }

    #[test]
    fn another_code_is_another_build_and_another_folder_is_not() {
        for flags in [&["-Wl,--build-id=sha1"], &["-Wl,--build-id=none"]] {
            let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let build = |folder: &tempfile::TempDir, source| Build::of(&linked(folder.path(), source, flags)).unwrap();
            let (first, other) = ("int main(void) { return 1; }", "int main(void) { return 2; }");
            assert_eq!(build(&one, first), build(&two, first), "{flags:?}");
            assert_ne!(build(&one, first), build(&one, other), "{flags:?}");
            let file = linked(one.path(), first, flags);
            let mut head = vec![0; HEAD];
            file.read_exact_at(&mut head, 0).unwrap();
            assert_eq!(build_id(&head).is_some(), flags == &["-Wl,--build-id=sha1"]);
        }
    }

    #[test]
    fn the_running_program_has_one() {
        assert_eq!(Build::own().map(|own| own.as_str().len()), Some(2 * LEN));
    }
}
