//! The parts of an ELF file that are always needed: segments, sections, a few facts.
//!
//! Only headers are read on opening. The contents of a section are read on demand.

use super::gnu_hash::Exports;
use super::strings::Strings;
use super::symbol_table::SymbolTable;
use super::view::View;
use crate::mapped::FileBytes;
use object::LittleEndian as Le;
use object::elf as raw;
use object::read::{CompressedData, CompressionFormat};
use std::sync::{Arc, OnceLock};
use systoll_binfile::elf::{self, Headers, Section, Segment};
use systoll_binfile::{c_str, word};

/// Bytes read of notes, at most.
const MAX_NOTES: u64 = 4096;
/// Bytes read of the dynamic section, at most.
const MAX_DYNAMIC: u64 = 1 << 16;
/// Bytes read of the loader's path, at most.
const MAX_PATH: u64 = 4096;
/// Size to which a compressed section is unpacked, at most, bytes.
const MAX_INFLATED: u64 = 256 << 20;

/// An ELF file for x86-64.
#[derive(Debug)]
pub(crate) struct ElfFile {
    pub(crate) bytes: Arc<FileBytes>,
    pub(crate) headers: Headers,
    /// True if the file needs other shared objects.
    pub(crate) needs_others: bool,
    pub(crate) soname: Option<String>,
    /// Build-id in lower-case hexadecimal digits.
    pub(crate) build_id: Option<String>,
    dynamic_symbols: OnceLock<Option<Arc<SymbolTable>>>,
    exports: OnceLock<Option<Exports>>,
}

impl ElfFile {
    /// Reads the headers. Returns `None` if the file is not an ELF file for x86-64.
    pub(crate) fn parse(bytes: FileBytes) -> Option<Self> {
        let headers = Headers::read(&bytes).ok()?;
        let notes = headers.notes.iter().filter_map(|n| bytes.read(n.offset, n.size.min(MAX_NOTES)));
        let hex = |id: &[u8]| id.iter().map(|b| format!("{b:02x}")).collect();
        let build_id = { notes }.find_map(|notes| elf::build_id(&notes).map(hex));
        let mut file = Self {
            bytes: Arc::new(bytes),
            headers,
            needs_others: false,
            soname: None,
            build_id,
            dynamic_symbols: OnceLock::new(),
            exports: OnceLock::new(),
        };
        if let Some(dynamic) = file.headers.dynamic {
            file.read_dynamic(dynamic.offset, dynamic.size);
        }
        Some(file)
    }

    fn read_dynamic(&mut self, offset: u64, size: u64) {
        let Some(bytes) = self.bytes.read(offset, size.min(MAX_DYNAMIC)) else { return };
        let (mut strings, mut soname) = (None, None);
        for (tag, value) in entries(&bytes) {
            match tag {
                raw::DT_NEEDED => self.needs_others = true,
                raw::DT_STRTAB => strings = Some(value),
                raw::DT_SONAME => soname = Some(value),
                _ => {}
            }
        }
        if let (Some(strings), Some(soname)) = (strings, soname) {
            self.soname = self.dynamic_string(strings, soname);
        }
    }

    fn dynamic_string(&self, strings: u64, offset: u64) -> Option<String> {
        let mut name = vec![0; 256];
        let got = self.read_code_into(strings.wrapping_add(offset), &mut name);
        name.truncate(got);
        c_str(&name, 0).map(|s| String::from_utf8_lossy(s).into_owned())
    }

    /// Returns the names of at most `most` files that this one needs, in their order, and the folders to search for
    /// them first, as the file has them.
    pub(crate) fn needed(&self, most: usize) -> (Vec<String>, Vec<String>) {
        let dynamic = self.headers.dynamic.filter(|_| self.needs_others);
        let Some(dynamic) = dynamic else { return Default::default() };
        let bytes = self.bytes.read(dynamic.offset, dynamic.size.min(MAX_DYNAMIC)).unwrap_or_default();
        let Some(strings) = entries(&bytes).find(|(tag, _)| *tag == raw::DT_STRTAB).map(|(_, at)| at) else {
            return Default::default();
        };
        let of = |wanted: &[raw::DynamicTag]| {
            let named = entries(&bytes).filter(|(tag, _)| wanted.contains(tag)).take(most);
            named.filter_map(|(_, offset)| self.dynamic_string(strings, offset)).collect::<Vec<_>>()
        };
        let folders = of(&[raw::DT_RUNPATH, raw::DT_RPATH]);
        let folders = folders.iter().flat_map(|all| all.split(':')).filter(|one| !one.is_empty()).take(most);
        (of(&[raw::DT_NEEDED]), folders.map(str::to_owned).collect())
    }

