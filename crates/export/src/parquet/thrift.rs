//! Writes Thrift's compact protocol, as far as Parquet's headers need it.
//!
//! It follows <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// The type of a field in the encoding.
#[derive(Clone, Copy)]
enum Wire {
    I16 = 4,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct that is being written. Its fields must come in the order of rising ids.
#[derive(Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: i16,
}

impl Struct {
    fn field(&mut self, id: i16, wire: Wire) {
        // Ids of consecutive fields of Parquet's structs differ by less than 16.
        let by = (id - self.last) as u8;
        self.bytes.push(by << 4 | wire as u8);
        self.last = id;
    }

    pub(super) fn i16(mut self, id: i16, value: i16) -> Self {
        self.field(id, Wire::I16);
        varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    pub(super) fn i32(mut self, id: i16, value: i32) -> Self {
        self.field(id, Wire::I32);
        varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    pub(super) fn i64(mut self, id: i16, value: i64) -> Self {
        self.field(id, Wire::I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn text(mut self, id: i16, text: &str) -> Self {
        self.field(id, Wire::Binary);
        binary(&mut self.bytes, text);
        self
    }

    pub(super) fn nested(mut self, id: i16, inner: Struct) -> Self {
        self.field(id, Wire::Struct);
        self.bytes.extend(inner.end());
        self
    }

    pub(super) fn structs(mut self, id: i16, inner: Vec<Struct>) -> Self {
        self.list(id, Wire::Struct, inner.len());
        inner.into_iter().for_each(|s| self.bytes.extend(s.end()));
        self
    }

    pub(super) fn i32s(mut self, id: i16, values: &[i32]) -> Self {
        self.list(id, Wire::I32, values.len());
        values.iter().for_each(|v| varint(&mut self.bytes, zigzag((*v).into())));
        self
    }

    pub(super) fn texts(mut self, id: i16, texts: &[&str]) -> Self {
        self.list(id, Wire::Binary, texts.len());
        texts.iter().for_each(|t| binary(&mut self.bytes, t));
        self
    }

    fn list(&mut self, id: i16, of: Wire, len: usize) {
        self.field(id, Wire::List);
        if len < 15 {
            self.bytes.push((len as u8) << 4 | of as u8);
        } else {
            self.bytes.push(0xf0 | of as u8);
            varint(&mut self.bytes, len as u64);
        }
    }

    /// Returns the bytes, with the struct's end.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number, seven bits in each byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_specification_has_them() {
        let bytes = |value| {
            let mut out = Vec::new();
            varint(&mut out, value);
            out
        };
        assert_eq!(bytes(50399), [0xdf, 0x89, 0x03]);
        assert_eq!([zigzag(0), zigzag(-1), zigzag(1), zigzag(i64::MIN)], [0, 1, 2, u64::MAX]);
    }

    #[test]
    fn fields_tell_how_far_they_are_from_the_last() {
        let inner = Struct::default().text(1, "a");
        let bytes = Struct::default().i32(1, 1).i64(3, -1).nested(4, inner).i32s(5, &[0; 15]).end();
        let wanted = [0x15, 2, 0x26, 1, 0x1c, 0x18, 1, b'a', 0, 0x19, 0xf5, 15];
        assert_eq!(bytes[..12], wanted);
        assert_eq!(bytes.len(), 12 + 15 + 1);
    }
}
