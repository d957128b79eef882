//! The survey of `systoll box`.

mod membarrier;
mod seccomp;

use crate::child::{self, Figures, Outcome};
use crate::fixture::{BULK, Fixture, Paths};
use crate::measure::Meter;
use crate::price::{getppid, getppid_alone, stat};
use crate::sys::{self, Affinity, Args};
use std::ffi::CString;
use std::path::Path;
use std::time::Duration;
use systoll_model::{BoxFigure, BoxReport, Errno, Figure, Probe, Seccomp, Spread};

/// Approximate time for measuring one figure.
const BUDGET: Duration = Duration::from_millis(8);
/// Time limit for all figures, on the busiest box.
const DEADLINE: Duration = Duration::from_secs(10);

const LOCALTIME: &str = "/etc/localtime";

/// Surveys this box in well under two seconds. The caller fills [`BoxReport::watch_ns`].
pub fn survey() -> BoxReport {
    let crossing_before = crate::crossing(BUDGET);
    let plain = Paths::of_this_box();
    let paths = [CString::new(LOCALTIME).unwrap_or_default(), plain.plain.clone()];
    let mut outcomes = child::measure(Probe::ALL.len(), DEADLINE, |f| roads(f, &plain, &paths));
    for (probe, filter) in
        [(Probe::SeccompAdds, seccomp::Filter::Constant), (Probe::SeccompArgumentAdds, seccomp::Filter::Argument)]
    {
        let added = child::measure(1, DEADLINE, |f| {
            sys::pin();
            f.set(0, seccomp::adds(&Meter::new(BUDGET), filter));
        });
        if let (Some(slot), Some(added)) = (outcomes.get_mut(index(probe)), added.into_iter().next()) {
            *slot = added;
        }
    }
    let figures = Probe::ALL.into_iter().zip(outcomes).map(|(probe, outcome)| BoxFigure {
        probe,
        on: on(probe, &plain),
        figure: match outcome {
            Ok(spread) if spread.high > 0.0 => Figure::Measured(spread),
            Ok(_) => Figure::NotMeasured("another program ran all the time".into()),
            Err(why) => Figure::NotMeasured(why.to_string()),
        },
    });
    BoxReport {
        host: crate::host(),
        mitigations: crate::mitigations::mitigations(Path::new(crate::mitigations::FOLDER)),
        seccomp: seccomp_of(&std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default()),
        figures: figures.collect(),
        crossing_before,
        crossing_after: crate::crossing(BUDGET),
        watch_ns: Vec::new(),
    }
}

fn index(probe: Probe) -> usize {
    Probe::ALL.iter().position(|p| *p == probe).unwrap_or(usize::MAX)
}

/// Measures all figures except the seccomp filters', in a child.
fn roads(figures: &mut Figures, paths: &Paths, stats: &[CString; 2]) {
    let affinity = sys::pin();
    let meter = Meter::new(BUDGET);
    let mut set = |probe, outcome| figures.set(index(probe), outcome);
    set(Probe::FunctionCall, Ok(function_call(&meter)));
    set(Probe::ClockVdso, Ok(clock_vdso(&meter)));
    // SAFETY: time accepts a null pointer.
    let time = || std::hint::black_box(unsafe { libc::time(std::ptr::null_mut()) });
    set(
        Probe::TimeVdso,
        Ok(meter.spread(|| {
            time();
        })),
    );
    set(Probe::Crossing, Ok(meter.spread(getppid)));
    set(Probe::CrossingAlone, Ok(meter.spread(getppid_alone)));
    set(Probe::StatLocaltime, stat(&meter, &stats[0]));
    set(Probe::StatPlain, stat(&meter, &stats[1]));
    if let Some(f) = Fixture::new(paths) {
        calls(&mut set, &meter, &f);
    }
    membarriers(&mut set, &meter, affinity.as_ref());
}

