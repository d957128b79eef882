//! The parts of an ELF file that planning looks at, bounded and checked.
//!
//! Invariant: regions of code are disjoint, sorted, and together no longer than the file.

use super::types::{PlanError, Segment, VdsoFunction};
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym};

type Header = elf::FileHeader64<Le>;
type Sections<'a> = SectionTable<'a, Header>;

/// Nothing of a program lies higher (x86-64 has 47 or 56 bits), so adding to addresses is safe.
const HIGHEST: u64 = 1 << 56;
/// The most code that is looked at, in bytes: some five seconds of decoding.
const MAX_CODE: u64 = 512 << 20;
/// What the kernel names the object it maps into every process.
const VDSO: &[u8] = b"linux-vdso.so.1";

/// How GCC's unwinder finds call frame information (gcc: libgcc/unwind-dw2-fde-dip.c).
const UNWINDER: &[u8] = b"_Unwind_Find_FDE";
/// How ThreadSanitizer (Go's race detector too) and MemorySanitizer begin.
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

    /// The bytes of `start..end`, as far as they lie here.
    pub(super) fn slice(&self, start: u64, end: u64) -> &'a [u8] {
        let at = |address: u64| usize::try_from(address.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(at(start)..at(end).min(self.bytes.len())).unwrap_or_default()
    }
}