    /// Returns true if the program asks for a dynamic loader.
    pub(crate) fn has_interpreter(&self) -> bool {
        self.headers.interpreter.is_some()
    }

    /// Returns the path of the dynamic loader that the program asks for.
    pub(crate) fn interpreter(&self) -> Option<String> {
        let piece = self.headers.interpreter?;
        let bytes = self.bytes.read(piece.offset, piece.size.min(MAX_PATH))?;
        String::from_utf8(c_str(&bytes, 0)?.to_vec()).ok()
    }

    /// Returns the file offset of `vaddr`, and the number of bytes that its segment has in the file from there on.
    fn locate(&self, vaddr: u64) -> Option<(u64, u64)> {
        self.headers.segments.iter().find_map(|s| {
            let into = vaddr.checked_sub(s.vaddr)?;
            (into < s.file_size).then(|| Some((s.offset.checked_add(into)?, s.file_size - into)))?
        })
    }

    /// Reads the file's bytes that are mapped at `vaddr` into `buffer`. Returns the number of bytes read.
    pub(crate) fn read_code_into(&self, vaddr: u64, buffer: &mut [u8]) -> usize {
        let Some((offset, rest)) = self.locate(vaddr) else { return 0 };
        let rest = rest.min(self.bytes.len().saturating_sub(offset));
        let len = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        let read = buffer.get_mut(..len).is_some_and(|part| self.bytes.read_into(offset, part));
        if read { len } else { 0 }
    }

    /// Returns `len` bytes mapped at `vaddr`; `None` if the file has fewer.
    pub(crate) fn read_vaddr(&self, vaddr: u64, len: u64) -> Option<Vec<u8>> {
        let (offset, rest) = self.locate(vaddr)?;
        (len <= rest).then(|| self.bytes.read(offset, len))?
    }

    /// Returns a view of `len` bytes mapped at `vaddr`, which are read on demand.
    pub(crate) fn view_vaddr(&self, vaddr: u64, len: u64) -> Option<View> {
        let (offset, rest) = self.locate(vaddr)?;
        (len <= rest).then(|| View::in_file(&self.bytes, offset, len))?
    }

    /// Returns a view of the bytes mapped from `vaddr` to the end of its segment, which are read on demand.
    pub(crate) fn view_to_segment_end(&self, vaddr: u64) -> Option<View> {
        let (offset, rest) = self.locate(vaddr)?;
        View::in_file(&self.bytes, offset, rest.min(self.bytes.len().checked_sub(offset)?))
    }

    /// Returns the address of the entry point; 0 if there is none.
    pub(crate) fn entry(&self) -> u64 {
        self.headers.entry
    }

    /// Returns true if `vaddr` lies in a segment that holds code.
    pub(crate) fn is_code(&self, vaddr: u64) -> bool {
        self.headers.is_code(vaddr)
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.headers.section(name)
    }

    /// Returns a section's contents, decompressed.
    pub(crate) fn section_data(&self, section: &Section) -> Option<Vec<u8>> {
        if !section.is_stored() {
            return None;
        }
        let data = self.bytes.read(section.offset, section.size)?;
        if !section.is_compressed() {
            return Some(data);
        }
        let (header, packed) = object::from_bytes::<raw::CompressionHeader64<Le>>(&data).ok()?;
        let size = header.ch_size.get(Le);
        let format = match header.ch_type.get(Le) {
            raw::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
            raw::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
            _ => return None,
        };
        if size > MAX_INFLATED {
            return None;
        }
        let packed = CompressedData { format, data: packed, uncompressed_size: size };
        Some(packed.decompress().ok()?.into_owned())
    }

