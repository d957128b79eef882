//! Prices of single calls.

use crate::child::{self, Outcome, Refused};
use crate::fixture::{Fixture, Paths};
use crate::measure::Meter;
use crate::sys;
use crate::table::{self, Bench};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use systoll_model::{Errno, Price, PriceSource, Spread, Sysno};

/// A price may take so long to find.
const BUDGET: Duration = Duration::from_micros(1_500);

/// How long a child that measures `prices` prices may take on the busiest box.
fn deadline(prices: usize) -> Duration {
    Duration::from_secs(2) + BUDGET * 20 * u32::try_from(prices).unwrap_or(u32::MAX)
}

/// What crossing into the kernel and back costs: a getppid, in ns, measured for about `budget` in
/// the calling thread, the loop's and the clock's share taken off. No side effects.
///
/// Few batches make a poor spread: give it [`crate::CROSSING_BUDGET`] or more.
pub fn crossing(budget: Duration) -> Spread {
    Meter::new(budget).spread(getppid)
}

/// The call that stands for the crossing: it does nothing but read one field, and no library
/// keeps its answer.
pub(crate) fn getppid() {
    // SAFETY: getppid takes no arguments and changes nothing.
    unsafe { sys::call(libc::SYS_getppid, [0; 6]) };
}

/// What `sysno` costs here when it succeeds at the least it can do: one byte moved, a path of
/// two components, nobody to wake, nothing to wait for. `None` for calls that can't be tried
/// safely, or that this process may not make. Takes about 2 ms.
pub fn price_of(sysno: Sysno) -> Option<Price> {
    price(table::find(sysno, None)?)
}

/// What `sysno` costs when it fails with `errno`; otherwise as [`price_of`].
pub fn price_of_failing(sysno: Sysno, errno: Errno) -> Option<Price> {
    price(table::find(sysno, Some(errno))?)
}

/// [`price_of`] of several calls, one child for all of them; those without a price are left out.
pub fn prices_of(calls: impl IntoIterator<Item = Sysno>) -> BTreeMap<Sysno, Price> {
    let mut benches: Vec<&Bench> = calls.into_iter().filter_map(|sysno| table::find(sysno, None)).collect();
    benches.sort_by_key(|b| b.sysno());
    benches.dedup_by_key(|b| b.sysno());
    benches.truncate(child::MAX_FIGURES);
    let outcomes = run(&benches);
    benches.iter().zip(outcomes).filter_map(|(b, o)| Some((b.sysno(), priced(o)?))).collect()
}

/// What a `newfstatat` of `path` costs, whether it is there or not: glibc asks for a missing
/// /etc/localtime just as often. `None` if the look-up fails in another way, or takes seconds.
pub fn price_path_stat(path: &Path) -> Option<Price> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let outcomes = child::measure(1, deadline(1), |figures| {
        crate::sys::pin();
        figures.set(0, stat(&Meter::new(BUDGET), &path));
    });
    priced(outcomes.into_iter().next()?)
}

/// Measures a stat of `path`.
pub(crate) fn stat(meter: &Meter, path: &CString) -> Outcome {
    // The kernel's struct stat has 144 bytes.
    let mut out = [0u64; 32];
    let mut stat = || {
        let args = [sys::CWD, path.as_ptr() as usize, out.as_mut_ptr() as usize, 0, 0, 0];
        // SAFETY: reads the path's string and writes a struct stat to `out`, which has room for it.
        unsafe { sys::call(libc::SYS_newfstatat, args) }
    };
    match sys::errno(stat()) {
        Some(errno) if errno != libc::ENOENT as u16 => Err(Refused::Call("newfstatat", Errno(errno))),
        _ => Ok(meter.spread(|| {
            stat();
        })),
    }
}

fn price(bench: &Bench) -> Option<Price> {
    priced(run(&[bench]).into_iter().next()?)
}

fn run(benches: &[&Bench]) -> Vec<Outcome> {
    let paths = Paths::of_this_box();
    child::measure(benches.len(), deadline(benches.len()), |figures| {
        sys::pin();
        let meter = Meter::new(BUDGET);
        let Some(fixture) = Fixture::new(&paths) else { return };
        for (i, bench) in benches.iter().enumerate() {
            figures.set(i, bench.run(&meter, &fixture));
        }
    })
}

fn priced(outcome: Outcome) -> Option<Price> {
    let spread = outcome.ok()?;
    // The fastest batch is the figure quoted, as for the crossing; a price of nothing is none.
    (spread.min > 0.0).then_some(Price {
        ns: spread.min,
        low: spread.min,
        high: spread.high,
        source: PriceSource::Measured,
    })
}
