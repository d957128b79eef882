//! V8's tables of positions: map an offset in code to a position in its script.

/// `SourcePosition`: an offset in a script, and the number of the inlined function to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(pub(crate) u64);

impl Position {
    /// Returns the offset in the script, in UTF-16 units; `None` if it is not known.
    pub(crate) fn offset(self) -> Option<u32> {
        let external = self.0 & 1 != 0;
        // The stored offset is one more, so that 0 stands for none.
        ((self.0 >> 1 & 0x3fff_ffff) as u32).checked_sub(1).filter(|_| !external)
    }

    /// Returns the number of the inlined function, from 0 on; `None` for the code's own function.
    pub(crate) fn inlined(self) -> Option<u64> {
        (self.0 >> 31 & 0xffff).checked_sub(1)
    }
}

/// A reader of packed numbers, from the first byte to the last.
pub(crate) struct Quantities<'b>(pub(crate) &'b [u8]);

impl Quantities<'_> {
    /// Returns the next number: seven bits a byte, the lowest first; the last byte's highest bit is zero.
    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Returns the next number; its lowest bit is the sign.
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

/// Form of the numbers by which a table of positions tells the distance from one instruction to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The sign tells whether the position is that of a statement (up to V8 13).
    Signed,
    /// Two flags stand below the distance: whether it is a statement, and whether a debugger can stop there (V8 14).
    Flagged,
}

/// Returns the position of the instruction at `offset`: that of the last entry at or before it.
pub(crate) fn position(table: &[u8], steps: Steps, offset: u64) -> Option<Position> {
    let mut table = Quantities(table);
    let (mut at, mut place, mut found) = (-1i64, 0i64, None);
    let offset = i64::try_from(offset).ok()?;
    let next = |table: &mut Quantities<'_>| match steps {
        Steps::Signed => table.signed().map(|step| if step < 0 { -(step + 1) } else { step }),
        Steps::Flagged => table.unsigned().map(|step| (step >> 2).cast_signed()),
    };
    while let Some(step) = next(&mut table) {
        at = at.checked_add(step)?;
        if at > offset {
            break;
        }
        place = place.checked_add(table.signed()?)?;
        found = Some(Position(place.cast_unsigned()));
    }
    found
}

/// Returns the offset of the bytecode whose baseline code made the call that returns to `offset`. The table tells the
/// size of the function's entry code, then that of the code of each bytecode.
pub(crate) fn of_baseline(table: &[u8], bytecode: &[u8], sizes: &[u8], offset: u64) -> Option<u64> {
    let mut table = Quantities(table);
    let mut end = table.unsigned()?;
    let mut at = 0u64;
    loop {
        end = end.checked_add(table.unsigned()?)?;
        if end >= offset {
            return Some(at);
        }
        at = at.checked_add(bytecode_length(bytecode.get(usize::try_from(at).ok()?..)?, sizes)?)?;
    }
}

