//! Reads the headers of an ELF file for the machine that this program was built for.
//!
//! A program runs without section headers, and with broken ones, so unreadable ones are ignored.

use crate::bytes::{Bytes, c_str, half, stored};
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::Sym as _;

/// The kind of machine whose files are read: unwinding and code are those of the machine that we run on.
const HERE: elf::Machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
/// Bound of a program's addresses (x86-64 has 47 or 56 bits). Readers of DWARF add to addresses
/// without overflow checks.
pub const HIGHEST: u64 = 1 << 56;
/// Bytes of the names of all sections that are read, at most.
const MAX_NAMES: u64 = 1 << 20;

type FileHeader = elf::FileHeader64<Le>;
type ProgramHeader = elf::ProgramHeader64<Le>;
type SectionHeader = elf::SectionHeader64<Le>;
/// A symbol in a table's own layout.
pub type Symbol = elf::Sym64<Le>;
/// A relocation with its addend.
pub type Relocation = elf::Rela64<Le>;

/// Reason why a file can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// The file is no ELF file, or ends within its header.
    Malformed,
    /// The file is for another processor, or for 32 bits.
    Foreign,
}

/// A mapped part of the file (PT_LOAD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Virtual address of the segment, as linked (p_vaddr).
    pub vaddr: u64,
    /// Size of the segment in memory, bytes.
    pub memory_size: u64,
    /// Offset of the segment's bytes in the file.
    pub offset: u64,
    /// Size of the segment in the file, bytes; at most its size in memory. A debug file may end
    /// before these bytes.
    pub file_size: u64,
    /// True if the segment is executable (PF_X).
    pub executable: bool,
}

impl Segment {
    /// Returns how many of the segment's bytes a file of `size` bytes has; `None` if the segment
    /// starts beyond the file's end.
    #[must_use]
    pub fn stored(&self, size: u64) -> Option<u64> {
        Some(self.file_size.min(size.checked_sub(self.offset)?))
    }
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name of the section; empty if it can't be read.
    pub name: String,
    /// Type of the section, SHT_*.
    pub kind: elf::SectionType,
    /// Flags of the section, SHF_*.
    pub flags: u64,
    /// Virtual address of the section, as linked (sh_addr).
    pub addr: u64,
    /// Offset of the section in the file.
    pub offset: u64,
    /// Size of the section, bytes.
    pub size: u64,
    /// Index of the section with which this one is linked.
    pub link: u32,
}

impl Section {
    /// Returns true if the section's bytes are in the file.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.kind != elf::SHT_NOBITS
    }

    /// Returns true if the section's bytes are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.flags & elf::SHF_COMPRESSED.0 != 0
    }

    /// Returns true if the section holds machine code whose bytes are in the file.
    #[must_use]
    pub fn is_code(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0 && self.is_stored()
    }

    /// Returns the section's bytes in `file`, unchanged.
    #[must_use]
    pub fn data<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        if self.is_stored() { stored(file, self.offset, self.size) } else { None }
    }
}

/// A part of the file that a program header describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Virtual address of the part, as linked (p_vaddr).
    pub vaddr: u64,
    /// Offset of the part in the file.
    pub offset: u64,
    /// Size of the part, bytes.
    pub size: u64,
    /// Alignment of entries in the part, bytes.
    pub align: u64,
}

impl Piece {
    /// Returns the part's bytes in `file`.
    #[must_use]
    pub fn data<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        stored(file, self.offset, self.size)
    }
}

/// The headers of an ELF file.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// Address of the program's entry point; 0 if there is none.
    pub entry: u64,
    /// True if the file must be mapped at its own addresses (ET_EXEC).
    pub is_fixed: bool,
    /// Mapped segments below [`HIGHEST`].
    pub segments: Vec<Segment>,
    /// True if a segment lies higher, or can't be read.
    pub is_damaged: bool,
    /// All sections, by index; none if the file has no names for them.
    pub sections: Vec<Section>,
    /// Path of the loader that the program requests.
    pub interpreter: Option<Piece>,
    /// The dynamic section: entries for the loader.
    pub dynamic: Option<Piece>,
    /// The index of call frame information.
    pub eh_frame_hdr: Option<Piece>,
    /// Segments that contain notes, such as the build-id.
    pub notes: Vec<Piece>,
}

