//! Plans as bytes, for a cache.
//!
//! Only what costs time to find is stored; bytes and segments are taken from the file again, so
//! that a plan read back can't disagree with the file it is for.

use super::image;
use super::types::{CfaOffset, Entry, Plan, Segment, Site, Span, Unplanned, VdsoFunction, Why};
use prost::Message;

/// Changes whenever the same file may lead to another plan, or to other bytes.
pub const FORMAT: u32 = 1;

const SYSCALL: &[u8] = &[0x0f, 0x05];

#[derive(Clone, PartialEq, Message)]
struct WirePlan {
    #[prost(message, repeated, tag = "1")]
    sites: Vec<WireSite>,
    #[prost(message, repeated, tag = "2")]
    entries: Vec<WireEntry>,
    #[prost(message, repeated, tag = "3")]
    unplanned: Vec<WireUnplanned>,
    #[prost(bool, tag = "4")]
    uses_gs: bool,
}

#[derive(Clone, PartialEq, Message)]
struct WireSite {
    #[prost(uint64, tag = "1")]
    address: u64,
    #[prost(uint32, optional, tag = "2")]
    number: Option<u32>,
    #[prost(message, optional, tag = "3")]
    before: Option<WireSpan>,
    #[prost(message, optional, tag = "4")]
    after: Option<WireSpan>,
    #[prost(bool, tag = "5")]
    after_is_target: bool,
    #[prost(message, optional, tag = "6")]
    whole: Option<WireSpan>,
    #[prost(uint32, optional, tag = "7")]
    cfa: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    hook_cfa: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct WireSpan {
    #[prost(uint64, tag = "1")]
    start: u64,
    #[prost(uint32, tag = "2")]
    len: u32,
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

/// Codes of [`Why`] by position; new ones go to the end.
const WHYS: &[Why] = &[Why::Target, Why::Fixed, Why::Short, Why::Registers, Why::Flags, Why::Taken, Why::Unsure];
/// The same of [`VdsoFunction`].
const FUNCTIONS: &[VdsoFunction] =
    &[VdsoFunction::Time, VdsoFunction::ClockGettime, VdsoFunction::Gettimeofday, VdsoFunction::Getcpu];

fn code<T: PartialEq>(of: &[T], value: &T) -> u32 {
    of.iter().position(|v| v == value).map_or(u32::MAX, |n| n as u32)
}

impl Plan {
    /// The plan as bytes for [`Plan::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let span = |s: &Span| WireSpan {
            start: s.start,
            len: s.bytes.len() as u32,
            instructions: s.instructions as u32,
            padding: s.padding as u32,
        };
        let site = |s: &Site| WireSite {
            address: s.address,
            number: s.number,
            before: s.before.as_ref().map(span),
            after: s.after.as_ref().map(span),
            after_is_target: s.after_is_target,
            whole: s.whole.as_ref().map(span),
            cfa: s.cfa.map(|c| c.0),
            hook_cfa: s.hook_cfa.map(|c| c.0),
        };
        let entry =
            |e: &Entry| WireEntry { function: code(FUNCTIONS, &e.function), address: e.address, span: span(&e.span) };
        let unplanned = |u: &Unplanned| WireUnplanned { address: u.address, why: code(WHYS, &u.why) };
        let wire = WirePlan {
            sites: self.sites.iter().map(site).collect(),
            entries: self.entries.iter().map(entry).collect(),
            unplanned: self.unplanned.iter().map(unplanned).collect(),
            uses_gs: self.uses_gs,
        };
        wire.encode_to_vec()
    }

    /// The plan for `elf` that [`Plan::to_bytes`] made `bytes` of. `None` where they are damaged
    /// or visibly for another file.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], elf: &[u8]) -> Option<Self> {
        let wire = WirePlan::decode(bytes).ok()?;
        let file = File { elf, segments: image::mapped_segments(elf).ok()? };
        let sites: Option<Vec<Site>> = wire.sites.iter().map(|s| file.site(s)).collect();
        let entry = |e: &WireEntry| {
            let function = *FUNCTIONS.get(usize::try_from(e.function).ok()?)?;
            Some(Entry { function, address: e.address, span: file.span(&e.span)? })
        };
        let entries: Option<Vec<Entry>> = wire.entries.iter().map(entry).collect();
        let unplanned =
            |u: &WireUnplanned| Some(Unplanned { address: u.address, why: *WHYS.get(usize::try_from(u.why).ok()?)? });
        let unplanned: Option<Vec<Unplanned>> = wire.unplanned.iter().map(unplanned).collect();
        Some(Self {
            sites: sites?,
            entries: entries?,
            unplanned: unplanned?,
            uses_gs: wire.uses_gs,
            segments: file.segments,
        })
    }
}

/// The file a plan is for.
struct File<'a> {
    elf: &'a [u8],
    segments: Vec<Segment>,
}

impl File<'_> {
    fn code(&self, start: u64, len: u64) -> Option<&[u8]> {
        self.segments.iter().filter(|s| s.executable).find_map(|s| {
            let into = start.checked_sub(s.vaddr)?;
            let fits = into.checked_add(len)? <= s.file_size;
            let from = usize::try_from(s.file_offset.checked_add(into)?).ok()?;
            fits.then(|| self.elf.get(from..from.checked_add(usize::try_from(len).ok()?)?))?
        })
    }

    fn span(&self, wire: &WireSpan) -> Option<Span> {
        let bytes = self.code(wire.start, wire.len.into())?.to_vec();
        let sound = wire.len >= 5 && wire.padding < wire.len && wire.instructions <= wire.len;
        sound.then_some(Span {
            start: wire.start,
            bytes,
            instructions: wire.instructions as usize,
            padding: wire.padding as usize,
        })
    }

    fn optional(&self, wire: Option<&WireSpan>) -> Option<Option<Span>> {
        wire.map_or(Some(None), |wire| self.span(wire).map(Some))
    }

    fn site(&self, wire: &WireSite) -> Option<Site> {
        let is_call = self.code(wire.address, 2)? == SYSCALL;
        is_call.then_some(Site {
            address: wire.address,
            number: wire.number,
            before: self.optional(wire.before.as_ref())?,
            after: self.optional(wire.after.as_ref())?,
            after_is_target: wire.after_is_target,
            whole: self.optional(wire.whole.as_ref())?,
            cfa: wire.cfa.map(CfaOffset),
            hook_cfa: wire.hook_cfa.map(CfaOffset),
        })
    }
}