/// A file, read.
pub(super) struct Image<'a> {
    data: &'a [u8],
    pub(super) segments: Vec<Segment>,
    /// Machine code: executable sections, or whole executable segments where sections are gone.
    pub(super) code: Vec<Region<'a>>,
    /// Address and size of whatever symbols name in code.
    pub(super) symbols: Vec<(u64, u64)>,
    /// The same of those that say they are data.
    pub(super) objects: Vec<(u64, u64)>,
    pub(super) entry: u64,
    /// Whether it can only be mapped where it says (ET_EXEC).
    pub(super) is_fixed: bool,
    /// `.eh_frame` and where it is mapped.
    pub(super) eh_frame: Option<(u64, &'a [u8])>,
    /// `.gopclntab`, which Go programs have in place of `.eh_frame`, and where it is mapped.
    pub(super) pclntab: Option<(u64, &'a [u8])>,
    /// Where `.text` starts.
    pub(super) text: u64,
    /// Whether it may run with a shadow stack, which holds returns to what was called.
    pub(super) shadow_stack: bool,
    /// Functions to be hooked at their entry, if this is the vDSO.
    pub(super) vdso: Vec<(VdsoFunction, u64)>,
    /// Address of `_Unwind_Find_FDE`, if it is here.
    pub(super) unwinder: Option<u64>,
    /// See [`super::Plan::guards_memory`].
    pub(super) guards_memory: bool,
}

impl<'a> Image<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, PlanError> {
        let (header, phdrs) = headers(data)?;
        let segments = segments(phdrs, data)?;
        // A program runs without section headers, and with broken ones.
        let sections = header.sections(Le, data).unwrap_or_default();
        let mut image = Self {
            data,
            segments,
            code: Vec::new(),
            symbols: Vec::new(),
            objects: Vec::new(),
            entry: header.e_entry.get(Le),
            is_fixed: header.e_type(Le) == elf::ET_EXEC,
            eh_frame: None,
            pclntab: None,
            text: 0,
            shadow_stack: shadow_stack(phdrs, data),
            vdso: Vec::new(),
            unwinder: None,
            guards_memory: false,
        };
        image.find_code(&sections)?;
        image.find_tables(&sections, phdrs);
        let is_vdso = image.is_vdso(&sections);
        image.read_symbols(&sections, elf::SHT_SYMTAB, false);
        image.read_symbols(&sections, elf::SHT_DYNSYM, is_vdso);
        image.symbols.sort_unstable();
        image.symbols.dedup();
        Ok(image)
    }

    /// Everything the file has mapped from `vaddr` to the end of its segment.
    pub(super) fn from(&self, vaddr: u64) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|s| {
            let into = vaddr.checked_sub(s.vaddr).filter(|into| *into < s.file_size)?;
            let start = usize::try_from(s.file_offset.checked_add(into)?).ok()?;
            let end = usize::try_from(s.file_offset.checked_add(s.file_size)?).ok()?;
            self.data.get(start..end)
        })
    }

    /// The region that holds `address`.
    pub(super) fn region(&self, address: u64) -> Option<&Region<'a>> {
        let next = self.code.partition_point(|r| r.start <= address);
        self.code.get(next.checked_sub(1)?).filter(|r| address < r.end())
    }

    /// Where code sets the gs base by an instruction (`wrgsbase` of 64 bits), by its bytes
    /// alone: nobody decodes files without calls.
    pub(super) fn sets_gs(&self) -> Option<u64> {
        let found = |b: &[u8]| matches!(b, [0xf3, 0x48 | 0x49, 0x0f, 0xae, 0xd8..=0xdf]);
        let place = |region: &Region<'_>| Some(region.start + region.bytes.windows(5).position(found)? as u64);
        self.code.iter().find_map(place)
    }

    /// Every mapped segment's address and bytes, and whether it may be run.
    pub(super) fn mapped(&self) -> impl Iterator<Item = (u64, &'a [u8], bool)> {
        self.segments.iter().filter_map(|s| Some((s.vaddr, self.from(s.vaddr)?, s.executable)))
    }

    /// The word at `vaddr`, as the file has it.
    pub(super) fn word(&self, vaddr: u64) -> Option<u64> {
        self.from(vaddr)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    /// Address and value of every aligned word that is mapped and can't be run, as the file has it.
    pub(super) fn words(&self) -> impl Iterator<Item = (u64, u64)> {
        self.mapped().filter(|m| !m.2).flat_map(|(start, bytes, _)| {
            let aligned = start.next_multiple_of(8);
            let words = bytes.get((aligned - start) as usize..).unwrap_or_default().as_chunks::<8>().0;
            (aligned..).step_by(8).zip(words.iter().map(|word| u64::from_le_bytes(*word)))
        })
    }

    /// Address and bytes of what a program may read as its own numbers: its sections of data, or all that is
    /// mapped and can't be run where sections are gone.
    pub(super) fn constants(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let named = headers(self.data).ok().and_then(|(header, _)| header.sections(Le, self.data).ok());
        let named = named.unwrap_or_default();
        let is_data = |s: &&elf::SectionHeader64<Le>| {
            let kept = s.sh_flags(Le) & (elf::SHF_ALLOC | elf::SHF_EXECINSTR);
            s.sh_type(Le) == elf::SHT_PROGBITS && kept == elf::SHF_ALLOC
        };
        let unnamed = named.is_empty();
        let data = |s: &elf::SectionHeader64<Le>| Some((s.sh_addr(Le), s.data(Le, self.data).ok()?));
        let sections: Vec<_> = named.iter().filter(is_data).filter_map(data).collect();
        let whole = self.mapped().filter(move |m| unnamed && !m.2).map(|(at, bytes, _)| (at, bytes));
        sections.into_iter().chain(whole)
    }

    /// Where relocations put addresses of the file's own, and which, by rising address.
    pub(super) fn relocated(&self) -> Vec<(u64, u64)> {
        let Ok((header, _)) = headers(self.data) else { return Vec::new() };
        let sections = header.sections(Le, self.data).unwrap_or_default();
        let tables = sections.iter().filter_map(|s| s.rela(Le, self.data).ok().flatten());
        // A file may name a table over and over.
        let most = self.data.len() / size_of::<elf::Rela64<Le>>();
        let own = |r: &&elf::Rela64<Le>| r.r_type(Le, false) == elf::R_X86_64_RELATIVE;
        let all = tables.flat_map(|t| t.0.iter()).take(most).filter(own);
        let mut all: Vec<_> = all.map(|r| (r.r_offset(Le), r.r_addend(Le) as u64)).collect();
        all.sort_unstable();
        all
    }

    fn find_code(&mut self, sections: &Sections<'a>) -> Result<(), PlanError> {
        let executable = |s: &&elf::SectionHeader64<Le>| {
            let flags = s.sh_flags(Le);
            flags & elf::SHF_EXECINSTR == elf::SHF_EXECINSTR && s.sh_type(Le) != elf::SHT_NOBITS
        };
        let mut parts: Vec<(u64, u64)> =
            sections.iter().filter(executable).map(|s| (s.sh_addr(Le), s.sh_size(Le))).collect();
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

    fn find_tables(&mut self, sections: &Sections<'a>, phdrs: &[elf::ProgramHeader64<Le>]) {
        for section in sections.iter() {
            let name = sections.section_name(Le, section).unwrap_or_default();
            let data = || section.data(Le, self.data).ok();
            match name {
                b".eh_frame" => self.eh_frame = data().map(|d| (section.sh_addr(Le), d)),
                b".gopclntab" | b".data.rel.ro.gopclntab" => self.pclntab = data().map(|d| (section.sh_addr(Le), d)),
                b".text" => self.text = section.sh_addr(Le),
                _ => {}
            }
        }
        if self.eh_frame.is_none() {
            let header = phdrs.iter().find(|p| p.p_type(Le) == elf::PT_GNU_EH_FRAME);
            self.eh_frame = header.and_then(|p| self.eh_frame_by_header(p.p_vaddr(Le)));
        }
    }

    /// Finds `.eh_frame` as the unwinder of a running program does.
    fn eh_frame_by_header(&self, vaddr: u64) -> Option<(u64, &'a [u8])> {
        let header = gimli::EhFrameHdr::new(self.from(vaddr)?, gimli::LittleEndian);
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(vaddr);
        match header.parse(&bases, 8).ok()?.eh_frame_ptr() {
            gimli::Pointer::Direct(at) => Some((at, self.from(at)?)),
            gimli::Pointer::Indirect(_) => None,
        }
    }

    fn is_vdso(&self, sections: &Sections<'a>) -> bool {
        // Small, and read from no file: the name it gives itself is the only one there is.
        let dynstr = sections.section_by_name(Le, b".dynstr").and_then(|(_, s)| s.data(Le, self.data).ok());
        dynstr.is_some_and(|names| names.split(|b| *b == 0).any(|name| name == VDSO))
            && sections.section_by_name(Le, b".interp").is_none()
            && sections.section_by_name(Le, b".got").is_none()
    }

    fn read_symbols(&mut self, sections: &Sections<'a>, kind: elf::SectionType, is_vdso: bool) {
        let Ok(table) = sections.symbols(Le, self.data, kind) else { return };
        for symbol in table.iter() {
            self.guards_memory |= table.symbol_name(Le, symbol).is_ok_and(|name| GUARDS.contains(&name));
            let about_code = ![elf::STT_SECTION, elf::STT_FILE, elf::STT_TLS].contains(&symbol.st_type());
            let address = symbol.st_value(Le);
            if symbol.is_undefined(Le) || !about_code || self.region(address).is_none() {
                continue;
            }
            let is_data = symbol.st_type() == elf::STT_OBJECT && symbol.st_size(Le) > 0;
            let list = if is_data { &mut self.objects } else { &mut self.symbols };
            list.push((address, symbol.st_size(Le)));
            if self.unwinder.is_none() && table.symbol_name(Le, symbol) == Ok(UNWINDER) {
                self.unwinder = Some(address);
            }
            if let Some(function) =
                is_vdso.then(|| table.symbol_name(Le, symbol).ok()).flatten().and_then(vdso_function)
            {
                self.vdso.push((function, address));
            }
        }
    }
}

/// The segments of `data` alone.
pub(super) fn mapped_segments(data: &[u8]) -> Result<Vec<Segment>, PlanError> {
    segments(headers(data)?.1, data)
}

pub(super) fn headers(data: &[u8]) -> Result<(&Header, &[elf::ProgramHeader64<Le>]), PlanError> {
    let header = Header::parse(data).map_err(|_| not_elf64(data))?;
    if header.e_ident.data != elf::ELFDATA2LSB || header.e_machine.get(Le) != elf::EM_X86_64 {
        return Err(PlanError::Foreign);
    }
    let phdrs = header.program_headers(Le, data).map_err(|_| PlanError::Malformed)?;
    Ok((header, phdrs))
}

/// The GNU build-id in the notes of `data`, if it has one.
pub(super) fn build_id(data: &[u8]) -> Option<&[u8]> {
    let (_, phdrs) = headers(data).ok()?;
    phdrs.iter().find_map(|p| {
        let mut notes = p.notes(Le, data).ok()??;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(Le) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc());
            }
        }
        None
    })
}

