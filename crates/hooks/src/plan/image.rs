//! The parts of an ELF file that planning needs, bounded and checked.
//!
//! Invariant: regions of code are disjoint, sorted, and together no longer than the file.

use super::pairs::has_pair;
use super::types::{PlanError, Segment, VdsoFunction};
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::NoteIterator;
use systoll_binfile::c_str;
use systoll_binfile::elf::{Headers, Names, NotRead, Relocation, Section, relocations, symbols};

/// Bytes of code that are examined, at most; decoding them takes some five seconds.
const MAX_CODE: u64 = 512 << 20;
/// Bytes of code that take some tens of milliseconds to decode.
const SMALL: usize = 4 << 20;
/// Name of the vDSO, which the kernel maps into every process.
const VDSO: &[u8] = b"linux-vdso.so.1";

/// Name of the function by which GCC's unwinder finds call frame information (gcc: libgcc/unwind-dw2-fde-dip.c).
const UNWINDER: &[u8] = b"_Unwind_Find_FDE";
/// Names of the first functions of ThreadSanitizer (Go's race detector too) and MemorySanitizer.
const GUARDS: [&[u8]; 2] = [b"__tsan_init", b"__msan_init"];

/// Consecutive bytes of machine code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region<'a> {
    pub(super) start: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Region<'a> {
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Returns the bytes of `start..end`, as far as they lie in the region.
    pub(super) fn slice(&self, start: u64, end: u64) -> &'a [u8] {
        let at = |address: u64| usize::try_from(address.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(at(start)..at(end).min(self.bytes.len())).unwrap_or_default()
    }
}

