//! Whether two programs do the same.

use crate::executor::timed_out;
use crate::{Difference, Digest, Executor, Options, Outcome, Output, ProveError, Run, Same, Sameness};
use std::time::Duration;
use systoll_cure::Spec;
use systoll_model::Exit;

/// `b` may take this many times what `a` takes, and this much beside, before it is said to hang.
const PATIENCE: (u32, Duration) = (20, Duration::from_secs(10));

/// Runs `a` twice and `b` once, their output kept, and says whether they do the same; with it how
/// long a run of `b` may take.
pub(crate) fn compare_outcomes(
    exec: &mut dyn Executor,
    a: &Spec,
    b: &Spec,
    options: &Options,
) -> Result<(Outcome, Duration), ProveError> {
    let kept = Output::Digested(options.same.by.clone());
    let first = exec.run(a, &kept, None)?;
    let second = exec.run(a, &kept, None)?;
    let slower = Duration::from_nanos(first.usage.wall_ns.max(second.usage.wall_ns));
    let patience = slower.saturating_mul(PATIENCE.0).saturating_add(PATIENCE.1);
    let other = match exec.run(b, &kept, Some(patience)) {
        Ok(other) => other,
        Err(error) => match timed_out(&error) {
            Some(limit) if limit == patience => return Ok((differs(Difference::Hangs(limit)), patience)),
            _ => return Err(error),
        },
    };
    Ok((judge(&options.same, &first, &second, &other), patience))
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
    let stream = |wanted: bool, of: fn(&Run) -> Option<Digest>| {
        if wanted { compare_stream(of, first, second, other) } else { Stream::Same(Sameness::Exact) }
    };
    let streams = [
        (stream(same.stdout, |r| r.stdout), Difference::Stdout),
        (stream(same.stderr, |r| r.stderr), Difference::Stderr),
        (said(first, second, other), Difference::By),
    ];
    let mut output = Sameness::Exact;
    for (stream, difference) in &streams {
        match stream {
            Stream::Varies => return differs(Difference::Itself),
            Stream::Differs => return differs(*difference),
            Stream::Same(degree) => output = output.min(*degree),
        }
    }
    Outcome::Same { exit: exits.0, output }
}

enum Stream {
    Same(Sameness),
    Differs,
    Varies,
}

/// Demands of `b` as much as `a` keeps up by itself.
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

/// What the comparing command said: it was chosen to be the same, so nothing is masked.
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
