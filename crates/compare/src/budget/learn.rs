//! Updates the figures in a budget's text, and leaves the rest as it is.

use super::hold::{range, unnamed};
use super::{Bound, Budget, Limit, Run, Units};
use crate::findings;
use crate::range::Range;
use crate::select::Selector;
use crate::vary::chance;
use std::collections::BTreeSet;
use systoll_model::Sysno;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

/// The first lines of a new budget.
const HEAD: &str = "# What `systoll check` holds: exact counts of system calls.\n\
                    # `systoll check --update` writes the figures anew; what else is here stays as it is.\n\n";

/// Returns the text of a budget that `runs` keep: `text` with new figures, or a new text. Limits
/// with one bound stay as long as they hold. A count that varied gets its own spread as room on
/// both sides.
///
/// # Errors
///
/// `text` is no budget.
pub fn learn(text: Option<&str>, per: Option<&Units>, runs: &[Run<'_>]) -> Result<String, super::BudgetError> {
    let budget = text.map(Budget::parse).transpose()?;
    let start = text.unwrap_or_default();
    let mut document: DocumentMut = start.parse().map_err(|e: toml_edit::TomlError| super::BudgetError {
        line: e.span().map_or(1, |span| super::line_of(start, span.start)),
        what: e.message().to_owned(),
    })?;
    let fresh = budget.is_none();
    let budget = budget.unwrap_or_else(|| Budget { others: Some(Bound::exactly(0.0)), ..Budget::default() });
    let root = document.as_table_mut();
    if fresh {
        if let Some(per) = per {
            root.insert(
                "per",
                match per {
                    Units::Number(n) => number(*n),
                    Units::Printed(text) => Item::Value(text.as_str().into()),
                },
            );
        }
        root.insert("others", number(0.0));
    }
    if fresh || budget.findings.is_some() {
        root.insert("findings", Item::Value(Value::Array(known(&budget, runs))));
    }
    if !runs.iter().any(|r| r.recording.exact()) {
        root.insert("exact", Item::Value(false.into()));
    }
    let tables = root.entry("limit").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let Some(tables) = tables.as_array_of_tables_mut() else {
        let what = "limits that are written in one line are not written anew: make each a [[limit]]";
        return Err(super::BudgetError { line: 1, what: what.into() });
    };
    for (limit, table) in budget.limits.iter().zip(tables.iter_mut()) {
        update(limit, table, runs);
    }
    if budget.others.is_some() {
        for call in unnamed(&budget, runs) {
            tables.push(new_limit(call, runs));
        }
    }
    Ok(format!("{}{document}", if fresh { HEAD } else { "" }))
}

/// Returns the findings that the budget accepts and a run still has, then the other findings that a
/// run has.
fn known(budget: &Budget, runs: &[Run<'_>]) -> Array {
    let found = runs.iter().flat_map(|r| &r.judgement.findings).map(|f| findings::id(f).to_string());
    let all: BTreeSet<String> = found.collect();
    let kept = budget.findings.iter().flatten().filter(|id| all.contains(*id));
    let mut list: Vec<&String> = kept.collect();
    list.extend(all.iter().filter(|id| !budget.findings.iter().flatten().any(|k| k == *id)));
    list.into_iter().map(String::as_str).collect()
}

fn update(limit: &Limit, table: &mut Table, runs: &[Run<'_>]) {
    let measured = super::hold::measure(limit, runs);
    for m in measured {
        if m.bound.is_one_sided() && !m.broken {
            continue;
        }
        let learnt = match m.figure {
            "rate" => rate(m.high),
            figure => count(range(limit, runs, figure == "failed"), m.bound),
        };
        set(table, m.figure, learnt);
    }
}

/// Replaces a value, and keeps the comment behind it.
fn set(table: &mut Table, key: &str, mut value: Value) {
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

/// Makes the limit of a system call that had none.
fn new_limit(call: Sysno, runs: &[Run<'_>]) -> Table {
    let selector = Selector { calls: Some(BTreeSet::from([call])), ..Selector::default() };
    let limit = Limit { selector, line: None, calls: None, failed: None, rate: None, name: String::new(), at_line: 0 };
    let mut table = Table::new();
    table.insert("syscall", Item::Value(call.to_string().into()));
    let calls = range(&limit, runs, false);
    let by_chance = runs
        .iter()
        .any(|r| r.recording.rows.iter().any(|row| row.syscall == call && chance(r.recording, row).is_some()));
    let value = if by_chance { at_most(calls.high) } else { count(calls, Bound::exactly(0.0)) };
    table.insert("calls", Item::Value(value));
    table
}

/// Returns the bound of a count that depends on chance: twice as much, and at least 16 more.
fn at_most(high: u64) -> Value {
    format!("..={}", high.saturating_mul(2).max(high.saturating_add(16))).into()
}

fn count(calls: Range, bound: Bound) -> Value {
    if bound.is_one_sided() {
        let value = if bound.high.is_infinite() { format!("{}..", calls.low) } else { format!("..={}", calls.high) };
        return value.into();
    }
    match calls.spread() {
        0 => i64::try_from(calls.low).map_or_else(|_| format!("{}..", i64::MAX).into(), Value::from),
        spread => format!("{}..={}", calls.low.saturating_sub(spread), calls.high.saturating_add(spread)).into(),
    }
}

/// Returns the bound of a rate: a tenth more, rounded up to hundredths.
fn rate(high: f64) -> Value {
    format!("..={}", (high * 110.0).ceil() / 100.0).into()
}

fn number(n: f64) -> Item {
    let whole = n.fract() == 0.0 && n.abs() < 1e15;
    Item::Value(if whole { (n as i64).into() } else { n.into() })
}
