//! Encodes plans as bytes, for a cache. The format has no version: the cache separates entries by the build that wrote
//! them.
//!
//! The bytes under each window are included: with a file known to be unchanged, the file need not be read again, and
//! the writer of jumps leaves other bytes than these alone.

use super::image;
use super::types::{CfaOffset, Entry, Evidence, Plan, Segment, Site, Span, UnpatchableReason, Unplanned, VdsoFunction};
use prost::Message;

const SYSCALL: &[u8] = &[0x0f, 0x05];

#[derive(Clone, PartialEq, Message)]
struct WirePlan {
    #[prost(message, repeated, tag = "1")]
    sites: Vec<WireSite>,
    #[prost(message, repeated, tag = "2")]
    entries: Vec<WireEntry>,
    #[prost(message, repeated, tag = "3")]
    unplanned: Vec<WireUnplanned>,
    #[prost(message, optional, tag = "9")]
    uses_gs: Option<WireEvidence>,
    #[prost(message, repeated, tag = "5")]
    segments: Vec<WireSegment>,
    #[prost(message, optional, tag = "6")]
    unwinder: Option<WireSpan>,
    #[prost(uint64, optional, tag = "7")]
    signal_return: Option<u64>,
    #[prost(bool, tag = "8")]
    has_shadow_memory: bool,
}

#[derive(Clone, PartialEq, Message)]
struct WireEvidence {
    #[prost(uint64, tag = "1")]
    address: u64,
    #[prost(bytes = "vec", tag = "2")]
    bytes: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct WireSegment {
    #[prost(uint64, tag = "1")]
    vaddr: u64,
    #[prost(uint64, tag = "2")]
    memory_size: u64,
    #[prost(uint64, tag = "3")]
    file_offset: u64,
    #[prost(uint64, tag = "4")]
    file_size: u64,
    #[prost(bool, tag = "5")]
    executable: bool,
}

#[derive(Clone, PartialEq, Message)]
struct WireSite {
    #[prost(uint64, tag = "1")]
    address: u64,
    #[prost(uint32, optional, tag = "2")]
    number: Option<u32>,
    #[prost(message, optional, tag = "3")]
    entry_span: Option<WireSpan>,
    #[prost(message, optional, tag = "4")]
    return_span: Option<WireSpan>,
    #[prost(bool, tag = "5")]
    return_is_target: bool,
    #[prost(message, optional, tag = "6")]
    wrap_span: Option<WireSpan>,
    #[prost(uint32, optional, tag = "7")]
    cfa: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    hook_cfa: Option<u32>,
    #[prost(message, optional, tag = "9")]
    returned: Option<WireSpan>,
    #[prost(uint32, optional, tag = "10")]
    from_rbp: Option<u32>,
    #[prost(bool, tag = "11")]
    keeps_flags: bool,
    #[prost(message, repeated, tag = "12")]
    exits: Vec<WireSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct WireSpan {
    #[prost(uint64, tag = "1")]
    start: u64,
    #[prost(bytes = "vec", tag = "2")]
    bytes: Vec<u8>,
    #[prost(uint32, tag = "3")]
    instructions: u32,
    #[prost(uint32, tag = "4")]
    padding: u32,
}

#[derive(Clone, PartialEq, Message)]
struct WireEntry {
    #[prost(uint32, tag = "1")]
    function: u32,
    #[prost(uint64, tag = "2")]
    address: u64,
    #[prost(message, required, tag = "3")]
    span: WireSpan,
}

#[derive(Clone, PartialEq, Message)]
struct WireUnplanned {
    #[prost(uint64, tag = "1")]
    address: u64,
    #[prost(uint32, tag = "2")]
    why: u32,
}

/// Codes of [`UnpatchableReason`], by position; add new ones at the end.
const REASONS: &[UnpatchableReason] = &[
    UnpatchableReason::BranchTarget,
    UnpatchableReason::Fixed,
    UnpatchableReason::TooShort,
    UnpatchableReason::RegistersInUse,
    UnpatchableReason::FlagsInUse,
    UnpatchableReason::ReservedByOther,
    UnpatchableReason::NotSurelyCode,
    UnpatchableReason::Int80,
    UnpatchableReason::KnownByBytes,
];
/// Codes of [`VdsoFunction`], by position; add new ones at the end.
const FUNCTIONS: &[VdsoFunction] =
    &[VdsoFunction::Time, VdsoFunction::ClockGettime, VdsoFunction::Gettimeofday, VdsoFunction::Getcpu];

fn code<T: PartialEq>(of: &[T], value: &T) -> u32 {
    of.iter().position(|v| v == value).map_or(u32::MAX, |n| n as u32)
}

impl Plan {
    /// Returns the plan as bytes for [`Plan::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let span = |s: &Span| WireSpan {
            start: s.start,
            bytes: s.bytes.clone(),
            instructions: s.instructions as u32,
            padding: s.padding as u32,
        };
        let site = |s: &Site| WireSite {
            address: s.address,
            number: s.number,
            entry_span: s.entry_span.as_ref().map(span),
            return_span: s.return_span.as_ref().map(span),
            return_is_target: s.return_is_target,
            wrap_span: s.wrap_span.as_ref().map(span),
            cfa: s.cfa.map(|c| c.0),
            hook_cfa: s.hook_cfa.map(|c| c.0),
            returned: s.returned.as_ref().map(span),
            from_rbp: s.from_rbp.map(|c| c.0),
            keeps_flags: s.keeps_flags,
            exits: s.exits.iter().map(span).collect(),
        };
        let entry =
            |e: &Entry| WireEntry { function: code(FUNCTIONS, &e.function), address: e.address, span: span(&e.span) };
        let unplanned = |u: &Unplanned| WireUnplanned { address: u.address, why: code(REASONS, &u.why) };
        let wire = WirePlan {
            sites: self.sites.iter().map(site).collect(),
            entries: self.entries.iter().map(entry).collect(),
            unplanned: self.unplanned.iter().map(unplanned).collect(),
            uses_gs: self.uses_gs.clone().map(|Evidence { address, bytes }| WireEvidence { address, bytes }),
            has_shadow_memory: self.has_shadow_memory,
            unwinder: self.unwinder.as_ref().map(span),
            signal_return: self.signal_return,
            segments: self.segments.iter().map(wire_segment).collect(),
        };
        wire.encode_to_vec()
    }

