//! Encodes and decodes ledgers.

use super::error::{FileError, damaged};
use super::intern::{Interner, Strings};
use super::wire;
use crate::ledger::{Ledger, LedgerObject};
use crate::row::RowId;
use crate::sysno::Sysno;

/// Objects of a ledger, and other system calls of one object, that the reader accepts at most.
const MOST: usize = 64;

/// Encodes a ledger.
pub(super) fn encode(l: &Ledger, strings: &mut Interner<String>) -> wire::Ledger {
    let also = |o: &LedgerObject| std::iter::once(o.also.len() as u32).chain(o.also.iter().map(|s| s.0)).collect();
    wire::Ledger {
        row: l.row.0,
        looks: l.looks,
        calls: l.calls,
        squares: l.squares,
        repeats: l.repeats,
        other_way: l.other_way,
        changes: l.changes,
        objects: l.objects,
        once: l.once,
        twice: l.twice,
        level: l.level.into(),
        relative: l.relative,
        top_names: l.top.iter().map(|o| strings.index(&*o.name)).collect(),
        top_looks: l.top.iter().map(|o| o.looks).collect(),
        top_calls: l.top.iter().map(|o| o.calls).collect(),
        top_same: l.top.iter().map(|o| o.same).collect(),
        top_also: l.top.iter().flat_map(|o| -> Vec<u32> { also(o) }).collect(),
    }
}

/// Decodes a ledger.
pub(super) fn decode(l: &wire::Ledger, strings: &Strings) -> Result<Ledger, FileError> {
    let mut also = l.top_also.iter().copied();
    let columns = l.top_names.iter().zip(&l.top_looks).zip(&l.top_calls).zip(&l.top_same);
    let top = columns.take(MOST).map(|(((name, looks), calls), same)| {
        let others = also.next().unwrap_or(0) as usize;
        if others > MOST {
            return Err(damaged("an object of a ledger has too many other calls"));
        }
        let also = also.by_ref().take(others).map(Sysno).collect();
        Ok(LedgerObject { name: strings.get(*name)?, looks: *looks, calls: *calls, same: *same, also })
    });
    Ok(Ledger {
        row: RowId(l.row),
        looks: l.looks,
        calls: l.calls,
        squares: l.squares,
        repeats: l.repeats,
        other_way: l.other_way,
        changes: l.changes,
        objects: l.objects,
        once: l.once,
        twice: l.twice,
        level: u8::try_from(l.level).map_err(|_| damaged("a ledger's level is out of range"))?,
        relative: l.relative,
        top: top.collect::<Result<_, _>>()?,
    })
}
