//! Numbers and names by which the file encodes enumerations.

use crate::in_place::Missed;
use crate::names::{FrameClass, Language};
use crate::prices::PriceSource;
use crate::problem::ProblemKind;

pub(super) fn class_code(class: FrameClass) -> u32 {
    FrameClass::ALL.iter().position(|c| *c == class).unwrap_or_default() as u32
}

/// Decodes a class. A class that a later version added becomes `Unknown`.
pub(super) fn class(code: u32) -> FrameClass {
    FrameClass::ALL.get(code as usize).copied().unwrap_or(FrameClass::Unknown)
}

/// Decodes a language. Returns `None` for 0, which is native code, and for a language that a later
/// version added.
pub(super) fn language(code: u32) -> Option<Language> {
    Language::ALL.get((code as usize).checked_sub(1)?).copied()
}

pub(super) fn language_code(language: Option<Language>) -> u32 {
    language.and_then(|l| Language::ALL.iter().position(|known| *known == l)).map_or(0, |at| at as u32 + 1)
}

const SOURCES: [PriceSource; 3] = [PriceSource::Measured, PriceSource::InCall, PriceSource::CrossingOnly];

pub(super) fn source_code(source: PriceSource) -> u32 {
    SOURCES.iter().position(|s| *s == source).unwrap_or_default() as u32
}

/// Decodes a source. A source that a later version added counts as a lower bound.
pub(super) fn source(code: u32) -> PriceSource {
    SOURCES.get(code as usize).copied().unwrap_or(PriceSource::CrossingOnly)
}

const KINDS: [(ProblemKind, &str); 11] = [
    (ProblemKind::Unwatched, "unwatched"),
    (ProblemKind::Lost, "lost"),
    (ProblemKind::Audit, "audit"),
    (ProblemKind::Name, "name"),
    (ProblemKind::Price, "price"),
    (ProblemKind::Bounded, "bounded"),
    (ProblemKind::Stripped, "stripped"),
    (ProblemKind::CutShort, "cut-short"),
    (ProblemKind::Partial, "partial"),
    (ProblemKind::Unsampled, "unsampled"),
    (ProblemKind::Note, "note"),
];

pub(super) fn kind_name(kind: ProblemKind) -> &'static str {
    KINDS.iter().find(|(k, _)| *k == kind).map_or("note", |(_, name)| name)
}

/// Decodes a problem's kind. A kind that a later version added becomes a note.
pub(super) fn kind(name: &str) -> ProblemKind {
    KINDS.iter().find(|(_, n)| *n == name).map_or(ProblemKind::Note, |(kind, _)| *kind)
}

pub(super) fn missed_code(why: Missed) -> u64 {
    Missed::ALL.iter().position(|known| *known == why).unwrap_or_default() as u64
}

/// Decodes a reason. A reason that a later version added becomes `Unseen`.
pub(super) fn missed(code: u64) -> Missed {
    usize::try_from(code).ok().and_then(|at| Missed::ALL.get(at)).copied().unwrap_or(Missed::Unseen)
}
