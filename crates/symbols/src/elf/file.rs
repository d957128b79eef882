//! The parts of an ELF file that are always needed: segments, sections, a few facts.
//!
//! Only headers are read here; section contents are read when they are asked for.

use super::gnu_hash::Exports;
use super::read::{c_str, half, word};
use super::strings::Strings;
use super::symbol_table::SymbolTable;
use crate::mapped::FileBytes;
use object::LittleEndian as Le;
use object::elf;
use object::read::{CompressedData, CompressionFormat};
use std::sync::{Arc, OnceLock};

/// Most headers looked at; real files have some 40 sections and a dozen segments.
const MAX_HEADERS: u64 = 4096;
/// The most a compressed section may grow to.
const MAX_INFLATED: u64 = 256 << 20;

/// A part of the file that is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) vaddr: u64,
    pub(crate) offset: u64,
    pub(crate) file_size: u64,
    pub(crate) executable: bool,
}

/// A section header.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: elf::SectionType,
    pub(crate) flags: u64,
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
}

/// An ELF file for x86-64.
#[derive(Debug)]
pub(crate) struct ElfFile {
    pub(crate) bytes: Arc<FileBytes>,
    pub(crate) entry: u64,
    pub(crate) segments: Vec<Segment>,
    pub(crate) sections: Vec<Section>,
    /// Where the file says which dynamic loader the program asks for: offset and length.
    interpreter: Option<(u64, u64)>,
    /// Whether it needs other shared objects.
    pub(crate) needs_others: bool,
    pub(crate) soname: Option<String>,
    /// Lower-case hex.
    pub(crate) build_id: Option<String>,
    /// Address and size of `.eh_frame_hdr`, from PT_GNU_EH_FRAME.
    pub(crate) eh_frame_hdr: Option<(u64, u64)>,
    dynamic_symbols: OnceLock<Option<Arc<SymbolTable>>>,
    exports: OnceLock<Option<Exports>>,
}

impl ElfFile {
    /// Reads the headers. `None` where it is no ELF file for x86-64.
    pub(crate) fn parse(bytes: FileBytes) -> Option<Self> {
        let head = bytes.read(0, size_of::<elf::FileHeader64<Le>>() as u64)?;
        let (header, _) = object::from_bytes::<elf::FileHeader64<Le>>(&head).ok()?;
        let ident = &header.e_ident;
        let known = ident.magic == elf::ELFMAG
            && ident.class == elf::ELFCLASS64
            && ident.data == elf::ELFDATA2LSB
            && header.e_machine.get(Le) == elf::EM_X86_64;
        if !known {
            return None;
        }
        let phdrs = headers::<elf::ProgramHeader64<Le>>(
            &bytes,
            header.e_phoff.get(Le),
            u64::from(header.e_phnum.get(Le)),
            u64::from(header.e_phentsize.get(Le)),
        );
        let shdrs = headers::<elf::SectionHeader64<Le>>(
            &bytes,
            header.e_shoff.get(Le),
            u64::from(header.e_shnum.get(Le)),
            u64::from(header.e_shentsize.get(Le)),
        );
        let sections = name_sections(&bytes, &shdrs, usize::from(header.e_shstrndx.get(Le).0));
        let mut elf = Self {
            bytes: Arc::new(bytes),
            entry: header.e_entry.get(Le),
            segments: Vec::new(),
            sections,
            interpreter: None,
            needs_others: false,
            soname: None,
            build_id: None,
            eh_frame_hdr: None,
            dynamic_symbols: OnceLock::new(),
            exports: OnceLock::new(),
        };
        elf.read_segments(&phdrs);
        Some(elf)
    }

    fn read_segments(&mut self, phdrs: &[elf::ProgramHeader64<Le>]) {
        let load = |p: &&elf::ProgramHeader64<Le>| p.p_type.get(Le) == elf::PT_LOAD;
        // Nothing of a program lies higher (x86-64 has 47 or 56 bits): readers of DWARF add to
        // addresses without looking.
        const HIGHEST: u64 = 1 << 56;
        let low = |p: &&elf::ProgramHeader64<Le>| {
            p.p_vaddr.get(Le).checked_add(p.p_filesz.get(Le)).is_some_and(|end| end < HIGHEST)
        };
        self.segments = phdrs
            .iter()
            .filter(load)
            .filter(low)
            .map(|p| Segment {
                vaddr: p.p_vaddr.get(Le),
                offset: p.p_offset.get(Le),
                file_size: p.p_filesz.get(Le),
                executable: p.p_flags.get(Le).0 & elf::PF_X.0 != 0,
            })
            .collect();
        for p in phdrs {
            let (offset, size) = (p.p_offset.get(Le), p.p_filesz.get(Le));
            match p.p_type.get(Le) {
                elf::PT_INTERP => self.interpreter = Some((offset, size)),
                elf::PT_GNU_EH_FRAME => self.eh_frame_hdr = Some((p.p_vaddr.get(Le), size)),
                elf::PT_NOTE if self.build_id.is_none() => {
                    self.build_id = self.bytes.read(offset, size.min(4096)).and_then(|n| build_id(&n));
                }
                elf::PT_DYNAMIC => self.read_dynamic(offset, size),
                _ => {}
            }
        }
    }