    /// Returns a view of a section's contents, which are read on demand. A compressed section is read now.
    pub(crate) fn section_view(&self, section: &Section) -> Option<View> {
        if !section.is_stored() || section.is_compressed() {
            return self.section_data(section).map(View::of);
        }
        View::in_file(&self.bytes, section.offset, section.size)
    }

    /// Returns the file's `.dynsym`, which is opened once.
    pub(crate) fn dynamic_symbols(&self) -> Option<&Arc<SymbolTable>> {
        let read = || {
            let section = self.headers.of_kind(raw::SHT_DYNSYM)?;
            let strings = Strings::of_view(self.section_view(self.headers.linked(section)?)?);
            Some(Arc::new(SymbolTable::new(self.section_view(section)?, strings)))
        };
        self.dynamic_symbols.get_or_init(read).as_ref()
    }

    /// Returns the file's index of its exported symbols, which is opened once.
    pub(crate) fn exports(&self) -> Option<&Exports> {
        let read = || {
            let index = self.section_view(self.headers.of_kind(raw::SHT_GNU_HASH)?)?;
            Exports::new(Arc::clone(self.dynamic_symbols()?), index)
        };
        self.exports.get_or_init(read).as_ref()
    }

    /// Returns the file's `.symtab`.
    pub(crate) fn symbols(&self) -> Option<SymbolTable> {
        let section = self.headers.of_kind(raw::SHT_SYMTAB)?;
        let strings = self.open_strings(self.headers.linked(section)?)?;
        Some(SymbolTable::new(View::of(self.section_data(section)?), strings))
    }

    /// Opens a section's strings. If the section is large, they are read on demand.
    fn open_strings(&self, section: &Section) -> Option<Strings> {
        if section.size <= Strings::SMALL {
            return self.section_data(section).map(Strings::of);
        }
        self.section_view(section).map(Strings::of_view)
    }

    /// Returns true if the file itself has line tables, not only its debug file.
    pub(crate) fn has_lines(&self) -> bool {
        self.section(".debug_line").is_some_and(Section::is_stored)
            && self.section(".debug_info").is_some_and(Section::is_stored)
    }

    /// Returns the bias of a mapping of `file_offset` at `start`: the distance of addresses in memory from those in
    /// the file.
    pub(crate) fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let holds = |s: &&Segment| {
            let first = s.offset & !(PAGE - 1);
            let end = s.offset.saturating_add(s.file_size);
            file_offset >= first && file_offset < end
        };
        let segment = self.headers.segments.iter().filter(|s| s.executable).find(holds);
        let segment = segment.or_else(|| self.headers.segments.iter().find(holds))?;
        let vaddr = segment.vaddr.wrapping_add(file_offset.wrapping_sub(segment.offset));
        Some(start.wrapping_sub(vaddr))
    }
}

/// Returns the entries of a dynamic section as pairs of tag and value, up to the one that ends it.
fn entries(dynamic: &[u8]) -> impl Iterator<Item = (raw::DynamicTag, u64)> {
    let words = dynamic.as_chunks::<16>().0.iter().map(|entry| (word(entry, 0), word(entry, 8)));
    let entries = words.map(|(tag, value)| (raw::DynamicTag(tag.unwrap_or(0) as i64), value.unwrap_or(0)));
    entries.take_while(|(tag, _)| *tag != raw::DT_NULL)
}

/// Returns an ELF file of this machine with one executable segment at 0x1000, which holds `code`.
#[cfg(test)]
pub(crate) fn elf_of_code(code: &[u8]) -> ElfFile {
    let mut file = vec![0u8; 0x1000];
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let [low, high] = systoll_model::Machine::HERE.elf_machine().to_le_bytes();
    file[16..20].copy_from_slice(&[3, 0, low, high]);
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[54..58].copy_from_slice(&[56, 0, 1, 0]);
    file[64..72].copy_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    for at in [72, 80] {
        file[at..at + 8].copy_from_slice(&0x1000u64.to_le_bytes());
    }
    for at in [96, 104] {
        file[at..at + 8].copy_from_slice(&(code.len() as u64).to_le_bytes());
    }
    file.extend_from_slice(code);
    ElfFile::parse(FileBytes::Memory(file.into())).unwrap()
}
