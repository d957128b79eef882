//! Reads the fields of a message without decoding them, so that hostile messages are refused before
//! they are unfolded.

/// Returns the length-delimited field `number` of `message`; if it occurs several times, the last
/// one, as protobuf requires.
///
/// # Errors
/// Describes the malformed field.
pub(super) fn find(message: &[u8], number: u64) -> Result<Option<&[u8]>, String> {
    let mut found = None;
    for field in Fields(message) {
        let (n, bytes) = field?;
        if n == number {
            found = Some(bytes);
        }
    }
    Ok(found)
}

/// Returns the number of fields in `message`.
///
/// # Errors
/// Describes the malformed field.
pub(super) fn count(message: &[u8]) -> Result<usize, String> {
    Fields(message).try_fold(0, |n, field| field.map(|_| n + 1))
}

/// Iterator over the fields of a message: their numbers and, for length-delimited fields, their
/// bytes; fields of other kinds have none.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, &'a [u8]), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| "a field of its profile is broken".into()))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, &'a [u8])> {
        let key = self.varint()?;
        let number = key >> 3;
        match key & 7 {
            0 => self.varint().map(|_| (number, &[][..])),
            1 => self.bytes(8).map(|_| (number, &[][..])),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.bytes(length).map(|bytes| (number, bytes))
            }
            5 => self.bytes(4).map(|_| (number, &[][..])),
            // These are groups, which neither format uses, and invalid wire types.
            _ => None,
        }
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_broken_ones_are_errors() {
        // The fields are 1: varint 300, 2: "ab", 3: fixed32, 2: "c".
        let message = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d, 0, 0, 0, 0, 0x12, 1, b'c'];
        assert_eq!(find(&message, 2), Ok(Some(&b"c"[..])));
        assert_eq!(find(&message, 4), Ok(None));
        assert_eq!(count(&message), Ok(4));
        assert!(count(&message[..6]).is_err());
        assert!(count(&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
        assert!(count(&[0x0b]).is_err(), "a group");
    }
}