    fn read_dynamic(&mut self, offset: u64, size: u64) {
        let Some(bytes) = self.bytes.read(offset, size.min(1 << 16)) else { return };
        let (mut strings, mut soname) = (None, None);
        for entry in bytes.chunks_exact(16) {
            let (tag, value) = (word(entry, 0).unwrap_or(0), word(entry, 8).unwrap_or(0));
            match elf::DynamicTag(tag as i64) {
                elf::DT_NULL => break,
                elf::DT_NEEDED => self.needs_others = true,
                elf::DT_STRTAB => strings = Some(value),
                elf::DT_SONAME => soname = Some(value),
                _ => {}
            }
        }
        if let (Some(strings), Some(soname)) = (strings, soname) {
            let mut name = vec![0; 256];
            let got = self.read_code_into(strings.wrapping_add(soname), &mut name);
            name.truncate(got);
            self.soname = c_str(&name, 0).map(|s| String::from_utf8_lossy(s).into_owned());
        }
    }

    /// Whether the program asks for a dynamic loader.
    pub(crate) fn has_interpreter(&self) -> bool {
        self.interpreter.is_some()
    }

    /// Path of the dynamic loader that the program asks for.
    pub(crate) fn interpreter(&self) -> Option<String> {
        let (offset, size) = self.interpreter?;
        let bytes = self.bytes.read(offset, size.min(4096))?;
        String::from_utf8(c_str(&bytes, 0)?.to_vec()).ok()
    }

    /// The segment that `vaddr` lies in and how far, as far as the file backs it.
    fn locate(&self, vaddr: u64) -> Option<(u64, u64)> {
        self.segments.iter().find_map(|s| {
            let into = vaddr.checked_sub(s.vaddr)?;
            (into < s.file_size).then(|| Some((s.offset.checked_add(into)?, s.file_size - into)))?
        })
    }

    /// Reads what the file has mapped at `vaddr` and returns how many bytes there were.
    pub(crate) fn read_code_into(&self, vaddr: u64, buffer: &mut [u8]) -> usize {
        let Some((offset, rest)) = self.locate(vaddr) else { return 0 };
        let rest = rest.min(self.bytes.len().saturating_sub(offset));
        let len = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        let read = buffer.get_mut(..len).is_some_and(|part| self.bytes.read_into(offset, part));
        if read { len } else { 0 }
    }

    /// `len` bytes mapped at `vaddr`, all of them or nothing.
    pub(crate) fn read_vaddr(&self, vaddr: u64, len: u64) -> Option<Vec<u8>> {
        let (offset, rest) = self.locate(vaddr)?;
        (len <= rest).then(|| self.bytes.read(offset, len))?
    }

    /// Everything mapped from `vaddr` to the end of its segment.
    pub(crate) fn read_to_segment_end(&self, vaddr: u64) -> Option<Vec<u8>> {
        let (offset, rest) = self.locate(vaddr)?;
        self.bytes.read(offset, rest.min(self.bytes.len().checked_sub(offset)?))
    }

