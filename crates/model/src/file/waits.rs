//! Long waits in the recording's file. A wait begins at the time of the one before it, plus a difference.

use super::error::{FileError, damaged};
use super::intern::{Interner, Strings};
use super::wire;
use crate::names::FrameId;
use crate::row::RowId;
use crate::wait_span::{DroppedWaits, WaitSpan, WaitSpans};

/// The fields of a recording's message that hold its long waits.
pub(super) type Fields = (Vec<wire::WaitSpan>, Vec<wire::DroppedWaits>, Option<u64>);

pub(super) fn encode(waits: &WaitSpans, strings: &mut Interner<String>) -> Fields {
    if !waits.kept {
        return Fields::default();
    }
    let mut before = 0;
    let span = |span: &WaitSpan| {
        let after_ns = span.begin_ns.saturating_sub(before);
        before = before.max(span.begin_ns);
        let used = span.args.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        wire::WaitSpan {
            row: span.row.0,
            pid: span.pid,
            tid: span.tid,
            after_ns,
            ns: span.ns,
            args: span.args.iter().take(used).copied().collect(),
            result: span.result,
            object: span.object.as_deref().map(|object| strings.index(object)),
            line: span.line.map(|line| line.0),
            queued_most_ns: span.queued_most_ns,
        }
    };
    let dropped = |d: &DroppedWaits| wire::DroppedWaits { row: d.row.0, calls: d.calls, ns: d.ns };
    let spans = waits.spans.iter().map(span).collect();
    (spans, waits.dropped.iter().map(dropped).collect(), Some(waits.overwritten))
}

pub(super) fn decode((spans, dropped, overwritten): Fields, strings: &Strings) -> Result<WaitSpans, FileError> {
    let Some(overwritten) = overwritten else { return Ok(WaitSpans::default()) };
    let mut before = 0u64;
    let span = |w: wire::WaitSpan| {
        before = before.saturating_add(w.after_ns);
        let mut args = [0; 6];
        if w.args.len() > args.len() {
            return Err(damaged("a wait has too many arguments"));
        }
        args.iter_mut().zip(w.args).for_each(|(to, from)| *to = from);
        Ok(WaitSpan {
            row: RowId(w.row),
            pid: w.pid,
            tid: w.tid,
            begin_ns: before,
            ns: w.ns,
            args,
            result: w.result,
            object: w.object.map(|object| strings.get(object)).transpose()?,
            line: w.line.map(FrameId),
            queued_most_ns: w.queued_most_ns,
        })
    };
    let sum = |d: wire::DroppedWaits| DroppedWaits { row: RowId(d.row), calls: d.calls, ns: d.ns };
    Ok(WaitSpans {
        kept: true,
        spans: spans.into_iter().map(span).collect::<Result<_, _>>()?,
        dropped: dropped.into_iter().map(sum).collect(),
        overwritten,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin_ns: u64, args: [u64; 6], result: Option<i64>) -> WaitSpan {
        WaitSpan {
            row: RowId(3),
            pid: 7,
            tid: 8,
            begin_ns,
            ns: 1_500_000,
            args,
            result,
            object: Some("pipe:[9]".into()),
            line: Some(FrameId(4)),
            queued_most_ns: Some(7),
        }
    }

    #[test]
    fn waits_are_read_back_as_they_were_written() {
        let spans = vec![
            span(5, [1, 0, 3, 0, 0, 0], Some(-110)),
            span(90, [0; 6], None),
            WaitSpan { object: None, line: None, queued_most_ns: None, ..span(90, [0, 0, 0, 0, 0, 6], Some(0)) },
        ];
        let dropped = vec![DroppedWaits { row: RowId(1), calls: 9, ns: 10 }];
        let waits = WaitSpans { kept: true, spans, dropped, overwritten: 4 };
        let mut strings = Interner::with(String::new());
        let fields = encode(&waits, &mut strings);
        let strings = Strings::of(&strings.into_values());
        assert_eq!(decode(fields.clone(), &strings).unwrap(), waits);
        assert_eq!(encode(&WaitSpans::default(), &mut Interner::with(String::new())), Fields::default());
        let mut damaged = fields;
        damaged.0[0].args = vec![0; 7];
        assert!(decode(damaged.clone(), &strings).is_err());
        damaged.0[0].args.clear();
        damaged.0[0].object = Some(77);
        assert!(decode(damaged, &strings).is_err());
    }
}