/// Measures single calls, each made repeatedly with the same arguments.
fn calls(set: &mut impl FnMut(Probe, Outcome), meter: &Meter, f: &Fixture) {
    let clock = libc::CLOCK_MONOTONIC as usize;
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let calls: [(Probe, i64, Args); 7] = [
        (Probe::ClockKernel, libc::SYS_clock_gettime, [clock, f.out(), 0, 0, 0, 0]),
        (Probe::Sigprocmask, libc::SYS_rt_sigprocmask, [0, f.zeros(), f.out(), sys::SIGSET_BYTES, 0, 0]),
        // pread and pwrite find the same bytes each time. read and write only differ in the file's
        // position, not in price.
        (Probe::ReadByte, libc::SYS_pread64, [f.file, f.data(), 1, 0, 0, 0]),
        (Probe::ReadBulk, libc::SYS_pread64, [f.file, f.data(), BULK, 0, 0, 0]),
        (Probe::WriteByte, libc::SYS_pwrite64, [f.file, f.data(), 1, 0, 0, 0]),
        (Probe::WriteBulk, libc::SYS_pwrite64, [f.file, f.data(), BULK, 0, 0, 0]),
        (Probe::FutexWake, libc::SYS_futex, [f.zeros(), wake, 1, 0, 0, 0]),
    ];
    for (probe, nr, args) in calls {
        // SAFETY: all pointers are to the fixture's scratch memory, which is large enough.
        let call = || unsafe { sys::call(nr, args) };
        let name = systoll_model::Sysno(nr as u32).name().unwrap_or("the call");
        let outcome = match sys::errno(call()) {
            Some(errno) => Err(child::Refused::Call(name, Errno(errno))),
            None => Ok(meter.spread(|| {
                call();
            })),
        };
        set(probe, outcome);
    }
}

fn membarriers(set: &mut impl FnMut(Probe, Outcome), meter: &Meter, affinity: Option<&Affinity>) {
    set(Probe::MembarrierGlobal, membarrier::global(meter));
    let (running, sleeping) = membarrier::private(meter, affinity);
    set(Probe::MembarrierPrivateRunning, running);
    set(Probe::MembarrierPrivate, sleeping);
}

#[inline(never)]
extern "C" fn empty() {
    // SAFETY: no instruction; it only hides the function's body from the compiler.
    unsafe { std::arch::asm!("", options(nomem, nostack)) };
}

/// Measures a function call. One call is within the noise of the loop's branch, so each turn makes
/// sixteen.
fn function_call(meter: &Meter) -> Spread {
    let sixteen = meter.spread(|| {
        for _ in 0..4 {
            empty();
            empty();
            empty();
            empty();
        }
    });
    Spread { min: sixteen.min / 16.0, median: sixteen.median / 16.0, high: sixteen.high / 16.0 }
}

fn clock_vdso(meter: &Meter) -> Spread {
    let mut out = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    meter.spread(|| {
        // SAFETY: `out` is live.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut out) };
    })
}

/// Returns the object that a figure was measured on.
fn on(probe: Probe, paths: &Paths) -> Option<String> {
    match probe {
        Probe::StatLocaltime => Some(match Path::new(LOCALTIME).symlink_metadata() {
            Ok(m) if m.is_symlink() => "a symbolic link".to_owned(),
            Ok(_) => "a plain file".to_owned(),
            Err(_) => "missing".to_owned(),
        }),
        Probe::StatPlain => Some(paths.plain.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// Parses the mode and the number of filters from a /proc/PID/status.
fn seccomp_of(status: &str) -> Seccomp {
    let field = |name: &str| {
        let line = status.lines().find(|l| l.split(':').next() == Some(name))?;
        line.split_once(':')?.1.trim().parse::<u32>().ok()
    };
    match field("Seccomp") {
        Some(0) => Seccomp::None,
        Some(1) => Seccomp::Strict,
        Some(_) => Seccomp::Filters(field("Seccomp_filters").unwrap_or(0)),
        None => Seccomp::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_from_status() {
        assert_eq!(seccomp_of("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\n"), Seccomp::Filters(3));
        assert_eq!(seccomp_of("Seccomp:\t0\nSeccomp_filters:\t0\n"), Seccomp::None);
        assert_eq!(seccomp_of("Seccomp:\t2\n"), Seccomp::Filters(0));
        assert_eq!(seccomp_of(""), Seccomp::Unknown);
    }
}