/// Returns the length of the bytecode at the start of `code`, including a prefix that scales its operands.
fn bytecode_length(code: &[u8], sizes: &[u8]) -> Option<u64> {
    let count = sizes.len() / 3;
    let scale = |n: usize, op: u8| sizes.get(n * count..)?.get(..count)?.get(usize::from(op)).copied();
    // The prefixes are `Wide`, `ExtraWide`, and the same two with a breakpoint.
    let length = match *code.first()? {
        0 | 2 => 1 + scale(1, *code.get(1)?)?,
        1 | 3 => 1 + scale(2, *code.get(1)?)?,
        op => scale(0, op)?,
    };
    (length > 0).then_some(u64::from(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a number as V8 writes it.
    fn written(number: i64) -> Vec<u8> {
        unsigned((number << 1 ^ number >> 63).cast_unsigned())
    }

    fn unsigned(mut rest: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let low = (rest & 0x7f) as u8;
            rest >>= 7;
            bytes.push(if rest == 0 { low } else { low | 0x80 });
            if rest == 0 {
                return bytes;
            }
        }
    }

    /// Returns a table of offsets and positions as V8 writes it.
    fn table(entries: &[(i64, i64, bool)], steps: Steps) -> Vec<u8> {
        let (mut at, mut place) = (-1, 0);
        let mut bytes = Vec::new();
        for (offset, position, is_statement) in entries {
            let step = offset - at;
            match steps {
                Steps::Signed => bytes.extend(written(if *is_statement { step } else { -step - 1 })),
                Steps::Flagged => bytes.extend(unsigned((step << 2 | 2 | i64::from(*is_statement)).cast_unsigned())),
            }
            bytes.extend(written(position - place));
            (at, place) = (*offset, *position);
        }
        bytes
    }

    #[test]
    fn a_table_of_node_26_is_read() {
        // As it was in memory, of a function whose places `--print-bytecode` told.
        let bytes =
            [2, 0x3c, 7, 0x50, 0xb, 0x14, 0x12, 0, 0x1b, 0x40, 0x12, 0x20, 0x13, 0x3f, 0x16, 0x67, 0x17, 0xe0, 1];
        let told = |offset| position(&bytes, Steps::Flagged, offset).and_then(Position::offset);
        assert_eq!([0, 2, 6, 12, 16, 20, 25, 30].map(told), [34, 39, 39, 55, 63, 47, 21, 77].map(Some));
    }

    #[test]
    fn the_last_position_before_an_instruction_is_its() {
        let place = |offset: i64| (offset + 1) << 1;
        for steps in [Steps::Signed, Steps::Flagged] {
            let bytes = table(&[(0, place(40), true), (5, place(900), false), (300, place(7), true)], steps);
            let told = |offset| position(&bytes, steps, offset).and_then(Position::offset);
            assert_eq!([0, 4, 5, 299, 300, 9999].map(told), [40, 40, 900, 900, 7, 7].map(Some));
            let later = table(&[(3, 2, true)], steps);
            assert_eq!((position(&[], steps, 5), position(&later, steps, 2)), (None, None));
        }
        let inlined = Position(17 << 1 | 3 << 31);
        assert_eq!((inlined.offset(), inlined.inlined(), Position(17 << 1).inlined()), (Some(16), Some(2), None));
        assert_eq!((Position(0).offset(), Position(35).offset()), (None, None));
    }

    #[test]
    fn baseline_code_is_counted_by_bytecodes() {
        // Bytecodes 4 and 5 are one and three bytes long; with wide operands, bytecode 5 has seven.
        let sizes: Vec<u8> = [[1, 1, 1, 1, 1, 3], [0, 0, 0, 0, 1, 6], [0, 0, 0, 0, 1, 9]].concat();
        let bytecode = [4, 5, 9, 9, 0, 5, 9, 9, 9, 9, 9, 4];
        // The entry code has 10 bytes, the code of the bytecodes 20, 4, 8 and 6.
        let table = [10, 20, 4, 8, 6];
        let told = |offset| of_baseline(&table, &bytecode, &sizes, offset);
        assert_eq!([11, 30, 31, 34, 35, 42, 43, 48].map(told), [0, 0, 1, 1, 4, 4, 11, 11].map(Some));
        assert_eq!((told(49), of_baseline(&table, &bytecode, &[], 31)), (None, None));
    }

    proptest! {
        #[test]
        fn any_table_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), offset: u64, at in 0u64..300) {
            for steps in [Steps::Signed, Steps::Flagged] {
                position(&bytes, steps, offset);
                position(&bytes, steps, at);
            }
            of_baseline(&bytes, &bytes, &bytes, at);
        }

        #[test]
        fn what_is_written_is_read(mut entries in proptest::collection::vec((0i64..5000, 0i64..1 << 40, any::<bool>()), 1..40), at in 0i64..5000, newer: bool) {
            let steps = if newer { Steps::Flagged } else { Steps::Signed };
            entries.sort();
            entries.dedup_by_key(|e| e.0);
            let expected = entries.iter().rev().find(|e| e.0 <= at).map(|e| Position(e.1.cast_unsigned()));
            prop_assert_eq!(position(&table(&entries, steps), steps, at.cast_unsigned()), expected);
        }
    }
}
