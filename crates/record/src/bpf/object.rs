//! Reads the compiled programs: their code, and the places in it that name maps.

use super::call::Instruction;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object as _, ObjectSection, ObjectSymbol, RelocationTarget};

/// The programs, compiled from `bpf/count.c`.
static COMPILED: &[u8] = include_bytes!("../../bpf/count.o");

/// A place in a program that names a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Index of the instruction, which loads 64 bits by two.
    pub(super) at: usize,
    /// Name of the map, or `settings`.
    pub(super) map: String,
}

/// A compiled program.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    /// Name of the section: the tracepoint for which the program is.
    pub(super) name: String,
    pub(super) code: Vec<Instruction>,
    pub(super) references: Vec<Reference>,
}

/// Returns the programs of the object that is part of systoll. An object that is none yields none.
pub(super) fn programs() -> Vec<Compiled> {
    read(COMPILED).unwrap_or_default()
}

fn read(bytes: &[u8]) -> Option<Vec<Compiled>> {
    let file: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes).ok()?;
    let is_bpf = file.elf_header().e_machine(file.endian()) == object::elf::EM_BPF;
    let code_sections = file.sections().filter(|s| s.kind() == object::SectionKind::Text && s.size() > 0);
    let program = |section: object::read::elf::ElfSection64<'_, '_, Endianness>| {
        let (code, rest) = section.data().ok()?.as_chunks::<8>();
        let mut references = Vec::new();
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            let map = file.symbol_by_index(index).ok()?.name().ok()?.to_owned();
            references.push(Reference { at: usize::try_from(offset).ok()? / 8, map });
        }
        rest.is_empty().then_some(())?;
        Some(Compiled { name: section.name().ok()?.to_owned(), code: code.to_vec(), references })
    };
    is_bpf.then(|| code_sections.map(program).collect())?
}

/// Operation code of the instruction that loads 64 bits (BPF_LD | BPF_DW | BPF_IMM).
const LOAD_64: u8 = 0x18;
/// Sources of that instruction: a map by its descriptor, and an address in the only value of one.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

impl Compiled {
    /// Returns the code in which each map is named by its descriptor: `find` returns it, and true if the code wants the
    /// address of the map's value. Returns `None` if a map is not known.
    pub(super) fn linked(&self, find: impl Fn(&str) -> Option<(i32, bool)>) -> Option<Vec<Instruction>> {
        let mut code = self.code.clone();
        for Reference { at, map } in &self.references {
            let (fd, is_value) = find(map)?;
            let load = code.get_mut(*at).filter(|load| load[0] == LOAD_64)?;
            // The destination is in the low half of the byte, the source in the high one.
            load[1] = load[1] & 0xf | if is_value { MAP_VALUE } else { MAP } << 4;
            load[4..].copy_from_slice(&fd.to_le_bytes());
        }
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
    }

    #[test]
    fn the_object_holds_the_programs() {
        let programs = programs();
        let names: Vec<&str> = programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "sys_enter",
                "sys_exit",
                "task_newtask",
                "sched_switch",
                "sched_process_exec",
                "sched_process_exit",
                "learn"
            ]
        );
        for program in &programs {
            let code = program.linked(|map| Some((0x1234, map == "settings"))).unwrap();
            let loads = code.iter().filter(|i| i[0] == LOAD_64 && i[4..6] == [0x34, 0x12]).count();
            assert_eq!(loads, program.references.len(), "{}", program.name);
            assert!(program.linked(|_| None).is_none());
        }
    }

    #[test]
    fn damaged_objects_yield_nothing() {
        for length in (0..COMPILED.len()).step_by(97) {
            drop(read(&COMPILED[..length]));
        }
        for at in 0..COMPILED.len() {
            let mut bytes = COMPILED.to_vec();
            bytes[at] ^= 0xff;
            drop(read(&bytes));
        }
        assert!(read(b"").is_none());
    }

    /// The object is of this source: its hash is kept beside it by `build.sh`.
    #[test]
    fn the_object_is_of_this_source() {
        let kept = std::fs::read_to_string(folder().join("count.hash")).unwrap();
        let hash = |name: &str| blake3::hash(&std::fs::read(folder().join(name)).unwrap()).to_hex();
        let now = ["count.c", "sample.h", "count.o"].map(|name| format!("{name} {}\n", hash(name))).concat();
        assert_eq!(kept, now, "bpf/build.sh builds the object anew; then set bpf/count.hash to the second");
    }

    /// A clang of the version that built the object builds the same bytes; others build other ones that do the same.
    #[test]
    fn the_object_is_built_again_the_same() {
        let version = Command::new("clang").arg("--version").output();
        let version = version.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        let built_by = include_str!("../../bpf/build.sh").lines().find_map(|l| l.strip_prefix("# clang ")).unwrap();
        if !version.contains(&format!("version {built_by}.")) {
            let _ = writeln!(std::io::stderr(), "skipped: there is no clang {built_by} here");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("count.o");
        let built = Command::new("sh").arg(folder().join("build.sh")).arg(&out).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        assert!(std::fs::read(out).unwrap() == COMPILED, "bpf/count.o is not what bpf/count.c says");
    }
}
