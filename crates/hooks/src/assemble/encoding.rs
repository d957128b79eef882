//! Encodes assembled code as bytes, for a cache: the code itself, then the rest, then the code's length.
//!
//! A C library's code is most of a megabyte and read at every start, so it is neither decoded nor copied.

use super::Options;
use super::blob::{Base, Blob, CountedPlace, Patch, Refused, Unhooked};
use super::emitter::Origin;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct WireBlob {
    #[prost(sint64, tag = "1")]
    delta: i64,
    #[prost(uint32, repeated, tag = "3")]
    references: Vec<u32>,
    /// Addresses of the patches; their lengths, and their bytes one behind the other, follow.
    #[prost(uint64, repeated, tag = "4")]
    patched: Vec<u64>,
    #[prost(uint32, repeated, tag = "10")]
    lengths: Vec<u32>,
    #[prost(bytes = "vec", tag = "11")]
    bytes: Vec<u8>,
    #[prost(message, repeated, tag = "5")]
    sites: Vec<WireCounted>,
    #[prost(message, repeated, tag = "6")]
    refused: Vec<WireRefused>,
    /// Lengths of the code's pieces, and the origin of each.
    #[prost(uint32, repeated, tag = "7")]
    pieces: Vec<u32>,
    #[prost(uint64, repeated, tag = "8")]
    origins: Vec<u64>,
    #[prost(uint32, tag = "9")]
    options: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WireCounted {
    #[prost(uint64, tag = "1")]
    address: u64,
    #[prost(uint32, optional, tag = "2")]
    number: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    offset: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    table: Option<u32>,
    #[prost(bool, tag = "5")]
    results: bool,
    #[prost(bool, tag = "6")]
    vdso: bool,
    #[prost(bool, tag = "7")]
    from_rbp: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WireRefused {
    #[prost(uint64, tag = "1")]
    address: u64,
    #[prost(uint32, tag = "2")]
    what: u32,
}

/// Codes of [`Unhooked`], by position.
const UNHOOKED: [Unhooked; 3] = [Unhooked::Site, Unhooked::Whole, Unhooked::Return];

/// Lowest bit of the field of [`Options::bits`] that holds [`Options::long`] plus one.
const LONG_BIT: u32 = 9;

impl Options {
    /// Returns a number that differs for each choice of options.
    #[must_use]
    pub fn bits(self) -> u32 {
        let Self { results, time, waited, sampled, totals, windows, receives, writes, elide, long } = self;
        let all = (0..).zip([results, time, waited, windows, elide, sampled, receives, totals, writes]);
        let flags: u32 = all.map(|(bit, set)| u32::from(set) << bit).sum();
        flags | long.map_or(0, |power| (u32::from(power) + 1) << LONG_BIT)
    }

    fn from_bits(bits: u32) -> Option<Self> {
        let has = |bit: u32| bits >> bit & 1 == 1;
        let long = (bits >> LONG_BIT).checked_sub(1).and_then(|power| u8::try_from(power).ok());
        let options = Self {
            results: has(0),
            time: has(1),
            waited: has(2),
            windows: has(3),
            elide: has(4),
            sampled: has(5),
            receives: has(6),
            totals: has(7),
            writes: has(8),
            long,
        };
        (options.bits() == bits).then_some(options)
    }
}

/// Bytes at the end of an encoded blob that hold the code's length, see [`code_size`].
pub const SIZE: usize = 8;

/// Returns the length of the code, from the last bytes of an encoded blob.
#[must_use]
pub fn code_size(last: [u8; SIZE]) -> Option<u32> {
    u32::try_from(u64::from_le_bytes(last)).ok()
}

impl Blob {
    /// Returns the blob as bytes for [`Blob::from_bytes`]. They are valid only for a reader with exactly the same
    /// assembler.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let wire = WireBlob {
            delta: self.delta,
            references: self.references.clone(),
            patched: self.patches.iter().map(|p| p.vaddr).collect(),
            lengths: self.patches.iter().map(|p| p.bytes.len() as u32).collect(),
            bytes: self.patches.iter().flat_map(|p| &p.bytes).copied().collect(),
            sites: self.sites.iter().map(wire_counted).collect(),
            refused: self.refused.iter().map(wire_refused).collect(),
            pieces: self.origins.iter().map(|(range, _)| range.end - range.start).collect(),
            origins: self.origins.iter().map(|(_, origin)| wire_origin(*origin)).collect(),
            options: self.options.bits(),
        };
        let rest = wire.encode_to_vec();
        [&self.code, &rest[..], &(self.code.len() as u64).to_le_bytes()].concat()
    }

    /// Returns the blob that [`Blob::to_bytes`] encoded; `None` if the bytes are damaged.
    #[must_use]
    pub fn from_bytes(mut bytes: Vec<u8>) -> Option<Self> {
        let (rest, size) = bytes.split_last_chunk::<SIZE>()?;
        let size = code_size(*size)?;
        let blob = Self::from_rest(rest.get(size as usize..)?, size)?;
        bytes.truncate(size as usize);
        Some(Self { code: bytes, ..blob })
    }

    /// Returns the blob of [`Blob::from_bytes`] without its code. `rest` is the encoded blob without the code, of
    /// `size` bytes at the beginning, and without the last [`SIZE`] bytes.
    #[must_use]
    pub fn from_rest(rest: &[u8], size: u32) -> Option<Self> {
        let wire = WireBlob::decode(rest).ok()?;
        let mut end = 0u32;
        let mut origins = Vec::with_capacity(wire.pieces.len());
        for (len, origin) in wire.pieces.iter().zip(&wire.origins) {
            let start = end;
            end = start.checked_add(*len)?;
            origins.push((start..end, self::origin(*origin)));
        }
        let sound = wire.pieces.len() == wire.origins.len()
            && end == size
            && wire.references.is_sorted()
            && wire.references.iter().all(|r| r.checked_add(8).is_some_and(|end| end <= size));
        let patches = patches(&wire)?;
        sound.then_some(Self {
            delta: wire.delta,
            code: Vec::new(),
            references: wire.references,
            patches,
            sites: wire.sites.iter().map(counted).collect(),
            refused: wire.refused.iter().map(refused).collect::<Option<_>>()?,
            origins,
            options: Options::from_bits(wire.options)?,
        })
    }
}