impl Headers {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// If the file is no ELF file for this machine. Damage beyond the first header only makes the result
    /// incomplete.
    pub fn read<B: Bytes + ?Sized>(file: &B) -> Result<Self, NotRead> {
        let head = file.piece(0, size_of::<FileHeader>() as u64);
        let (Some(magic), head) = (file.piece(0, 6), head) else { return Err(NotRead::Malformed) };
        let [m0, m1, m2, m3, class, data] = *magic else { return Err(NotRead::Malformed) };
        if [m0, m1, m2, m3] != elf::ELFMAG {
            return Err(NotRead::Malformed);
        }
        if class == elf::ELFCLASS32.0 || data == elf::ELFDATA2MSB.0 {
            return Err(NotRead::Foreign);
        }
        let head = head.ok_or(NotRead::Malformed)?;
        let (header, _) = object::from_bytes::<FileHeader>(&head).map_err(|()| NotRead::Malformed)?;
        if class != elf::ELFCLASS64.0 || data != elf::ELFDATA2LSB.0 {
            return Err(NotRead::Malformed);
        }
        if header.e_machine.get(Le) != HERE {
            return Err(NotRead::Foreign);
        }
        let is_fixed = header.e_type.get(Le) == elf::ET_EXEC;
        let mut read = Self { entry: header.e_entry.get(Le), is_fixed, ..Self::default() };
        read.read_sections(file, header);
        read.read_segments(file, header);
        Ok(read)
    }

    fn read_segments<B: Bytes + ?Sized>(&mut self, file: &B, header: &FileHeader) {
        let said = (header.e_phoff.get(Le), header.e_phnum.get(Le), header.e_phentsize.get(Le));
        let (offset, count, entry_size) = said;
        let Some(all) = table::<ProgramHeader, B>(file, offset, count, entry_size) else {
            self.is_damaged = count > 0;
            return;
        };
        for p in &all {
            let piece = Piece {
                vaddr: p.p_vaddr.get(Le),
                offset: p.p_offset.get(Le),
                size: p.p_filesz.get(Le),
                align: p.p_align.get(Le),
            };
            match p.p_type.get(Le) {
                elf::PT_LOAD => self.add_segment(p),
                elf::PT_INTERP => self.interpreter = Some(piece),
                elf::PT_DYNAMIC => self.dynamic = Some(piece),
                elf::PT_GNU_EH_FRAME => self.eh_frame_hdr = Some(piece),
                elf::PT_NOTE => self.notes.push(piece),
                _ => {}
            }
        }
    }

    fn add_segment(&mut self, p: &ProgramHeader) {
        let (vaddr, memory_size) = (p.p_vaddr.get(Le), p.p_memsz.get(Le));
        if vaddr.checked_add(memory_size).is_none_or(|end| end >= HIGHEST) {
            self.is_damaged = true;
            return;
        }
        self.segments.push(Segment {
            vaddr,
            memory_size,
            offset: p.p_offset.get(Le),
            file_size: p.p_filesz.get(Le).min(memory_size),
            executable: p.p_flags.get(Le).0 & elf::PF_X.0 != 0,
        });
    }

    fn read_sections<B: Bytes + ?Sized>(&mut self, file: &B, header: &FileHeader) {
        let said = (header.e_shoff.get(Le), header.e_shnum.get(Le), header.e_shentsize.get(Le));
        let (offset, count, entry_size) = said;
        let Some(all) = table::<SectionHeader, B>(file, offset, count, entry_size) else { return };
        let names = all
            .get(usize::from(header.e_shstrndx.get(Le).0))
            .and_then(|s| file.piece(s.sh_offset.get(Le), s.sh_size.get(Le).min(MAX_NAMES)));
        let name = |at: u32| c_str(names.as_deref()?, at as usize);
        let section = |s: &SectionHeader| Section {
            name: name(s.sh_name.get(Le)).map_or_else(String::new, |n| String::from_utf8_lossy(n).into_owned()),
            kind: s.sh_type.get(Le),
            flags: s.sh_flags.get(Le).0,
            addr: s.sh_addr.get(Le),
            offset: s.sh_offset.get(Le),
            size: s.sh_size.get(Le),
            link: s.sh_link.get(Le),
        };
        self.sections = all.iter().map(section).collect();
    }