/// A parsed file.
pub(super) struct Image<'a> {
    pub(super) data: &'a [u8],
    headers: Headers,
    pub(super) segments: Vec<Segment>,
    /// Machine code: executable sections, or whole executable segments if there are no sections.
    pub(super) code: Vec<Region<'a>>,
    /// Addresses and sizes of symbols in code, except those that say they are data.
    pub(super) symbols: Vec<(u64, u64)>,
    /// Addresses and sizes of symbols in code that say they are data.
    pub(super) objects: Vec<(u64, u64)>,
    pub(super) entry: u64,
    /// True if the file can only be mapped at its own addresses (ET_EXEC).
    pub(super) is_fixed: bool,
    /// Address and bytes of `.eh_frame`.
    pub(super) eh_frame: Option<(u64, &'a [u8])>,
    /// Address and bytes of `.gopclntab`, which Go programs have instead of `.eh_frame`.
    pub(super) pclntab: Option<(u64, &'a [u8])>,
    /// Address of `.text`.
    pub(super) text: u64,
    /// True if the file may run with a shadow stack, which forbids returns to other places than the caller.
    pub(super) shadow_stack: bool,
    /// Functions to hook at their entry, if the file is the vDSO.
    pub(super) vdso: Vec<(VdsoFunction, u64)>,
    /// Address of `_Unwind_Find_FDE`, if it is in this file.
    pub(super) unwinder: Option<u64>,
    /// True if the file has shadow memory, see [`super::Plan::has_shadow_memory`].
    pub(super) has_shadow_memory: bool,
}

impl<'a> Image<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, PlanError> {
        let headers = headers(data)?;
        let mut image = Self {
            data,
            segments: segments(&headers, data)?,
            code: Vec::new(),
            symbols: Vec::new(),
            objects: Vec::new(),
            entry: headers.entry,
            is_fixed: headers.is_fixed,
            eh_frame: None,
            pclntab: None,
            text: 0,
            shadow_stack: shadow_stack(&headers, data),
            vdso: Vec::new(),
            unwinder: None,
            has_shadow_memory: false,
            headers,
        };
        image.find_code()?;
        image.find_tables();
        let is_vdso = image.is_vdso();
        image.read_symbols(elf::SHT_SYMTAB, false);
        image.read_symbols(elf::SHT_DYNSYM, is_vdso);
        image.symbols.sort_unstable();
        image.symbols.dedup();
        Ok(image)
    }

    /// Returns the file's bytes from `vaddr` to the end of its segment.
    pub(super) fn from(&self, vaddr: u64) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|s| {
            let into = vaddr.checked_sub(s.vaddr).filter(|into| *into < s.file_size)?;
            let start = usize::try_from(s.file_offset.checked_add(into)?).ok()?;
            let end = usize::try_from(s.file_offset.checked_add(s.file_size)?).ok()?;
            self.data.get(start..end)
        })
    }

    /// Returns true if all code of the file can be decoded in some tens of milliseconds.
    pub(super) fn is_small(&self) -> bool {
        self.code.iter().map(|region| region.bytes.len()).sum::<usize>() <= SMALL
    }

    /// Returns the region that holds `address`.
    pub(super) fn region(&self, address: u64) -> Option<&Region<'a>> {
        let next = self.code.partition_point(|r| r.start <= address);
        self.code.get(next.checked_sub(1)?).filter(|r| address < r.end())
    }

    /// Returns the address of an instruction that sets the gs base (`wrgsbase` of 64 bits), by its bytes only: files
    /// without calls are not decoded.
    pub(super) fn sets_gs(&self) -> Option<u64> {
        const PIECE: usize = 1 << 12;
        const LEN: usize = 5;
        let found = |b: &[u8]| matches!(b, [0xf3, 0x48 | 0x49, 0x0f, 0xae, 0xd8..=0xdf]);
        let may_have = |bytes: &[u8]| has_pair(bytes, |one, next| (one == 0x0f) & (next == 0xae));
        let place = |region: &Region<'_>| {
            (0..region.bytes.len()).step_by(PIECE).find_map(|from| {
                // The piece includes the bytes into which an instruction that begins in it may extend.
                let to = region.bytes.len().min(from + PIECE + LEN - 1);
                let piece = region.bytes.get(from..to).filter(|piece| may_have(piece))?;
                Some(region.start + (from + piece.windows(LEN).position(found)?) as u64)
            })
        };
        self.code.iter().find_map(place)
    }

    /// Returns each mapped segment's address and bytes, and true if it is executable.
    pub(super) fn mapped(&self) -> impl Iterator<Item = (u64, &'a [u8], bool)> {
        self.segments.iter().filter_map(|s| Some((s.vaddr, self.from(s.vaddr)?, s.executable)))
    }

    /// Returns the word at `vaddr` in the file.
    pub(super) fn word(&self, vaddr: u64) -> Option<u64> {
        self.from(vaddr)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    /// Returns the address and value of every aligned word in the file that is mapped and not executable.
    pub(super) fn words(&self) -> impl Iterator<Item = (u64, u64)> {
        self.mapped().filter(|m| !m.2).flat_map(|(start, bytes, _)| {
            let aligned = start.next_multiple_of(8);
            let words = bytes.get((aligned - start) as usize..).unwrap_or_default().as_chunks::<8>().0;
            (aligned..).step_by(8).zip(words.iter().map(|word| u64::from_le_bytes(*word)))
        })
    }

    /// Returns address and bytes of the program's constants: its sections of data, or everything that is mapped and not
    /// executable if there are no sections.
    pub(super) fn constants(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let is_data = |s: &&Section| {
            let kept = s.flags & (elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0);
            s.kind == elf::SHT_PROGBITS && kept == elf::SHF_ALLOC.0
        };
        let unnamed = self.headers.sections.is_empty();
        let data = |s: &Section| Some((s.addr, s.data(self.data)?));
        let sections: Vec<_> = self.headers.sections.iter().filter(is_data).filter_map(data).collect();
        let whole = self.mapped().filter(move |m| unnamed && !m.2).map(|(at, bytes, _)| (at, bytes));
        sections.into_iter().chain(whole)
    }

    /// Returns the places where relocations put addresses of this file, with those addresses, ascending.
    pub(super) fn relocated(&self) -> Vec<(u64, u64)> {
        let sections = self.headers.sections.iter().filter(|s| s.kind == elf::SHT_RELA);
        let tables = sections.filter_map(|s| s.data(self.data));
        // A file may name one table many times.
        let most = self.data.len() / size_of::<Relocation>();
        let own = |r: &&Relocation| elf::RelocationType(r.r_type(Le, false).0) == elf::R_X86_64_RELATIVE;
        let all = tables.flat_map(relocations).take(most).filter(own);
        let mut all: Vec<_> = all.map(|r| (r.r_offset.get(Le), r.r_addend.get(Le).cast_unsigned())).collect();
        all.sort_unstable();
        all
    }

    fn find_code(&mut self) -> Result<(), PlanError> {
        let code = self.headers.sections.iter().filter(|s| s.is_code());
        let mut parts: Vec<(u64, u64)> = code.map(|s| (s.addr, s.size)).collect();
        if parts.is_empty() {
            parts = self.segments.iter().filter(|s| s.executable).map(|s| (s.vaddr, s.file_size)).collect();
        }
        parts.sort_unstable();
        let (mut end, mut total) = (0, 0);
        for (start, size) in parts {
            let Some(bytes) = self.executable(start) else { continue };
            let bytes = bytes.get(..usize::try_from(size).unwrap_or(usize::MAX)).unwrap_or(bytes);
            let region = Region { start, bytes };
            let start = start.max(end);
            let rest = Region { start, bytes: region.slice(start, region.end()) };
            if rest.bytes.is_empty() {
                continue;
            }
            end = rest.end();
            total += rest.bytes.len() as u64;
            self.code.push(rest);
        }
        if total > self.data.len() as u64 {
            return Err(PlanError::Malformed);
        }
        if total > MAX_CODE {
            return Err(PlanError::TooLarge(total >> 20));
        }
        Ok(())
    }

    fn executable(&self, vaddr: u64) -> Option<&'a [u8]> {
        let holds = |s: &&Segment| s.executable && vaddr.wrapping_sub(s.vaddr) < s.file_size;
        self.segments.iter().find(holds).and_then(|_| self.from(vaddr))
    }

    fn find_tables(&mut self) {
        let mapped = |s: &Section| Some((s.addr, s.data(self.data)?));
        self.eh_frame = self.headers.section(".eh_frame").and_then(mapped);
        self.pclntab = self.headers.pclntab().and_then(mapped);
        self.text = self.headers.section(".text").map_or(0, |s| s.addr);
        if self.eh_frame.is_none() {
            self.eh_frame = self.headers.eh_frame_hdr.and_then(|piece| self.eh_frame_by_header(piece.vaddr));
        }
    }

    /// Returns the address and bytes of `.eh_frame`, found as the unwinder of a running program finds it.
    fn eh_frame_by_header(&self, vaddr: u64) -> Option<(u64, &'a [u8])> {
        let header = gimli::EhFrameHdr::new(self.from(vaddr)?, gimli::LittleEndian);
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(vaddr);
        match header.parse(&bases, 8).ok()?.eh_frame_ptr() {
            gimli::Pointer::Direct(at) => Some((at, self.from(at)?)),
            gimli::Pointer::Indirect(_) => None,
        }
    }

    fn is_vdso(&self) -> bool {
        // The vDSO is small and comes from no file: its only name is the one in its tables.
        let dynstr = self.headers.section(".dynstr").and_then(|s| s.data(self.data));
        dynstr.is_some_and(|names| names.split(|b| *b == 0).any(|name| name == VDSO))
            && self.headers.section(".interp").is_none()
            && self.headers.section(".got").is_none()
    }

    fn read_symbols(&mut self, kind: elf::SectionType, is_vdso: bool) {
        let Some(section) = self.headers.of_kind(kind) else { return };
        let (table, strings) = (section.data(self.data), self.headers.linked(section).and_then(|s| s.data(self.data)));
        let (Some(table), Some(strings)) = (table, strings) else { return };
        for symbol in symbols(table) {
            let name = c_str(strings, symbol.st_name.get(Le) as usize);
            self.has_shadow_memory |= name.is_some_and(|name| GUARDS.contains(&name));
            let (address, size) = (symbol.st_value.get(Le), symbol.st_size.get(Le));
            let is_code = |address| self.region(address).is_some();
            let list = match Names::of(symbol, is_code) {
                Names::Other => continue,
                _ if !is_code(address) => continue,
                // A symbol without a size is still a place to which something may lead.
                Names::Data if symbol.st_type() == elf::STT_OBJECT && size > 0 => &mut self.objects,
                Names::Data | Names::Code => &mut self.symbols,
            };
            list.push((address, size));
            if self.unwinder.is_none() && name == Some(UNWINDER) {
                self.unwinder = Some(address);
            }
            if let Some(function) = name.filter(|_| is_vdso).and_then(vdso_function) {
                self.vdso.push((function, address));
            }
        }
    }
}