/// Whether the file says that it may run with a shadow stack: GNU_PROPERTY_X86_FEATURE_1_AND with
/// GNU_PROPERTY_X86_FEATURE_1_SHSTK among its properties (x86-64 psABI, 4.1.4). Damaged ones count
/// as saying so.
fn shadow_stack(phdrs: &[elf::ProgramHeader64<Le>], data: &[u8]) -> bool {
    phdrs.iter().any(|p| {
        let Ok(Some(mut notes)) = p.notes(Le, data) else { return p.p_type(Le) == elf::PT_NOTE };
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

fn not_elf64(data: &[u8]) -> PlanError {
    let ident = |at| data.get(at).copied();
    let foreign = data.starts_with(&elf::ELFMAG) && (ident(4) == Some(1) || ident(5) == Some(2));
    if foreign { PlanError::Foreign } else { PlanError::Malformed }
}

fn segments(phdrs: &[elf::ProgramHeader64<Le>], data: &[u8]) -> Result<Vec<Segment>, PlanError> {
    let mut segments = Vec::new();
    let mut total = 0u64;
    for p in phdrs.iter().filter(|p| p.p_type(Le) == elf::PT_LOAD) {
        let (vaddr, memory_size, file_offset) = (p.p_vaddr(Le), p.p_memsz(Le), p.p_offset(Le));
        let end = vaddr.checked_add(memory_size).filter(|end| *end < HIGHEST);
        let there = (data.len() as u64).checked_sub(file_offset);
        let (Some(_), Some(there)) = (end, there) else { return Err(PlanError::Malformed) };
        let file_size = p.p_filesz(Le).min(memory_size).min(there);
        total = total.saturating_add(file_size);
        let executable = p.p_flags(Le) & elf::PF_X == elf::PF_X;
        segments.push(Segment { vaddr, memory_size, file_offset, file_size, executable });
    }
    // A linker may map a page twice, at a seam; a file mapped over and over means mischief.
    if total > (data.len() as u64).saturating_mul(2) {
        return Err(PlanError::Malformed);
    }
    segments.sort_unstable_by_key(|s| s.vaddr);
    Ok(segments)
}