    /// Returns the first section with this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Returns the first section of this type.
    #[must_use]
    pub fn of_kind(&self, kind: elf::SectionType) -> Option<&Section> {
        self.sections.iter().find(|s| s.kind == kind)
    }

    /// Returns the section with Go's table of functions.
    #[must_use]
    pub fn pclntab(&self) -> Option<&Section> {
        self.section(".gopclntab").or_else(|| self.section(".data.rel.ro.gopclntab"))
    }

    /// Returns the section with which `section` is linked, e.g. the strings of a symbol table.
    #[must_use]
    pub fn linked(&self, section: &Section) -> Option<&Section> {
        self.sections.get(section.link as usize)
    }

    /// Returns true if the file has code at `vaddr`.
    #[must_use]
    pub fn is_code(&self, vaddr: u64) -> bool {
        self.segments.iter().any(|s| s.executable && vaddr.wrapping_sub(s.vaddr) < s.file_size)
    }
}

/// Reads a table of headers. Real files have some 40 sections and a dozen segments; the count has
/// 16 bits.
fn table<T: object::pod::Pod + Copy, B: Bytes + ?Sized>(
    file: &B,
    offset: u64,
    count: u16,
    entry_size: u16,
) -> Option<Vec<T>> {
    if offset == 0 || usize::from(entry_size) != size_of::<T>() {
        return None;
    }
    let bytes = file.piece(offset, u64::from(count) * u64::from(entry_size))?;
    Some(object::slice_from_bytes::<T>(&bytes, count.into()).ok()?.0.to_vec())
}

/// Returns the symbols that the bytes of a table contain.
#[must_use]
pub fn symbols(table: &[u8]) -> &[Symbol] {
    object::slice_from_bytes(table, table.len() / size_of::<Symbol>()).map_or(&[], |(symbols, _)| symbols)
}

/// Returns the relocations that the bytes of a section contain.
#[must_use]
pub fn relocations(section: &[u8]) -> &[Relocation] {
    let count = section.len() / size_of::<Relocation>();
    object::slice_from_bytes(section, count).map_or(&[], |(relocations, _)| relocations)
}

/// The kind of thing that a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// The symbol names a function, or a place in code without a type, which authors of assembly
    /// may omit.
    Code,
    /// The symbol names data.
    Data,
    /// The symbol names anything else: a section, a file, a thread-local variable, or a thing
    /// defined in another file.
    Other,
}

impl Names {
    /// Returns the kind of `symbol`. `is_code` returns true for addresses of code.
    #[must_use]
    pub fn of(symbol: &Symbol, is_code: impl Fn(u64) -> bool) -> Self {
        if symbol.is_undefined(Le) {
            return Self::Other;
        }
        match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => Self::Code,
            // Local ones without a type are marks of the assembler on aarch64, `$x` at the beginning of each function.
            elf::STT_NOTYPE if HERE == elf::EM_AARCH64 && symbol.st_bind() == elf::STB_LOCAL => Self::Other,
            elf::STT_NOTYPE if is_code(symbol.st_value.get(Le)) => Self::Code,
            elf::STT_SECTION | elf::STT_FILE | elf::STT_TLS => Self::Other,
            _ => Self::Data,
        }
    }
}

/// Returns the GNU build-id in a note segment.
#[must_use]
pub fn build_id(notes: &[u8]) -> Option<&[u8]> {
    let mut rest = notes;
    loop {
        let (name_size, size) = (half(rest, 0)? as usize, half(rest, 4)? as usize);
        let kind = half(rest, 8)?;
        let name_end = 12usize.checked_add(name_size)?.checked_next_multiple_of(4)?;
        let end = name_end.checked_add(size)?;
        let id = rest.get(name_end..end)?;
        if kind == elf::NT_GNU_BUILD_ID.0 && rest.get(12..16) == Some(b"GNU\0") && (4..=64).contains(&size) {
            return Some(id);
        }
        rest = rest.get(end.checked_next_multiple_of(4)?..)?;
    }
}
