//! Made-up programs, as small as ELF lets them be.

/// Where `program` puts its code.
pub(crate) const TEXT: u64 = 0x40_1000;
/// Where `program` puts its data.
pub(crate) const DATA: u64 = 0x40_2000;

/// A program without section headers: one segment of code, entered at its start, one of data.
pub(crate) fn program(code: &[u8], data: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 2 * 56;
    let mut elf = Vec::new();
    elf.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    elf.extend(2u16.to_le_bytes());
    elf.extend(62u16.to_le_bytes());
    elf.extend(1u32.to_le_bytes());
    for word in [TEXT, 64, 0] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 2, 64, 0, 0] {
        elf.extend(half.to_le_bytes());
    }
    let offsets = [HEADERS, HEADERS + code.len() as u64];
    for (flags, offset, vaddr, size) in [(5u32, offsets[0], TEXT, code.len()), (6, offsets[1], DATA, data.len())] {
        elf.extend(1u32.to_le_bytes());
        elf.extend(flags.to_le_bytes());
        for word in [offset, vaddr, vaddr, size as u64, size as u64, 1] {
            elf.extend(word.to_le_bytes());
        }
    }
    elf.extend(code);
    elf.extend(data);
    elf
}
