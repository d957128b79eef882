//! Writes traces of Perfetto field by field, for the reader's tests and for the first inputs of
//! fuzz targets.

/// A message as its encoded bytes.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    pub(crate) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub(crate) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, &message.0)
    }
}

pub(crate) fn message() -> Message {
    Message::default()
}

/// Returns a file of packets.
pub(crate) fn file(packets: impl IntoIterator<Item = Message>) -> Vec<u8> {
    packets.into_iter().fold(message(), |file, packet| file.message(1, packet)).0
}
