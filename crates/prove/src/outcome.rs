//! Checks whether two programs do the same.

use crate::executor::{KEPT, timed_out};
use crate::{
    Agreement, Difference, DiffersAt, Digest, Executor, Options, Outcome, Output, ProveError, Run, Same, Sameness,
};
use std::time::Duration;
use systoll_cure::Spec;
use systoll_model::Exit;

/// Factor on the time of `a`, and the time added to it, after which `b` counts as hanging.
const PATIENCE: (u32, Duration) = (20, Duration::from_secs(10));

/// Runs `a` twice and `b` once, keeps their output, and checks whether they do the same.
pub(crate) fn compare_outcomes(
    exec: &mut dyn Executor,
    a: &Spec,
    b: &Spec,
    options: &Options,
) -> Result<Compared, ProveError> {
    let kept = Output::Digested(options.same.by.clone());
    let first = exec.run(a, &kept, None)?;
    let second = exec.run(a, &kept, None)?;
    let slower = Duration::from_nanos(first.usage.wall_ns.max(second.usage.wall_ns));
    let patience = slower.saturating_mul(PATIENCE.0).saturating_add(PATIENCE.1);
    let other = match exec.run(b, &kept, Some(patience)) {
        Ok(other) => other,
        Err(error) => match timed_out(&error) {
            Some(limit) if limit == patience => {
                let outcome = differs(Difference::Hangs(limit));
                return Ok(Compared { outcome, differs_at: None, patience, pair: limit });
            }
            _ => return Err(error),
        },
    };
    let outcome = judge(&options.same, &first, &second, &other);
    let differs_at = differs_at(outcome, &first, &second, &other);
    let pair = Duration::from_nanos(second.usage.wall_ns.saturating_add(other.usage.wall_ns));
    Ok(Compared { outcome, differs_at, patience, pair })
}

/// The verdict on whether both programs do the same, and the time that a run of `b` may take.
pub(crate) struct Compared {
    pub(crate) outcome: Outcome,
    pub(crate) differs_at: Option<DiffersAt>,
    pub(crate) patience: Duration,
    /// Time of one run of each side, together.
    pub(crate) pair: Duration,
}

/// Returns the first difference of the outputs, by the degree they were compared with.
fn differs_at(outcome: Outcome, first: &Run, second: &Run, other: &Run) -> Option<DiffersAt> {
    let (stream, of): (usize, fn(&Run) -> Option<Digest>) = match outcome {
        Outcome::Differs(Difference::Stdout) => (0, |r| r.stdout),
        Outcome::Differs(Difference::Stderr) => (1, |r| r.stderr),
        _ => return None,
    };
    let itself = of(first)?.same(&of(second)?);
    // If the order of lines varies, no line is the first that differs.
    let in_order = itself > Sameness::ButDigitsAndOrder;
    in_order.then(|| first_difference(&first.wrote[stream], &other.wrote[stream], itself))?
}

fn first_difference(a: &[u8], b: &[u8], degree: Sameness) -> Option<DiffersAt> {
    let (mut of_a, mut of_b) = (lines(a), lines(b));
    for line in 1.. {
        let (a_line, b_line) = (of_a.next(), of_b.next());
        let alike = |(a, b): (&[u8], &[u8])| Digest::of(a).same(&Digest::of(b)) >= degree;
        match (a_line, b_line) {
            (None, None) => return None,
            // The rest of the output was not kept.
            (None, _) if a.len() >= KEPT => return None,
            (_, None) if b.len() >= KEPT => return None,
            _ if a_line.zip(b_line).is_some_and(alike) => {}
            _ => {
                let text = |line: &[u8]| String::from_utf8_lossy(line).trim_end_matches('\n').to_owned();
                return Some(DiffersAt { line, a: a_line.map(text), b: b_line.map(text) });
            }
        }
    }
    None
}

/// Returns the whole lines. If the output was cut, the last line is not whole.
fn lines(kept: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end =
        if kept.len() < KEPT { kept.len() } else { kept.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1) };
    kept.get(..end).unwrap_or_default().split_inclusive(|b| *b == b'\n')
}

