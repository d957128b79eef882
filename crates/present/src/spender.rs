//! The line of a script whose calls take most of a row's time. The line with most calls need not be the one that waits.

use std::collections::HashMap;
use systoll_model::{FrameId, Recording, RowId, WindowCall, shape};

/// Least share of a row's time, 0 to 1, that a line takes to be named for it.
const LEAST_SHARE: f64 = 0.6;
/// Least share of a row's calls, 0 to 1, with which a line is the row's caller whatever its calls are about.
const NEARLY_ALL: f64 = 0.9;

/// The line that takes most of a row's time, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spender {
    /// The row has one line, or is no script's: its caller is the caller of all of its calls.
    Row,
    Line(FrameId),
    /// Several lines share the row, and which of them takes the time is not known.
    Unknown,
}

/// Sum of times, and their number.
#[derive(Clone, Copy, Default)]
struct Mean(u64, u64);

impl Mean {
    fn add(&mut self, ns: u64) {
        (self.0, self.1) = (self.0.saturating_add(ns), self.1 + 1);
    }

    fn value(self) -> Option<f64> {
        (self.1 > 0).then(|| self.0 as f64 / self.1 as f64)
    }
}

/// Returns the line that takes most of a row's time, by the objects about which its lines make calls; `spent` is the time
/// of a sampled call, ns.
pub(crate) fn spender(recording: &Recording, id: RowId, spent: impl Fn(&WindowCall) -> u64) -> Spender {
    let row = recording.row(id);
    let weight = row.lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.weight));
    if row.lines.len() < 2 || row.lines.first().is_some_and(|most| most.weight as f64 > NEARLY_ALL * weight as f64) {
        return Spender::Row;
    }
    let (mut by_name, mut by_shape, mut all) = (HashMap::new(), HashMap::new(), Mean::default());
    let calls = recording.windows.iter().flat_map(|window| &window.calls).filter(|call| call.row == id);
    for call in calls {
        let ns = spent(call);
        let name = call.object(row.syscall);
        by_shape.entry(name.as_deref().map(shape)).or_insert(Mean::default()).add(ns);
        by_name.entry(name).or_insert(Mean::default()).add(ns);
        all.add(ns);
    }
    let mut lines: Vec<(Option<FrameId>, f64)> = Vec::new();
    for sample in recording.object_samples_of(id) {
        let name = sample.object.as_deref();
        let mean = by_name.get(&name.map(str::to_owned)).or_else(|| by_shape.get(&name.map(shape))).unwrap_or(&all);
        let Some(mean) = mean.value() else { continue };
        let ns = sample.weight as f64 * mean;
        match lines.iter_mut().find(|(line, _)| *line == sample.line) {
            Some((_, sum)) => *sum += ns,
            None => lines.push((sample.line, ns)),
        }
    }
    let total: f64 = lines.iter().map(|(_, ns)| ns).sum();
    let most = lines.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ns)| *ns > LEAST_SHARE * total);
    most.and_then(|(line, _)| line).map_or(Spender::Unknown, Spender::Line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use systoll_model::{ArgData, Counts, Moment, ObjectSample, ProcessId, Row, RowLine, StackId, Sysno, Window};

    #[test]
    fn the_line_that_waits_is_not_the_one_with_most_calls() {
        let (often, seldom) = (FrameId(1), FrameId(2));
        let openat = Sysno::from_name("openat").unwrap();
        let open = |path: &str, waited: u64| WindowCall {
            row: RowId(0),
            data: vec![ArgData { arg: 1, at: Moment::Entry, bytes: path.as_bytes().to_vec(), cut: false }],
            args: [-100i64 as u64, 0x1000, 0, 0, 0, 0],
            result: Some(3),
            waited_ns: Some(waited),
            ..WindowCall::default()
        };
        let sample = |object: &str, line: FrameId, weight: u64| ObjectSample {
            row: RowId(0),
            object: Some(Arc::from(object)),
            line: Some(line),
            above: StackId(0),
            whole: StackId(0),
            looks: 10,
            weight,
            squares: 0,
        };
        let mut row = Row::new(ProcessId(0), openat, Counts { calls: 1_000, ..Counts::default() });
        let line = |frame: FrameId, weight: u64| RowLine { frame, looks: 10, weight };
        row.lines = vec![line(often, 880), line(seldom, 120)];
        let mut recording = Recording { rows: vec![row], ..Recording::default() };
        let calls = vec![open("/etc/page.tpl", 10), open("/out/7", 5_000), open("/etc/page.tpl", 10)];
        recording.windows = vec![Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 3, calls }];
        let waited = |call: &WindowCall| call.waited_ns.unwrap_or(0);
        assert_eq!(spender(&recording, RowId(0), waited), Spender::Unknown);
        recording.object_samples = vec![sample("/etc/page.tpl", often, 900), sample("/out/12", seldom, 100)];
        assert_eq!(spender(&recording, RowId(0), waited), Spender::Line(seldom));
        // Each takes about half of it.
        recording.object_samples[0].weight = 50_000;
        assert_eq!(spender(&recording, RowId(0), waited), Spender::Unknown);
        recording.rows[0].lines.truncate(1);
        assert_eq!(spender(&recording, RowId(0), waited), Spender::Row);
    }
}