/// Returns the segments of `data` without parsing the rest.
pub(super) fn mapped_segments(data: &[u8]) -> Result<Vec<Segment>, PlanError> {
    segments(&headers(data)?, data)
}

pub(super) fn headers(data: &[u8]) -> Result<Headers, PlanError> {
    Headers::read(data).map_err(|why| match why {
        NotRead::Malformed => PlanError::Malformed,
        NotRead::Foreign => PlanError::Foreign,
    })
}

/// Returns the GNU build-id in the notes of `data`, if it has one.
pub(super) fn build_id(data: &[u8]) -> Option<&[u8]> {
    headers(data).ok()?.notes.iter().find_map(|piece| systoll_binfile::elf::build_id(piece.data(data)?))
}

/// Returns true if the file says that it may run with a shadow stack: GNU_PROPERTY_X86_FEATURE_1_AND with
/// GNU_PROPERTY_X86_FEATURE_1_SHSTK among its properties (x86-64 psABI, 4.1.4). Damaged properties count as saying so.
fn shadow_stack(headers: &Headers, data: &[u8]) -> bool {
    type Header = elf::FileHeader64<Le>;
    headers.notes.iter().any(|piece| {
        let notes = piece.data(data).and_then(|notes| NoteIterator::<Header>::new(Le, piece.align, notes).ok());
        let Some(mut notes) = notes else { return true };
        while let Ok(Some(note)) = notes.next() {
            let Some(mut properties) = note.gnu_properties(Le) else { continue };
            while let Some(property) = properties.next().transpose() {
                let Ok(property) = property else { return true };
                let features = property.data_u32(Le);
                if property.pr_type() == elf::GNU_PROPERTY_X86_FEATURE_1_AND
                    && features.is_ok_and(|f| f & elf::GNU_PROPERTY_X86_FEATURE_1_SHSTK != 0)
                {
                    return true;
                }
            }
        }
        false
    })
}

