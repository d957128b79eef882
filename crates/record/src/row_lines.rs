//! The script lines of a row's sampled calls.

use std::cmp::Reverse;
use systoll_symbols::RawFrame;

/// The whole stacks of a row that contain one script line, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) line: Option<RawFrame>,
    pub(crate) looks: u64,
    /// Number of calls that these stacks stand for.
    pub(crate) weight: u64,
    /// The first of the stacks, without the interpreter's own frames, which change as it specialises its code.
    pub(crate) whole: u32,
    /// Number of innermost frames of `whole` that all these stacks share.
    pub(crate) shared: usize,
}

/// Returns true if the sampled lines of a row show the code that made its `entered` calls: the samples stand for enough of
/// them, or there were several and all agree; and they are not a few among many without a line. One sample of the first
/// call tells nothing of a million.
pub(crate) fn tell(lines: &[Line], entered: u64) -> bool {
    const PART: u64 = 8;
    const ENOUGH: u64 = 4;
    let sum = |of: &dyn Fn(&Line) -> u64| lines.iter().fold(0u64, |sum, l| sum.saturating_add(of(l)));
    let agree = lines.len() == 1 && sum(&|l| l.looks) >= ENOUGH;
    scripts_count(lines) && (agree || sum(&|l| l.weight).saturating_mul(PART) >= entered)
}

/// Returns the line that made most of the sampled calls.
pub(crate) fn main(lines: &[Line]) -> Option<&Line> {
    let scripts_count = scripts_count(lines);
    lines.iter().max_by_key(|l| (scripts_count && l.line.is_some(), l.weight, Reverse(l.whole)))
}

/// Returns false if most of the sampled calls were made without a line of a script: the few that have one say nothing of the
/// others. A stack whose lines could not be read counts as one without, so a fair part of the calls is enough.
fn scripts_count(lines: &[Line]) -> bool {
    const FAIR: u64 = 4;
    let weight =
        |of: &dyn Fn(&Line) -> bool| lines.iter().filter(|l| of(l)).fold(0u64, |sum, l| sum.saturating_add(l.weight));
    let with = weight(&|l| l.line.is_some());
    with == 0 || with.saturating_mul(FAIR) >= weight(&|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: Option<u64>, looks: u64, weight: u64) -> Line {
        let line = line.map(|address| RawFrame { module: None, address, is_return: false });
        Line { line, looks, weight, whole: 0, shared: 1 }
    }

    #[test]
    fn one_line_among_many_stacks_without_one_is_not_the_rows() {
        // A run-time maps memory once for the script's line, and 20,000 times for its own threads.
        let own = [line(Some(48), 1, 4), line(None, 24, 20_000)];
        assert!(!tell(&own, 20_004));
        assert_eq!(main(&own).and_then(|l| l.line), None);
        // Lines that could not be read now and then take nothing from those that could.
        let script = [line(Some(48), 12, 9_000), line(None, 9, 11_000)];
        assert!(tell(&script, 20_000));
        assert!(main(&script).is_some_and(|l| l.line.is_some()));
        assert!(tell(&[line(None, 24, 20_000)], 20_000), "what has no script is told by its stacks");
    }

    #[test]
    fn one_sample_tells_nothing_of_a_million_calls() {
        assert!(!tell(&[line(Some(1), 1, 1)], 1_000_000) && tell(&[line(Some(1), 4, 15)], 1_000_000));
        assert!(!tell(&[line(Some(1), 4, 10), line(Some(2), 4, 15)], 1_000) && tell(&[line(Some(1), 1, 1)], 8));
    }
}