    /// Returns the plan that [`Plan::to_bytes`] encoded; `None` if the bytes are damaged. [`Plan::is_for`] checks
    /// that the plan belongs to a file.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let wire = WirePlan::decode(bytes).ok()?;
        let sites: Option<Vec<Site>> = wire.sites.into_iter().map(site).collect();
        let entry = |e: WireEntry| {
            let function = *FUNCTIONS.get(usize::try_from(e.function).ok()?)?;
            Some(Entry { function, address: e.address, span: span(e.span)? })
        };
        let entries: Option<Vec<Entry>> = wire.entries.into_iter().map(entry).collect();
        let unplanned = |u: &WireUnplanned| {
            Some(Unplanned { address: u.address, why: *REASONS.get(usize::try_from(u.why).ok()?)? })
        };
        let unplanned: Option<Vec<Unplanned>> = wire.unplanned.iter().map(unplanned).collect();
        Some(Self {
            sites: sites?,
            entries: entries?,
            unplanned: unplanned?,
            unwinder: optional(wire.unwinder)?,
            signal_return: wire.signal_return,
            uses_gs: wire.uses_gs.map(|WireEvidence { address, bytes }| Evidence { address, bytes }),
            has_shadow_memory: wire.has_shadow_memory,
            segments: wire.segments.iter().map(segment).collect(),
        })
    }

    /// Returns true if `elf` has the segments, calls and bytes of this plan.
    #[must_use]
    pub fn is_for(&self, elf: &[u8]) -> bool {
        let mut spans = self.sites.iter().flat_map(Site::spans).chain(self.entries.iter().map(|e| &e.span));
        image::mapped_segments(elf).is_ok_and(|segments| segments == self.segments)
            && self.sites.iter().all(|s| self.code(elf, s.address, 2) == Some(SYSCALL))
            && spans.all(|s| self.code(elf, s.start, s.bytes.len() as u64) == Some(&s.bytes))
    }

    fn code<'a>(&self, elf: &'a [u8], start: u64, len: u64) -> Option<&'a [u8]> {
        self.segments.iter().filter(|s| s.executable).find_map(|s| {
            let into = start.checked_sub(s.vaddr)?;
            let fits = into.checked_add(len)? <= s.file_size;
            let from = usize::try_from(s.file_offset.checked_add(into)?).ok()?;
            fits.then(|| elf.get(from..from.checked_add(usize::try_from(len).ok()?)?))?
        })
    }
}

fn wire_segment(s: &Segment) -> WireSegment {
    let Segment { vaddr, memory_size, file_offset, file_size, executable } = *s;
    WireSegment { vaddr, memory_size, file_offset, file_size, executable }
}

fn segment(s: &WireSegment) -> Segment {
    let WireSegment { vaddr, memory_size, file_offset, file_size, executable } = *s;
    Segment { vaddr, memory_size, file_offset, file_size, executable }
}

fn span(wire: WireSpan) -> Option<Span> {
    let len = wire.bytes.len();
    let (instructions, padding) = (wire.instructions as usize, wire.padding as usize);
    let sound = len >= 5 && padding < len && instructions <= len;
    sound.then_some(Span { start: wire.start, bytes: wire.bytes, instructions, padding })
}

fn optional(wire: Option<WireSpan>) -> Option<Option<Span>> {
    wire.map_or(Some(None), |wire| span(wire).map(Some))
}

fn site(wire: WireSite) -> Option<Site> {
    Some(Site {
        address: wire.address,
        number: wire.number,
        entry_span: optional(wire.entry_span)?,
        return_span: optional(wire.return_span)?,
        return_is_target: wire.return_is_target,
        wrap_span: optional(wire.wrap_span)?,
        cfa: wire.cfa.map(CfaOffset),
        hook_cfa: wire.hook_cfa.map(CfaOffset),
        returned: optional(wire.returned)?,
        from_rbp: wire.from_rbp.map(CfaOffset),
        keeps_flags: wire.keeps_flags,
        exits: wire.exits.into_iter().map(span).collect::<Option<_>>()?,
    })
}
