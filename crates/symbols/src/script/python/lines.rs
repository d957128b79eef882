//! From a code object's table and an instruction's offset to the source line.
//!
//! Formats: Objects/lnotab_notes.txt (until 3.9, and 3.10) and Objects/locations.md (from 3.11) of
//! CPython's sources.

/// The line of the instruction `offset` bytes into the code, `None` where it has none.
pub(crate) fn line(minor: u8, table: &[u8], first: u32, offset: u32) -> Option<u32> {
    let line = match minor {
        ..=9 => line_numbers(table, first, offset),
        10 => ranges(table, first, offset),
        _ => locations(table, first, offset),
    }?;
    u32::try_from(line).ok().filter(|l| *l > 0)
}

/// Pairs: bytes of code, then by how much the line changes behind them.
fn line_numbers(table: &[u8], first: u32, offset: u32) -> Option<i64> {
    let (mut at, mut line) = (0u64, i64::from(first));
    for pair in table.chunks_exact(2) {
        let [bytes, lines] = pair else { break };
        at += u64::from(*bytes);
        if at > u64::from(offset) {
            break;
        }
        line += i64::from(*lines as i8);
    }
    Some(line)
}

/// Pairs: bytes of code, and by how much their line differs from the one before; -128 for none.
fn ranges(table: &[u8], first: u32, offset: u32) -> Option<i64> {
    const NO_LINE: i8 = -128;
    let (mut end, mut line) = (0u64, i64::from(first));
    for pair in table.chunks_exact(2) {
        let [bytes, lines] = pair else { break };
        let by = *lines as i8;
        end += u64::from(*bytes);
        line += if by == NO_LINE { 0 } else { i64::from(by) };
        if end > u64::from(offset) {
            return (by != NO_LINE).then_some(line);
        }
    }
    None
}

/// Entries: a byte with the kind and how many code units, then what the kind needs.
fn locations(table: &[u8], first: u32, offset: u32) -> Option<i64> {
    const NONE: u8 = 15;
    let (mut end, mut line) = (0u64, i64::from(first));
    let mut bytes = table.iter().copied().peekable();
    while let Some(head) = bytes.next() {
        if head & 0x80 == 0 {
            return None;
        }
        let kind = head >> 3 & 15;
        line += match kind {
            13 | 14 => {
                let value = variable(&mut bytes);
                let by = (value >> 1) as i64;
                if value & 1 == 0 { by } else { -by }
            }
            10..=12 => i64::from(kind - 10),
            _ => 0,
        };
        end += 2 * (u64::from(head & 7) + 1);
        if end > u64::from(offset) {
            return (kind != NONE).then_some(line);
        }
        // Only an entry's first byte has the highest bit.
        while bytes.next_if(|b| b & 0x80 == 0).is_some() {}
    }
    None
}

/// Six bits a byte, least first, while bit 6 is set.
fn variable(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mut value, mut shift) = (0u64, 0);
    for byte in bytes {
        value |= u64::from(byte & 0x3f).checked_shl(shift).unwrap_or(0);
        shift += 6;
        if byte & 0x40 == 0 || shift >= 60 {
            break;
        }
    }
    value
}