fn patches(wire: &WireBlob) -> Option<Vec<Patch>> {
    let mut left = wire.bytes.as_slice();
    let both = wire.patched.iter().zip(&wire.lengths);
    let patches: Option<Vec<Patch>> = both
        .map(|(vaddr, length)| {
            let (bytes, rest) = left.split_at_checked(*length as usize)?;
            left = rest;
            Some(Patch { vaddr: *vaddr, bytes: bytes.to_vec() })
        })
        .collect();
    patches.filter(|_| left.is_empty() && wire.patched.len() == wire.lengths.len())
}

fn wire_counted(c: &CountedPlace) -> WireCounted {
    let CountedPlace { address, number, offset, base, table, results, vdso } = *c;
    WireCounted { address, number, offset, table, results, vdso, from_rbp: base == Base::Rbp }
}

fn counted(c: &WireCounted) -> CountedPlace {
    let WireCounted { address, number, offset, table, results, vdso, from_rbp } = *c;
    let base = if from_rbp { Base::Rbp } else { Base::Rsp };
    CountedPlace { address, number, offset, base, table, results, vdso }
}

fn wire_refused(r: &Refused) -> WireRefused {
    let what = UNHOOKED.iter().position(|u| *u == r.what).map_or(u32::MAX, |n| n as u32);
    WireRefused { address: r.address, what }
}

fn refused(r: &WireRefused) -> Option<Refused> {
    let what = *UNHOOKED.get(usize::try_from(r.what).ok()?)?;
    Some(Refused { address: r.address, what })
}

fn wire_origin(origin: Origin) -> u64 {
    match origin {
        Origin::InRcx => 0,
        Origin::InSlot => 1,
        // The codes 0 and 1 are taken, so an address is stored plus two. A file's addresses are far below 2^64.
        Origin::Address(address) => address.wrapping_add(2),
    }
}

fn origin(code: u64) -> Origin {
    match code {
        0 => Origin::InRcx,
        1 => Origin::InSlot,
        code => Origin::Address(code - 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[test]
    fn decoding_an_encoded_blob_returns_it() {
        let elf = std::fs::read("/proc/self/exe").unwrap();
        let plan = plan::plan(&elf).unwrap();
        let options = Options { results: true, time: true, windows: true, long: Some(19), ..Options::default() };
        let blob = crate::assemble::assemble(&plan, &options, -(64 << 20)).unwrap();
        assert!(!blob.sites.is_empty() || !blob.origins.is_empty());
        let bytes = blob.to_bytes();
        assert_eq!(Blob::from_bytes(bytes.clone()), Some(blob.clone()));
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert_ne!(Blob::from_bytes(bytes[..cut].to_vec()), Some(blob.clone()), "{cut}");
        }
        let mut longer = bytes.clone();
        longer[bytes.len() - 8..].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Blob::from_bytes(longer), None);
        let (rest, size) = bytes.split_last_chunk::<SIZE>().unwrap();
        let size = code_size(*size).unwrap();
        assert_eq!(size as usize, blob.code.len());
        assert_eq!(Blob::from_rest(&rest[size as usize..], size), Some(Blob { code: Vec::new(), ..blob }));
    }

    #[test]
    fn options_have_numbers() {
        for bits in 0..1 << LONG_BIT {
            assert_eq!(Options::from_bits(bits).map(Options::bits), Some(bits));
        }
        assert_eq!(Options::from_bits(u32::MAX), None);
    }
}
