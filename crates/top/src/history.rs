//! Keeps snapshots of the watched processes: the newest, and the figures of the minutes before.

use crate::tally::{Figures, ProcessKey, RowKey, Tally, members};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use systoll_judge::{Finding, Judgement};
use systoll_model::{Recording, RowId};

/// Largest number of points that a graph keeps.
pub const POINTS: usize = 600;
/// Largest number of rows with a graph of their own.
const MOST_GRAPHS: usize = 2_048;

/// A recording so far, with the judgement of it.
#[derive(Debug, Default)]
pub struct Judged {
    /// The recording.
    pub recording: Recording,
    /// The judge's result on the recording.
    pub judgement: Judgement,
    /// The recording's rows by their names, costliest first.
    pub(crate) members: HashMap<RowKey, Vec<RowId>>,
    /// Indices of the remarks to consider among the judgement's, most time to win first.
    considered: Vec<usize>,
}

impl Judged {
    /// Puts a recording and its judgement together.
    pub fn new(recording: Recording, judgement: Judgement) -> Self {
        let members = members(&recording);
        let place = |remark: &Finding| judgement.also.iter().position(|other| std::ptr::eq(other, remark));
        let considered = judgement.considered(&recording).into_iter().filter_map(place).collect();
        Self { recording, judgement, members, considered }
    }

    /// Returns the findings with their numbers, then the remarks to consider, which have none.
    pub(crate) fn reported(&self) -> impl Iterator<Item = (Option<usize>, &Finding)> {
        let findings = (1..).map(Some).zip(&self.judgement.findings);
        let considered = self.considered.iter().filter_map(|at| self.judgement.also.get(*at));
        findings.chain(considered.map(|remark| (None, remark)))
    }
}

/// The figures of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Length of the interval, ns.
    pub span_ns: u64,
    /// Calls and times in the interval.
    pub figures: Figures,
    /// Processor time that the watched processes took in the interval, ns.
    pub cpu_ns: u64,
}

/// The state between two snapshots that a screen shows.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The newer snapshot.
    pub tally: Arc<Tally>,
    /// Length of the interval, ns; 0 before the first.
    pub span_ns: u64,
    /// Figures of all rows in the interval.
    pub total: Figures,
    /// Processor time that the watched processes took in the interval, ns.
    pub cpu_ns: u64,
    /// Figures of each row in the interval.
    pub rows: HashMap<RowKey, Figures>,
    /// Figures of each process in the interval.
    pub processes: HashMap<ProcessKey, Figures>,
    /// The last judgement.
    pub judged: Arc<Judged>,
}

/// All that has been seen so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    newest: Interval,
    points: VecDeque<Point>,
    graphs: HashMap<RowKey, VecDeque<Point>>,
}

impl History {
    /// Adds a snapshot. One that is not newer than the last changes nothing.
    pub fn push(&mut self, tally: Tally) {
        let before = &self.newest.tally;
        let span_ns = tally.at_ns.saturating_sub(before.at_ns);
        if span_ns == 0 {
            return;
        }
        let rows: HashMap<RowKey, Figures> = tally
            .rows
            .iter()
            .map(|(key, row)| {
                (key.clone(), row.figures.since(&before.rows.get(key).map(|r| r.figures).unwrap_or_default()))
            })
            .collect();
        let processes = tally.processes.iter().map(|(key, process)| {
            let earlier = before.processes.get(key).map(|p| p.figures).unwrap_or_default();
            (key.clone(), process.figures.since(&earlier))
        });
        let interval = Interval {
            span_ns,
            total: tally.total.since(&before.total),
            cpu_ns: tally.cpu_ns.saturating_sub(before.cpu_ns),
            processes: processes.collect(),
            rows,
            judged: Arc::clone(&self.newest.judged),
            tally: Arc::new(tally),
        };
        let point = |figures| Point { span_ns, figures, cpu_ns: interval.cpu_ns };
        add(&mut self.points, point(interval.total));
        for (key, figures) in &interval.rows {
            if self.graphs.len() < MOST_GRAPHS && figures.calls > 0 && !self.graphs.contains_key(key) {
                self.graphs.insert(key.clone(), VecDeque::new());
            }
        }
        for (key, graph) in &mut self.graphs {
            add(graph, point(interval.rows.get(key).copied().unwrap_or_default()));
        }
        self.newest = interval;
    }

    /// Adds the judgement of a snapshot.
    pub fn judge(&mut self, judged: Judged) {
        self.newest.judged = Arc::new(judged);
    }

    /// Returns the interval that ended last.
    pub fn newest(&self) -> &Interval {
        &self.newest
    }

    /// Returns the figures of the last intervals, oldest first.
    pub fn points(&self) -> &VecDeque<Point> {
        &self.points
    }

    /// Returns the figures of the last intervals for some rows, added up; nothing for rows without
    /// a graph.
    pub fn points_of(&self, keys: &[RowKey]) -> Vec<Point> {
        let graphs: Vec<_> = keys.iter().filter_map(|key| self.graphs.get(key)).collect();
        let longest = graphs.iter().map(|graph| graph.len()).max().unwrap_or(0);
        let mut sum = vec![Point::default(); longest];
        for graph in graphs {
            // The newest points are of one interval.
            for (to, point) in sum.iter_mut().rev().zip(graph.iter().rev()) {
                to.span_ns = point.span_ns;
                to.figures.add(&point.figures);
            }
        }
        sum
    }
}

fn add(points: &mut VecDeque<Point>, point: Point) {
    if points.len() >= POINTS {
        points.pop_front();
    }
    points.push_back(point);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::RowTally;
    use systoll_model::Sysno;

    fn tally(at_ns: u64, calls: u64) -> Tally {
        let key = RowKey { program: "app".into(), syscall: Sysno(1), api: None, place: None };
        let figures = Figures { calls, toll_ns: calls * 10, ..Figures::default() };
        let rows = HashMap::from([(key, RowTally { figures, lines: vec![] })]);
        Tally { at_ns, total: figures, rows, ..Tally::default() }
    }

    #[test]
    fn the_difference_of_two_snapshots_is_what_came_between_them() {
        let mut history = History::default();
        for (second, calls) in [(1, 100), (2, 250), (2, 999), (4, 250)] {
            history.push(tally(second * 1_000_000_000, calls));
        }
        let calls: Vec<u64> = history.points().iter().map(|p| p.figures.calls).collect();
        assert_eq!(calls, [100, 150, 0], "the third is not newer than the second");
        assert_eq!((history.newest().span_ns, history.newest().total.calls), (2_000_000_000, 0));
        let keys: Vec<RowKey> = history.newest().rows.keys().cloned().collect();
        let of_row: Vec<u64> = history.points_of(&keys).iter().map(|p| p.figures.calls).collect();
        assert_eq!(of_row, calls);
    }

    #[test]
    fn old_points_are_dropped() {
        let mut history = History::default();
        (1..2 * POINTS as u64).for_each(|n| history.push(tally(n, n)));
        assert_eq!(history.points().len(), POINTS);
    }
}
