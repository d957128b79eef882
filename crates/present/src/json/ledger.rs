//! Ledgers as JSON: the objects of rows' calls over the whole run.

use serde::Serialize;
use std::collections::BTreeMap;
use systoll_model::{Between, Ledger, LedgerObject, Recording, RowId};

/// The objects of a row's calls.
#[derive(Serialize)]
pub(super) struct WireLedger<'a> {
    looks: u64,
    stands_for: u64,
    whole: bool,
    known_share: Bounds,
    changed_share: f64,
    objects: Bounds,
    top: Vec<WireTop<'a>>,
}

/// An estimated figure with its bounds.
#[derive(Serialize)]
struct Bounds {
    estimate: f64,
    low: f64,
    high: f64,
}

/// An object of a row's calls.
#[derive(Serialize)]
struct WireTop<'a> {
    name: &'a str,
    looks: u64,
    stands_for: u64,
    same: u64,
    syscalls: Vec<String>,
}

/// Returns the ledgers of a recording, by their rows.
pub(super) fn by_row(rec: &Recording) -> BTreeMap<RowId, &Ledger> {
    rec.ledgers.iter().map(|l| (l.row, l)).collect()
}

/// Converts the ledger of a row with `calls` calls.
pub(super) fn wire_ledger(l: &Ledger, calls: u64) -> WireLedger<'_> {
    WireLedger {
        looks: l.looks,
        stands_for: l.calls,
        whole: l.whole(calls),
        known_share: bounds(l.known_share(calls)),
        changed_share: l.changed_share(),
        objects: bounds(l.objects_in_all(calls)),
        top: l.top.iter().map(top).collect(),
    }
}

fn bounds(b: Between) -> Bounds {
    let Between { estimate, low, high } = b;
    Bounds { estimate, low, high }
}

fn top(o: &LedgerObject) -> WireTop<'_> {
    let syscalls = o.also.iter().map(ToString::to_string).collect();
    WireTop { name: &o.name, looks: o.looks, stands_for: o.calls, same: o.same, syscalls }
}
