//! Chooses the call with which a round begins: the one that makes, or takes in, the objects of its other calls.

use super::anchor::Anchored;
use super::kinds::{KindId, Kinds};
use super::part::Part;
use super::stretches::Stretches;
use crate::collections::hash::Map;
use crate::semantics::{Effect, Lines, Semantics};
use systoll_model::{ArgKind, Sysno, WindowCall};

/// Largest number of stretches searched.
const LOOKS: usize = 32;
/// Least value of an argument that counts as an address.
const LEAST_ADDRESS: u64 = 1 << 16;

/// The data by which a round's beginning is chosen.
#[derive(Clone, Copy)]
pub(super) struct Turns<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) stretches: &'a Stretches<'a>,
    pub(super) semantics: &'a Semantics,
}

/// An object that one call makes and others use.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Handle {
    Descriptor(i32),
    Address(u64),
}

impl Turns<'_> {
    /// Rotates the parts so that a round begins where the fewest calls use an object that an
    /// earlier round made. Of equal beginnings, one that takes data in from outside comes first,
    /// and of these the one that the run called first.
    pub(super) fn turn(&self, parts: &mut [Part], found: &Anchored) {
        let cuts = self.cuts(parts, found);
        let takes_in = |part: &Part| part.kinds.first().is_some_and(|(kind, _)| self.takes_in(*kind));
        let first = |part: &Part| part.kinds.first().map_or(u64::MAX, |(kind, _)| self.stretches.first_at(*kind));
        let order =
            |(at, part): &(usize, &Part)| (cuts.get(*at).copied().unwrap_or(0), !takes_in(part), first(part), *at);
        let at = parts.iter().enumerate().min_by_key(order).map_or(0, |(at, _)| at);
        parts.rotate_left(at);
    }

    /// Returns for each part the number of uses, in it or behind it, of objects that would be made
    /// in an earlier round if the round began with this part.
    fn cuts(&self, parts: &[Part], found: &Anchored) -> Vec<u64> {
        let mut of_kind: Map<KindId, Vec<usize>> = Map::default();
        for (at, part) in parts.iter().enumerate() {
            part.kinds.iter().for_each(|(kind, _)| of_kind.entry(*kind).or_default().push(at));
        }
        // A kind at several places of a round belongs to no place in particular.
        let part_of =
            |kind: KindId| of_kind.get(&kind).and_then(|places| Some(*places.first()?).filter(|_| places.len() == 1));
        let mut cuts = vec![0; parts.len()];
        let mut shown: Vec<u32> = found.instances.iter().filter_map(|i| Some(i.pieces.first()?.0)).collect();
        shown.dedup();
        for stretch in shown.iter().take(LOOKS).filter_map(|at| self.stretches.get(*at)) {
            let mut made: Map<Handle, usize> = Map::default();
            for (kind, call) in stretch.kinds.iter().zip(stretch.calls) {
                let Some((at, syscall)) = part_of(*kind).zip(self.syscall(*kind)) else { continue };
                let from: Vec<usize> = uses(call, syscall).filter_map(|handle| made.get(&handle).copied()).collect();
                for from in from.into_iter().filter(|from| *from != at) {
                    // A round that began at one of these places would part the use from the making.
                    let up_to = (at + parts.len() - from) % parts.len();
                    for cut in (1..=up_to).map(|step| (from + step) % parts.len()) {
                        cuts.get_mut(cut).into_iter().for_each(|cut| *cut += 1);
                    }
                }
                if let Some(handle) = makes(call, self.semantics.lines_of(syscall)) {
                    made.insert(handle, at);
                }
            }
        }
        cuts
    }

    fn syscall(&self, kind: KindId) -> Option<Sysno> {
        self.kinds.get(kind).map(|kind| kind.syscall)
    }

    /// Returns true if a kind's calls tell what is ready, or take from where others put something.
    fn takes_in(&self, kind: KindId) -> bool {
        let Some(lines) = self.syscall(kind).map(|syscall| self.semantics.lines_of(syscall)) else { return false };
        let from_outside = || {
            let stretch = self.stretches.with(kind).first().and_then(|at| self.stretches.get(*at));
            let call = stretch.and_then(|s| s.kinds.iter().zip(s.calls).find(|(k, _)| **k == kind));
            call.and_then(|(_, call)| call.fd.as_deref()).is_some_and(|file| !file.starts_with('/'))
        };
        lines.tells_ready() || lines.transfers_in() && from_outside()
    }
}

/// Returns the handle of the object that a call makes.
fn makes(call: &WindowCall, lines: &Lines) -> Option<Handle> {
    let result = call.result.filter(|result| *result >= 0)?;
    let opens = |effect| matches!(effect, Effect::Opens | Effect::OpensPath { .. } | Effect::Shares);
    if lines.always_does(opens) {
        return i32::try_from(result).ok().map(Handle::Descriptor);
    }
    lines.maps().then_some(Handle::Address(result as u64))
}

/// Returns the handles that a call names.
fn uses(call: &WindowCall, syscall: Sysno) -> impl Iterator<Item = Handle> {
    let kinds = syscall.signature().map_or(&[][..], |signature| signature.args);
    let args = kinds.iter().zip(call.args);
    args.filter_map(|(arg, value)| match arg.kind {
        ArgKind::Fd | ArgKind::DirFd => Some(Handle::Descriptor(value as u32 as i32)),
        _ => (value >= LEAST_ADDRESS).then_some(Handle::Address(value)),
    })
}