    /// Whether `vaddr` lies in a segment that holds code.
    pub(crate) fn is_code(&self, vaddr: u64) -> bool {
        self.segments.iter().any(|s| s.executable && vaddr.wrapping_sub(s.vaddr) < s.file_size)
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// A section's contents, decompressed.
    pub(crate) fn section_data(&self, section: &Section) -> Option<Vec<u8>> {
        if section.kind == elf::SHT_NOBITS {
            return None;
        }
        let data = self.bytes.read(section.offset, section.size)?;
        if section.flags & elf::SHF_COMPRESSED.0 == 0 {
            return Some(data);
        }
        let (header, packed) = object::from_bytes::<elf::CompressionHeader64<Le>>(&data).ok()?;
        let size = header.ch_size.get(Le);
        let format = match header.ch_type.get(Le) {
            elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
            elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
            _ => return None,
        };
        if size > MAX_INFLATED {
            return None;
        }
        let packed = CompressedData { format, data: packed, uncompressed_size: size };
        Some(packed.decompress().ok()?.into_owned())
    }

    /// The file's `.dynsym`, read once.
    pub(crate) fn dynamic_symbols(&self) -> Option<&Arc<SymbolTable>> {
        let read = || {
            let section = self.of_kind(elf::SHT_DYNSYM)?;
            let strings = Strings::Whole(self.section_data(self.strings_of(section)?)?);
            Some(Arc::new(SymbolTable::new(self.section_data(section)?, strings)))
        };
        self.dynamic_symbols.get_or_init(read).as_ref()
    }

    /// Its index of what it exports, read once.
    pub(crate) fn exports(&self) -> Option<&Exports> {
        let read = || {
            let index = self.section_data(self.of_kind(elf::SHT_GNU_HASH)?)?;
            Exports::new(Arc::clone(self.dynamic_symbols()?), index)
        };
        self.exports.get_or_init(read).as_ref()
    }

    /// The file's `.symtab`.
    pub(crate) fn symbols(&self) -> Option<SymbolTable> {
        let section = self.of_kind(elf::SHT_SYMTAB)?;
        let strings = self.open_strings(self.strings_of(section)?)?;
        Some(SymbolTable::new(self.section_data(section)?, strings))
    }

    /// The section that holds the strings of a symbol table.
    fn strings_of(&self, table: &Section) -> Option<&Section> {
        self.sections.get(table.link as usize)
    }

    /// A section's strings; those of a large one are read when they are asked for.
    fn open_strings(&self, section: &Section) -> Option<Strings> {
        let plain = section.kind != elf::SHT_NOBITS && section.flags & elf::SHF_COMPRESSED.0 == 0;
        if !plain || section.size <= Strings::SMALL {
            return self.section_data(section).map(Strings::Whole);
        }
        Strings::in_file(&self.bytes, section.offset, section.size)
    }

    /// The first section of a kind.
    pub(crate) fn of_kind(&self, kind: elf::SectionType) -> Option<&Section> {
        self.sections.iter().find(|s| s.kind == kind)
    }

    /// Whether the file itself has line tables.
    pub(crate) fn has_lines(&self) -> bool {
        self.section(".debug_line").is_some_and(|s| s.kind != elf::SHT_NOBITS)
            && self.section(".debug_info").is_some_and(|s| s.kind != elf::SHT_NOBITS)
    }

    /// How far `file_offset`, mapped at `start`, was moved from where the file says it belongs.
    pub(crate) fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let holds = |s: &&Segment| {
            let first = s.offset & !(PAGE - 1);
            let end = s.offset.saturating_add(s.file_size);
            file_offset >= first && file_offset < end
        };
        let segment = self.segments.iter().filter(|s| s.executable).find(holds);
        let segment = segment.or_else(|| self.segments.iter().find(holds))?;
        let vaddr = segment.vaddr.wrapping_add(file_offset.wrapping_sub(segment.offset));
        Some(start.wrapping_sub(vaddr))
    }
}

fn headers<T: object::pod::Pod + Copy>(bytes: &FileBytes, offset: u64, count: u64, entry_size: u64) -> Vec<T> {
    let count = count.min(MAX_HEADERS);
    if offset == 0 || entry_size != size_of::<T>() as u64 {
        return Vec::new();
    }
    let Some(bytes) = bytes.read(offset, count * entry_size) else { return Vec::new() };
    object::slice_from_bytes::<T>(&bytes, count as usize).map_or_else(|()| Vec::new(), |(h, _)| h.to_vec())
}

fn name_sections(bytes: &FileBytes, shdrs: &[elf::SectionHeader64<Le>], names: usize) -> Vec<Section> {
    let names = shdrs
        .get(names)
        .and_then(|s| bytes.read(s.sh_offset.get(Le), s.sh_size.get(Le).min(1 << 20)))
        .unwrap_or_default();
    let section = |s: &elf::SectionHeader64<Le>| Section {
        name: c_str(&names, s.sh_name.get(Le) as usize)
            .map_or_else(String::new, |n| String::from_utf8_lossy(n).into_owned()),
        kind: s.sh_type.get(Le),
        flags: s.sh_flags.get(Le).0,
        addr: s.sh_addr.get(Le),
        offset: s.sh_offset.get(Le),
        size: s.sh_size.get(Le),
        link: s.sh_link.get(Le),
    };
    shdrs.iter().map(section).collect()
}

/// The GNU build-id in a note segment, as hex.
fn build_id(notes: &[u8]) -> Option<String> {
    let mut rest = notes;
    loop {
        let (name_size, size) = (half(rest, 0)? as usize, half(rest, 4)? as usize);
        let kind = half(rest, 8)?;
        let name_end = 12usize.checked_add(name_size)?.checked_next_multiple_of(4)?;
        let end = name_end.checked_add(size)?;
        let desc = rest.get(name_end..end)?;
        if kind == elf::NT_GNU_BUILD_ID.0 && rest.get(12..16) == Some(b"GNU\0") && (4..=64).contains(&size) {
            return Some(desc.iter().map(|b| format!("{b:02x}")).collect());
        }
        rest = rest.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// An ELF file of one executable segment at 0x1000.
#[cfg(test)]
pub(crate) fn elf_of_code(code: &[u8]) -> ElfFile {
    let mut file = vec![0u8; 0x1000];
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file[16..20].copy_from_slice(&[3, 0, 62, 0]);
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[54..58].copy_from_slice(&[56, 0, 1, 0]);
    file[64..72].copy_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    for at in [72, 80] {
        file[at..at + 8].copy_from_slice(&0x1000u64.to_le_bytes());
    }
    file[96..104].copy_from_slice(&(code.len() as u64).to_le_bytes());
    file.extend_from_slice(code);
    ElfFile::parse(FileBytes::Memory(file.into())).unwrap()
}
