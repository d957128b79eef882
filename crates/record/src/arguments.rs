//! Reads the memory to which the arguments of a call point.

use systoll_model::{ArgData, ArgKind, Machine, Moment, Signature};

/// Bytes of the longest path Linux knows.
const MAX_STRING: usize = 4096;
/// Strings kept of an array of strings (`argv`), at most.
const MAX_STRINGS: usize = 8;

/// Reads the memory to which the arguments of a call point. `read` fills a buffer from an address on and returns the
/// number of bytes read.
pub(crate) fn argument_data(
    signature: &Signature,
    at: Moment,
    args: &[u64; 6],
    result: Option<i64>,
    bound: usize,
    read: &dyn Fn(u64, &mut [u8]) -> usize,
) -> Vec<ArgData> {
    let mut all = Vec::new();
    for (arg, kind) in signature.memory(at, args) {
        let address = args[usize::from(arg)];
        let data = match kind {
            ArgKind::Path | ArgKind::Str => string(address, read),
            ArgKind::StrArray => strings(address, read),
            _ => {
                let word = |address| {
                    let mut bytes = [0; 4];
                    (read(address, &mut bytes) == 4).then(|| u32::from_ne_bytes(bytes))
                };
                let layout = Machine::HERE.layout(signature.name, arg);
                let kind = layout.map_or(kind, |layout| layout.kind(kind));
                let Some(there) = kind.bytes(args, result, word) else { continue };
                let mut bytes = vec![0; usize::try_from(there).unwrap_or(bound).min(bound)];
                let n = read(address, &mut bytes);
                bytes.truncate(n);
                let cut = (bytes.len() as u64) < there;
                (Machine::HERE.memory(signature.name, arg, bytes), cut)
            }
        };
        all.push(ArgData { arg, at, bytes: data.0, cut: data.1 });
    }
    all
}

/// Returns the string at an address without its NUL, and true if no NUL was found.
pub(crate) fn string(address: u64, read: &dyn Fn(u64, &mut [u8]) -> usize) -> (Vec<u8>, bool) {
    let mut text = Vec::new();
    let mut at = address;
    while text.len() < MAX_STRING {
        // A read never crosses a page: the next page may be unmapped.
        let to_page_end = 4096 - (at % 4096) as usize;
        let mut chunk = [0; 256];
        let want = chunk.len().min(to_page_end);
        let got = read(at, &mut chunk[..want]);
        if let Some(end) = chunk[..got].iter().position(|b| *b == 0) {
            text.extend_from_slice(&chunk[..end]);
            return (text, false);
        }
        text.extend_from_slice(&chunk[..got]);
        if got < want {
            return (text, true);
        }
        at = at.wrapping_add(got as u64);
    }
    (text, true)
}

/// Returns the first strings of an array of addresses, separated by NUL, and true if the array's end was not found.
pub(crate) fn strings(address: u64, read: &dyn Fn(u64, &mut [u8]) -> usize) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    for i in 0..MAX_STRINGS as u64 {
        let mut pointer = [0; 8];
        if read(address.wrapping_add(i * 8), &mut pointer) != 8 {
            return (all, true);
        }
        match u64::from_ne_bytes(pointer) {
            0 => return (all, false),
            at => {
                if i > 0 {
                    all.push(0);
                }
                all.extend(string(at, read).0.into_iter().take(256));
            }
        }
    }
    (all, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_stop_at_nul_and_at_unmapped_pages() {
        let memory = b"/etc/localtime\0rest".to_vec();
        let read = |address: u64, buffer: &mut [u8]| {
            let from = &memory[(address as usize - 4096).min(memory.len())..];
            let n = from.len().min(buffer.len());
            buffer[..n].copy_from_slice(&from[..n]);
            n
        };
        assert_eq!(string(4096, &read), (b"/etc/localtime".to_vec(), false));
        assert_eq!(string(4096 + 15, &read), (b"rest".to_vec(), true));
    }
}
