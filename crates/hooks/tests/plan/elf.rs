//! Generated programs, as small as ELF permits.

/// Address of the code in `program`.
pub(crate) const TEXT: u64 = 0x40_1000;
/// Address of the data in `program`.
pub(crate) const DATA: u64 = 0x40_2000;

/// Makes a [`program`] with section headers that name functions. `functions` holds the distance of each from the
/// start of the code, and its size.
pub(crate) fn with_functions(code: &[u8], functions: &[(u64, u64)]) -> Vec<u8> {
    let mut elf = program(code, &[]);
    elf.resize(elf.len().next_multiple_of(8), 0);
    let symbols = elf.len() as u64;
    elf.extend([0; 24]);
    for (start, size) in functions {
        // Info and section of the symbol: a global function in the first section.
        elf.extend([0, 0, 0, 0, 0x12, 0, 1, 0]);
        elf.extend((TEXT + start).to_le_bytes());
        elf.extend(size.to_le_bytes());
    }
    let strings = elf.len() as u64;
    elf.extend([0; 8]);
    let sections = elf.len() as u64;
    let size = 24 * (functions.len() as u64 + 1);
    let header = |elf: &mut Vec<u8>, kind: u32, words: [u64; 4], link: u32, entry: u64| {
        let [flags, address, offset, size] = words;
        elf.extend(0u32.to_le_bytes());
        elf.extend(kind.to_le_bytes());
        for word in [flags, address, offset, size] {
            elf.extend(word.to_le_bytes());
        }
        elf.extend(link.to_le_bytes());
        elf.extend(1u32.to_le_bytes());
        elf.extend(1u64.to_le_bytes());
        elf.extend(entry.to_le_bytes());
    };
    header(&mut elf, 0, [0; 4], 0, 0);
    header(&mut elf, 1, [6, TEXT, HEADERS, code.len() as u64], 0, 0);
    header(&mut elf, 2, [0, 0, symbols, size], 3, 24);
    header(&mut elf, 3, [0, 0, strings, 8], 0, 0);
    elf[40..48].copy_from_slice(&sections.to_le_bytes());
    elf[58..60].copy_from_slice(&64u16.to_le_bytes());
    elf[60..62].copy_from_slice(&4u16.to_le_bytes());
    elf[62..64].copy_from_slice(&3u16.to_le_bytes());
    elf
}

/// Bytes of a program's headers; the code lies right behind them.
const HEADERS: u64 = 64 + 2 * 56;

/// Makes a program without section headers. One segment contains the code and begins at the entry point, the other
/// contains the data.
pub(crate) fn program(code: &[u8], data: &[u8]) -> Vec<u8> {
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
