//! Source lines of instructions, from a code object's table.
//!
//! Formats: Objects/lnotab_notes.txt (until 3.9, and 3.10) and Objects/locations.md (from 3.11 on)
//! of CPython's sources.

/// Returns the line of the instruction `offset` bytes into the code; `None` if it has none.
pub(crate) fn line(minor: u8, table: &[u8], first: u32, offset: u32) -> Option<u32> {
    let line = match minor {
        ..=9 => line_numbers(table, first, offset),
        10 => ranges(table, first, offset),
        _ => locations(table, first, offset),
    }?;
    u32::try_from(line).ok().filter(|l| *l > 0)
}

/// Reads the table of 3.9 and earlier: pairs of a number of bytes and the change of the line after
/// them.
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

/// Reads the table of 3.10: pairs of a number of bytes and the difference of their line from the
/// previous one, -128 for none.
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

/// Reads the table of 3.11 and later: entries of a byte with the kind and the number of code units,
/// then the kind's data.
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
        // Only the first byte of an entry has its highest bit set.
        while bytes.next_if(|b| b & 0x80 == 0).is_some() {}
    }
    None
}

/// Reads a number: six bits a byte, the lowest first; bit 6 says that another byte follows.
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
