//! The calls that can be priced, and their arguments.
//!
//! Invariant: an entry's arguments point into the [`Fixture`]'s scratch memory or its path strings,
//! are as large as the call expects, and change nothing but the child's own process. The one place
//! that makes the calls relies on it.

mod bench;
mod events;
mod files;
mod memory;
mod process;
mod time;

pub(crate) use bench::Bench;
use systoll_model::{Errno, Sysno};

/// Number that stands for a call that the machine lacks.
pub(crate) const ABSENT: i64 = -1;

/// Returns all calls that can be priced.
pub(crate) fn all() -> impl Iterator<Item = &'static Bench> {
    let all = [process::CALLS, time::CALLS, files::CALLS, memory::CALLS, events::CALLS].into_iter().flatten();
    all.filter(|bench| bench.nr != ABSENT)
}

/// Returns the entry of `sysno` that succeeds, or that fails with `errno`.
pub(crate) fn find(sysno: Sysno, errno: Option<Errno>) -> Option<&'static Bench> {
    all().find(|b| b.sysno() == sysno && b.errno == errno.map(|e| e.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_call_is_listed_twice_and_all_have_names() {
        let mut seen = BTreeSet::new();
        for bench in all() {
            assert!(bench.sysno().name().is_some());
            assert!(seen.insert((bench.nr, bench.errno)), "{} is listed twice", bench.sysno());
        }
        assert!(seen.len() > 100);
    }
}
