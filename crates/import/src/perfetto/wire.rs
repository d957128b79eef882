//! Reads protobuf's wire format: packets of a file one after the other, and the fields of a packet
//! in place.
//!
//! It is written by hand: `prost` makes a value of each message, and an empty event takes two bytes
//! of a file but more than a hundred of memory, so that a packet within its bound could take
//! gigabytes. This reader makes no values.
//!
//! The format: <https://protobuf.dev/programming-guides/encoding/>.

use std::io::{self, BufRead, Read};

/// Largest number of bytes of a packet that is read. Perfetto's own buffers hold packets of some
/// MiB at most.
const MOST: u64 = 16 << 20;
/// The key of `packet`, the only field of a trace that is read: number 1, with a length.
pub(super) const PACKET: u8 = 0x0a;

/// A field's value in the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number of any width.
    Number(u64),
    /// Text, bytes, a message, or a list of numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    pub(super) fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { 0 }
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
}

/// The fields of a message, up to its end or to bytes that are no field.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    left: &'a [u8],
    /// True if the message ended with bytes that are no field.
    pub(super) broken: bool,
}

/// Returns the fields of a message.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { left: message, broken: false }
}

impl<'a> Fields<'a> {
    fn read(&mut self) -> Option<Field<'a>> {
        let key = varint(&mut self.left)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.left)?),
            1 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.left)?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into()),
            _ => return None,
        };
        (key >> 3 > 0).then_some(Field { number: key >> 3, value })
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(length)?;
        self.left = left;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if self.left.is_empty() || self.broken {
            return None;
        }
        let field = self.read();
        self.broken = field.is_none();
        field
    }
}

/// Returns the numbers of a list.
pub(super) fn numbers(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || varint(&mut bytes))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..10u32 {
        let (byte, left) = bytes.split_first()?;
        *bytes = left;
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Returns the first packet of a file's beginning, and the bytes that follow; `None` for these if
/// the packet is longer than `head`.
pub(super) fn first(mut head: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (key, left) = head.split_first()?;
    head = left;
    let length = usize::try_from(varint(&mut head)?).ok().filter(|_| *key == PACKET)?;
    Some(head.split_at_checked(length).map_or((head, None), |(packet, rest)| (packet, Some(rest))))
}

/// The packets of a file.
pub(super) struct Packets<R> {
    reader: R,
    packet: Vec<u8>,
    /// True if the file ends in the middle of a packet, or goes on with bytes that are no packet.
    pub(super) cut: bool,
    /// Number of packets that were too long to be read.
    pub(super) passed_over: u64,
}

impl<R: BufRead> Packets<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, packet: Vec::new(), cut: false, passed_over: 0 }
    }

    /// Returns the next packet; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let Some(key) = self.byte()? else { return Ok(None) };
            let length = self.length()?;
            let Some(length) = length.filter(|_| key == PACKET) else {
                self.cut = true;
                return Ok(None);
            };
            let mut body = (&mut self.reader).take(length);
            let whole = if length > MOST {
                self.passed_over += 1;
                io::copy(&mut body, &mut io::sink())? == length
            } else {
                self.packet.clear();
                body.read_to_end(&mut self.packet)? as u64 == length
            };
            if !whole {
                self.cut = true;
                return Ok(None);
            }
            if length <= MOST {
                return Ok(Some(&self.packet));
            }
        }
    }

    fn length(&mut self) -> io::Result<Option<u64>> {
        let (mut bytes, mut used) = ([0; 10], 0);
        for place in &mut bytes {
            let Some(byte) = self.byte()? else { break };
            (*place, used) = (byte, used + 1);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(varint(&mut bytes.get(..used).unwrap_or_default()))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        match self.reader.read_exact(&mut byte) {
            Ok(()) => Ok(Some(byte[0])),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packets_and_their_fields() {
        let file = [0x0a, 2, 0x40, 7, 0x0a, 0, 0x0a, 3, 0x5a, 1, 9, 0x0a, 9, 1];
        let mut packets = Packets::new(&file[..]);
        let mut found = Vec::new();
        while let Some(packet) = packets.next().unwrap() {
            found.extend(fields(packet).map(|f| (f.number, f.value.number(), f.value.bytes().to_vec())));
        }
        assert_eq!(found, [(8, 7, vec![]), (11, 0, vec![9])]);
        assert!(packets.cut);
    }

    #[test]
    fn a_packet_that_is_too_long_is_passed_over() {
        let length = MOST + 1;
        let mut file = vec![PACKET];
        file.extend((0..4).map(|at| (length >> (7 * at)) as u8 & 0x7f | if at < 3 { 0x80 } else { 0 }));
        file.resize(file.len() + length as usize, 0);
        file.extend([PACKET, 2, 0x40, 7]);
        let mut packets = Packets::new(&file[..]);
        assert_eq!(packets.next().unwrap(), Some(&[0x40, 7][..]));
        assert_eq!(packets.next().unwrap(), None);
        assert_eq!((packets.passed_over, packets.cut), (1, false));
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut packets = Packets::new(&bytes[..]);
            let mut all = 0;
            while let Some(packet) = packets.next().unwrap() {
                all += fields(packet).count();
            }
            prop_assert!(all <= bytes.len());
            prop_assert!(fields(&bytes).count() <= bytes.len() && numbers(&bytes).count() <= bytes.len());
        }
    }
}
