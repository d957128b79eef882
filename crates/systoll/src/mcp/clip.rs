//! Keeps a program's output within bounds: its start, its end, and its length.

use serde_json::{Value, json};
use std::collections::VecDeque;

/// Number of bytes that are kept of the start.
pub(super) const HEAD: usize = 2048;
/// Number of bytes that are kept of the end, where programs say what went wrong.
const TAIL: usize = 4096;

/// The start and the end of a stream.
#[derive(Clone, Debug)]
pub(super) struct Clip {
    /// Largest number of bytes of the start that are kept.
    most: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
}

impl Clip {
    /// Makes a clip that keeps `most` bytes of the start.
    pub(super) fn keeping(most: usize) -> Self {
        Self { most, head: Vec::new(), tail: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = self.most.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(TAIL)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Returns the text that was kept, with a note in place of the bytes between.
    pub(super) fn text(&self) -> String {
        let (head, tail) = (&self.head, self.tail.iter().copied().collect::<Vec<_>>());
        let between = self.bytes - head.len() as u64 - tail.len() as u64;
        let parts = match between {
            0 => [head.as_slice(), &tail].concat(),
            n => [head.as_slice(), format!("\n[… {n} bytes left out …]\n").as_bytes(), &tail].concat(),
        };
        String::from_utf8_lossy(&parts).into_owned()
    }

    pub(super) fn json(&self) -> Value {
        json!({"text": self.text(), "bytes": self.bytes})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut clip = Clip::keeping(HEAD);
        clip.push(b"one ");
        clip.push(b"two");
        assert_eq!((clip.text().as_str(), clip.bytes), ("one two", 7));
        for n in 0..10_000 {
            clip.push(format!("line {n}\n").as_bytes());
        }
        let text = clip.text();
        assert!(text.starts_with("one twoline 0\n") && text.ends_with("line 9999\n"), "{text}");
        assert!(text.contains("bytes left out") && text.len() < HEAD + TAIL + 60);
        let mut whole = Clip::keeping(HEAD);
        whole.push(&vec![b'x'; HEAD + TAIL]);
        assert_eq!(whole.text().len(), HEAD + TAIL);
        whole.push(b"y");
        assert!(whole.text().contains("[… 1 bytes left out …]"));
    }
}
