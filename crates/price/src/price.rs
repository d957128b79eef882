//! Measures the price of single calls.

use crate::arch;
use crate::child::{self, Outcome, Refused};
use crate::fixture::{Fixture, Paths};
use crate::measure::{self, Meter};
use crate::sys;
use crate::table::{self, Bench};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use systoll_model::{Errno, Price, PriceSource, Spread, Sysno};

/// Time for measuring one price.
const BUDGET: Duration = Duration::from_micros(1_500);
/// Approximate time for measuring several prices.
const PATIENCE: Duration = Duration::from_millis(250);

/// Returns the time limit of a child that measures `prices` prices on the busiest box.
fn deadline(prices: usize) -> Duration {
    Duration::from_secs(2) + BUDGET * measure::GIVE_UP * prices.min(child::MAX_FIGURES) as u32
}

/// Measures the price of crossing into the kernel and back: a getppid, in ns, measured for about
/// `budget` in the calling thread, without the loop's and the clock's share. It has no side
/// effects.
///
/// Called through a function, as programs call it: the first return after the crossing is dear
/// on many boxes, and every call pays it ([`systoll_model::Probe::CrossingAlone`] is without).
/// Few batches make a poor spread: give it [`crate::CROSSING_BUDGET`] or more. On a busy box it
/// may take longer, and all zeros mean that no batch had the processor to itself.
pub fn crossing(budget: Duration) -> Spread {
    Meter::new(budget).spread(getppid)
}

/// Makes the call that measures the crossing: it only reads one field, and no library caches its
/// result.
#[inline(always)]
pub(crate) fn getppid() {
    // SAFETY: getppid takes no arguments and changes nothing.
    unsafe { sys::call(libc::SYS_getppid, [0; 6]) };
}

/// Makes the same call by one instruction, without a function around it.
#[inline(always)]
pub(crate) fn getppid_alone() {
    // SAFETY: as above.
    unsafe { arch::instruction(libc::SYS_getppid, [0; 6]) };
}

/// Returns the price of `sysno` on this box for the smallest successful call: one byte moved, a
/// path of two components, no thread to wake, nothing to wait for. [`Price::low`] excludes the
/// return after the call, see [`crossing`]. Returns `None` for calls that can't be tried safely or
/// that this process may not make. Takes about 2 ms.
pub fn price_of(sysno: Sysno) -> Option<Price> {
    price(table::find(sysno, None)?)
}

/// Returns the price of `sysno` when it fails with `errno`; otherwise works as [`price_of`].
pub fn price_of_failing(sysno: Sysno, errno: Errno) -> Option<Price> {
    price(table::find(sysno, Some(errno))?)
}

/// Returns the prices of several calls, measured in one child in this order. Calls without a price
/// are left out. On a busy box the last ones are too: a user waits for the report, so no
/// measurement starts after a quarter of a second.
pub fn prices_of(calls: impl IntoIterator<Item = Sysno>) -> BTreeMap<Sysno, Price> {
    let mut seen = BTreeSet::new();
    let mut benches: Vec<&Bench> =
        calls.into_iter().filter(|s| seen.insert(*s)).filter_map(|sysno| table::find(sysno, None)).collect();
    benches.truncate(child::MAX_FIGURES - 1);
    let prices = run(&benches);
    benches.iter().zip(prices).filter_map(|(b, price)| Some((b.sysno(), price?))).collect()
}

/// Returns the price of a `newfstatat` of `path`, whether it exists or not: glibc asks for a
/// missing /etc/localtime just as often. Returns `None` if the look-up fails otherwise or takes
/// seconds.
pub fn price_path_stat(path: &Path) -> Option<Price> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let outcomes = child::measure(2, deadline(2), |figures| {
        sys::pin();
        let meter = Meter::new(BUDGET);
        figures.set(0, stat(&meter, &path));
        figures.set(1, Ok(return_share()));
    });
    let [price, share] = outcomes.as_slice() else { return None };
    priced(price, share)
}

/// Measures the return after a crossing: the difference between [`crossing`] and the instruction
/// alone.
fn return_share() -> Spread {
    let meter = Meter::new(BUDGET / 8);
    let (call, alone) = (meter.spread(getppid).min, meter.spread(getppid_alone).min);
    let share = (call - alone).max(0.0);
    Spread { min: share, median: share, high: share }
}

/// Measures a stat of `path`.
pub(crate) fn stat(meter: &Meter, path: &CString) -> Outcome {
    // The kernel's struct stat has 144 bytes.
    let mut out = [0u64; 32];
    let mut stat = || {
        let args = [sys::CWD, path.as_ptr() as usize, out.as_mut_ptr() as usize, 0, 0, 0];
        // SAFETY: reads the path's string and writes a struct stat to `out`, which is large enough.
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
    run(&[bench]).pop()?
}

fn run(benches: &[&Bench]) -> Vec<Option<Price>> {
    let paths = Paths::of_this_box();
    let mut outcomes = child::measure(benches.len() + 1, deadline(benches.len() + 1), |figures| {
        sys::pin();
        let meter = Meter::new(BUDGET);
        let Some(fixture) = Fixture::new(&paths) else { return };
        let start = Instant::now();
        figures.set(benches.len(), Ok(return_share()));
        for (i, bench) in benches.iter().enumerate().take_while(|_| start.elapsed() < PATIENCE) {
            figures.set(i, bench.run(&meter, &fixture));
        }
    });
    let Some(share) = outcomes.pop() else { return Vec::new() };
    outcomes.iter().map(|outcome| priced(outcome, &share)).collect()
}

/// Returns the price that an outcome gives: that of the fastest batch, as for the crossing; `None`
/// if it is zero.
fn priced(outcome: &Outcome, return_share: &Outcome) -> Option<Price> {
    let spread = outcome.ok()?;
    let share = return_share.map_or(0.0, |s| s.min);
    let low = if share < spread.min { spread.min - share } else { spread.min };
    (spread.min > 0.0).then_some(Price { ns: spread.min, low, high: spread.high, source: PriceSource::Measured })
}