fn differs(difference: Difference) -> Outcome {
    Outcome::Differs(difference)
}

fn judge(same: &Same, first: &Run, second: &Run, other: &Run) -> Outcome {
    let exits = (first.usage.exit, other.usage.exit);
    if same.exit && first.usage.exit != second.usage.exit {
        return differs(Difference::Itself);
    }
    if same.exit && exits.0 != exits.1 {
        return differs(Difference::Exit { a: exits.0, b: exits.1 });
    }
    let stream =
        |wanted: bool, of: fn(&Run) -> Option<Digest>| wanted.then(|| compare_stream(of, first, second, other));
    let streams = [
        (stream(same.stdout, |r| r.stdout), Difference::Stdout),
        (stream(same.stderr, |r| r.stderr), Difference::Stderr),
        (same.by.is_some().then(|| said(first, second, other)), Difference::By),
    ];
    for (stream, difference) in &streams {
        match stream {
            Some(Stream::Varies) => return differs(Difference::Itself),
            Some(Stream::Differs) => return differs(*difference),
            Some(Stream::Same(_)) | None => {}
        }
    }
    let [stdout, stderr, by] = streams.map(|(stream, _)| match stream {
        Some(Stream::Same(degree)) => Some(degree),
        _ => None,
    });
    Outcome::Same(Agreement { exit: same.exit.then_some(exits.0), stdout, stderr, by: by.is_some() })
}

enum Stream {
    Same(Sameness),
    Differs,
    Varies,
}

/// Compares a stream of `b` with that of `a`, to the degree to which two runs of `a` agree.
fn compare_stream(stream: impl Fn(&Run) -> Option<Digest>, first: &Run, second: &Run, other: &Run) -> Stream {
    let [first, second, other] = [first, second, other].map(|r| stream(r).unwrap_or_default());
    let itself = first.same(&second);
    if itself == Sameness::Different {
        Stream::Varies
    } else if first.same(&other) >= itself {
        Stream::Same(itself)
    } else {
        Stream::Differs
    }
}

/// Compares the comparing command's results exactly: the user chose it to be the same.
fn said(first: &Run, second: &Run, other: &Run) -> Stream {
    let alike = |a: Option<(Digest, Exit)>, b: Option<(Digest, Exit)>| match (a, b) {
        (Some((a, a_exit)), Some((b, b_exit))) => a_exit == b_exit && a.same(&b) == Sameness::Exact,
        _ => true,
    };
    if !alike(first.by, second.by) {
        Stream::Varies
    } else if alike(first.by, other.by) {
        Stream::Same(Sameness::Exact)
    } else {
        Stream::Differs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, degree: Sameness, expect: Option<(u64, Option<&str>, Option<&str>)>) {
        let told = first_difference(a.as_bytes(), b.as_bytes(), degree);
        let told = told.as_ref().map(|d| (d.line, d.a.as_deref(), d.b.as_deref()));
        assert_eq!(told, expect);
    }

    #[test]
    fn the_first_differing_line_is_reported() {
        check("x\na\nc\n", "x\nb\nd\n", Sameness::Exact, Some((2, Some("a"), Some("b"))));
        check("x\n", "x\ny\n", Sameness::Exact, Some((2, None, Some("y"))));
        check("", "", Sameness::Exact, None);
        // A line that varies by itself is no difference.
        check("took 12 ms\na\n", "took 7 ms\nb\n", Sameness::ButDigits, Some((2, Some("a"), Some("b"))));
        check("took 12 ms\n", "took 7 ms\n", Sameness::Exact, Some((1, Some("took 12 ms"), Some("took 7 ms"))));
    }

    #[test]
    fn lost_output_is_not_described() {
        let long = "line\n".repeat(KEPT / 5 + 1);
        check(&long[..KEPT], &long[..KEPT], Sameness::Exact, None);
        check(&long[..KEPT], &long[..KEPT - 2], Sameness::Exact, None);
        check(&long[..5 * 52_427], &long[..5 * 52_428], Sameness::Exact, Some((52_428, None, Some("line"))));
    }
}
