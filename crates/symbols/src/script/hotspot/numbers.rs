//! HotSpot's packed numbers: the lines of methods, and the scopes of compiled code.

/// A reader of numbers as HotSpot packs them: digits in base 64, the lowest first; a byte below [`HIGH`] is the last.
/// From Java 20 on every byte is one more, so that none is zero.
pub(crate) struct Numbers<'b> {
    bytes: &'b [u8],
    more: u8,
}

/// Lowest byte after which another digit follows.
const HIGH: u8 = 192;
const MOST_BYTES: u32 = 5;

impl<'b> Numbers<'b> {
    pub(crate) fn new(bytes: &'b [u8], major: u32) -> Self {
        Self { bytes, more: u8::from(major >= 20) }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> Option<u32> {
        let mut sum = 0u32;
        for n in 0..MOST_BYTES {
            let byte = self.byte()?;
            let digit = u32::from(byte.checked_sub(self.more)?);
            sum = sum.wrapping_add(digit.wrapping_shl(6 * n));
            if byte < HIGH {
                break;
            }
        }
        Some(sum)
    }

    /// Returns the next number; its lowest bit is the sign.
    fn next_signed(&mut self) -> Option<i32> {
        let number = self.next()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Returns the line of the bytecode at `index`, from a method's table: that of the last entry at or before it.
    pub(crate) fn line(mut self, index: u32) -> Option<u32> {
        const END: u8 = 0;
        const LONG: u8 = 0xff;
        let (mut at, mut line) = (0u32, 0u32);
        let mut found: Option<(u32, u32)> = None;
        loop {
            let (step, lines) = match self.byte()? {
                END => break,
                LONG => (self.next_signed()?, self.next_signed()?),
                both => (i32::from(both >> 3), i32::from(both & 7)),
            };
            (at, line) = (at.checked_add_signed(step)?, line.checked_add_signed(lines)?);
            if at <= index && found.is_none_or(|(best, _)| at >= best) {
                found = Some((at, line));
            }
        }
        found.map(|(_, line)| line).filter(|line| *line > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a number as HotSpot writes it.
    fn written(number: u32, major: u32) -> Vec<u8> {
        let more = u32::from(major >= 20);
        let low = u32::from(HIGH) - more;
        let (mut rest, mut bytes) = (number, Vec::new());
        while rest >= low && bytes.len() < 4 {
            rest -= low;
            bytes.push((u32::from(HIGH) + rest % 64) as u8);
            rest /= 64;
        }
        bytes.push((rest + more) as u8);
        bytes
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number in 0u32..1 << 30, new: bool) {
            let major = if new { 21 } else { 17 };
            prop_assert_eq!(Numbers::new(&written(number, major), major).next(), Some(number));
        }

        #[test]
        fn any_table_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), index: u32, major in 8u32..30) {
            Numbers::new(&bytes, major).line(index);
            Numbers::new(&bytes, major).next();
        }
    }

    #[test]
    fn the_last_line_that_begins_before_a_bytecode_is_its() {
        // The lines are: 3 from bytecode 0 on, 5 from 4 on, 4 from 300 on.
        let mut table = vec![3, 4 << 3 | 2, 0xff];
        table.extend(written(296 << 1, 17));
        table.extend(written(1, 17));
        table.push(0);
        let told = |index| Numbers::new(&table, 17).line(index);
        assert_eq!([0, 3, 4, 299, 300, 9999].map(told), [3, 3, 5, 5, 4, 4].map(Some));
        assert_eq!((Numbers::new(&[0], 17).line(3), Numbers::new(&[], 17).line(3)), (None, None));
    }
}
