//! Compares outputs without storing them.

/// The agreement of two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sameness {
    /// No part that is compared is the same.
    Different,
    /// The lines are the same except for digits and order.
    ButDigitsAndOrder,
    /// Everything is the same except for digits (times, process ids).
    ButDigits,
    /// Every byte is the same.
    Exact,
}

/// A fingerprint of an output: of its bytes, of its bytes with each number replaced by one sign
/// (also hexadecimal ones after `0x`), and of its lines in any order. FNV-1a of 64 bits: it guards
/// against accidents, not malice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    bytes: u64,
    exact: u64,
    masked: u64,
    unordered: u64,
    line: u64,
    number: Number,
}

/// The position of a byte within a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Number {
    #[default]
    Outside,
    /// After a single zero: an `x` may follow.
    Zero,
    Decimal,
    Hex,
}

impl Number {
    /// Returns the state after `byte`, and true if `byte` continues the current number.
    fn then(self, byte: u8) -> (Self, bool) {
        match (self, byte) {
            (Self::Zero, b'x') => (Self::Hex, true),
            (Self::Hex, b) if b.is_ascii_hexdigit() => (Self::Hex, true),
            (Self::Zero | Self::Decimal, b'0'..=b'9') => (Self::Decimal, true),
            (_, b'0') => (Self::Zero, false),
            (_, b'1'..=b'9') => (Self::Decimal, false),
            _ => (Self::Outside, false),
        }
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
}

impl Default for Digest {
    fn default() -> Self {
        Self { bytes: 0, exact: FNV_START, masked: FNV_START, unordered: 0, line: FNV_START, number: Number::default() }
    }
}

impl Digest {
    /// Returns the fingerprint of `output`.
    pub fn of(output: &[u8]) -> Self {
        let mut digest = Self::default();
        digest.update(output);
        digest
    }

    /// Adds the next piece of the output.
    pub fn update(&mut self, piece: &[u8]) {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        for &byte in piece {
            self.exact = fnv(self.exact, byte);
            let (number, goes_on) = self.number.then(byte);
            self.number = number;
            if goes_on {
                continue;
            }
            let sign = if number == Number::Outside { byte } else { b'0' };
            self.masked = fnv(self.masked, sign);
            self.line = fnv(self.line, sign);
            if byte == b'\n' {
                self.unordered = self.unordered.wrapping_add(self.line);
                self.line = FNV_START;
            }
        }
    }

    /// Returns the length of the output.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how much of two outputs is the same.
    pub fn same(&self, other: &Digest) -> Sameness {
        let whole = |d: &Digest| d.unordered.wrapping_add(d.line);
        if (self.bytes, self.exact) == (other.bytes, other.exact) {
            Sameness::Exact
        } else if self.masked == other.masked {
            Sameness::ButDigits
        } else if whole(self) == whole(other) {
            Sameness::ButDigitsAndOrder
        } else {
            Sameness::Different
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, expect: Sameness) {
        assert_eq!(Digest::of(a.as_bytes()).same(&Digest::of(b.as_bytes())), expect);
    }

    #[test]
    fn sameness_has_steps() {
        check("", "", Sameness::Exact);
        check("pid 17\n", "pid 17\n", Sameness::Exact);
        check("pid 17\n", "pid 4711\n", Sameness::ButDigits);
        check("at 0x7f3c\n", "at 0x55aa01\n", Sameness::ButDigits);
        check("at 0x7f3c\n", "at 0x55aag\n", Sameness::Different);
        check("0 xa\n", "0 xb\n", Sameness::Different);
        check("a 1\nb 2\n", "b 7\na 12\n", Sameness::ButDigitsAndOrder);
        check("a\nb", "b\na", Sameness::Different);
        check("a\n", "b\n", Sameness::Different);
        check("a\n", "a\na\n", Sameness::Different);
        check("a\n", "", Sameness::Different);
    }

    #[test]
    fn pieces_do_not_matter() {
        let mut pieces = Digest::default();
        for piece in ["12", "34 x\n", "", "9"] {
            pieces.update(piece.as_bytes());
        }
        assert_eq!(pieces, Digest::of(b"1234 x\n9"));
        assert_eq!(pieces.bytes(), 8);
    }
}