fn vdso_function(name: &[u8]) -> Option<VdsoFunction> {
    match name {
        b"__vdso_time" => Some(VdsoFunction::Time),
        b"__vdso_clock_gettime" => Some(VdsoFunction::ClockGettime),
        b"__vdso_gettimeofday" => Some(VdsoFunction::Gettimeofday),
        b"__vdso_getcpu" => Some(VdsoFunction::Getcpu),
        _ => None,
    }
}

fn segments(headers: &Headers, data: &[u8]) -> Result<Vec<Segment>, PlanError> {
    if headers.is_damaged {
        return Err(PlanError::Malformed);
    }
    let mut segments = Vec::new();
    let mut total = 0u64;
    for s in &headers.segments {
        let file_size = s.stored(data.len() as u64).ok_or(PlanError::Malformed)?;
        total = total.saturating_add(file_size);
        let (vaddr, memory_size, file_offset) = (s.vaddr, s.memory_size, s.offset);
        segments.push(Segment { vaddr, memory_size, file_offset, file_size, executable: s.executable });
    }
    // A linker may map a page twice, at a seam; a file that is mapped many times is malicious.
    if total > (data.len() as u64).saturating_mul(2) {
        return Err(PlanError::Malformed);
    }
    segments.sort_unstable_by_key(|s| s.vaddr);
    Ok(segments)
}
