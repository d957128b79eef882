//! The figures that `systoll box` measures: the price of a crossing, of common calls and of
//! membarriers and filters.

use crate::prices::Spread;
use crate::recording::Host;

/// A kind of call, or other operation, that `systoll box` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// A call of an empty function, to compare a crossing with.
    FunctionCall,
    /// A `clock_gettime(CLOCK_MONOTONIC)` as a program makes it: through the vDSO if that answers
    /// it.
    ClockVdso,
    /// A `time()` as a program makes it.
    TimeVdso,
    /// The crossing: getppid, called through a function as programs call it.
    Crossing,
    /// The `syscall` instruction alone, without a function around it. [`Probe::Crossing`] also
    /// contains the first return after the call, which may be slow because the kernel's mitigations
    /// made it unpredictable.
    CrossingAlone,
    /// A `clock_gettime(CLOCK_MONOTONIC)` through the kernel.
    ClockKernel,
    /// An `rt_sigprocmask` that changes nothing.
    Sigprocmask,
    /// A `newfstatat` of /etc/localtime.
    StatLocaltime,
    /// A `newfstatat` of a plain file.
    StatPlain,
    /// A `read` of one byte of a file in memory.
    ReadByte,
    /// A `read` of 64 KiB of a file in memory.
    ReadBulk,
    /// A `write` of one byte to a file in memory.
    WriteByte,
    /// A `write` of 64 KiB to a file in memory.
    WriteBulk,
    /// A `futex(FUTEX_WAKE)` without a waiter.
    FutexWake,
    /// A `membarrier(MEMBARRIER_CMD_GLOBAL)`. Most of its time is waiting.
    MembarrierGlobal,
    /// A `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)` while the process's other thread sleeps.
    MembarrierPrivate,
    /// A `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)` while the process's other thread runs on
    /// another processor.
    MembarrierPrivateRunning,
    /// The time that a seccomp filter which allows everything adds to a call.
    SeccompAdds,
    /// The time that a seccomp filter which looks at an argument adds to a call. The kernel can't
    /// cache its verdict.
    SeccompArgumentAdds,
}

impl Probe {
    /// All probes, in the order of the screen.
    pub const ALL: [Self; 19] = [
        Self::FunctionCall,
        Self::ClockVdso,
        Self::TimeVdso,
        Self::Crossing,
        Self::CrossingAlone,
        Self::ClockKernel,
        Self::Sigprocmask,
        Self::StatLocaltime,
        Self::StatPlain,
        Self::ReadByte,
        Self::ReadBulk,
        Self::WriteByte,
        Self::WriteBulk,
        Self::FutexWake,
        Self::MembarrierGlobal,
        Self::MembarrierPrivate,
        Self::MembarrierPrivateRunning,
        Self::SeccompAdds,
        Self::SeccompArgumentAdds,
    ];

    /// Returns the probe's name in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Self::FunctionCall => "function-call",
            Self::ClockVdso => "clock-vdso",
            Self::TimeVdso => "time-vdso",
            Self::Crossing => "crossing",
            Self::CrossingAlone => "crossing-alone",
            Self::ClockKernel => "clock-kernel",
            Self::Sigprocmask => "sigprocmask",
            Self::StatLocaltime => "stat-localtime",
            Self::StatPlain => "stat-plain",
            Self::ReadByte => "read-byte",
            Self::ReadBulk => "read-bulk",
            Self::WriteByte => "write-byte",
            Self::WriteBulk => "write-bulk",
            Self::FutexWake => "futex-wake",
            Self::MembarrierGlobal => "membarrier-global",
            Self::MembarrierPrivate => "membarrier-private",
            Self::MembarrierPrivateRunning => "membarrier-private-running",
            Self::SeccompAdds => "seccomp-adds",
            Self::SeccompArgumentAdds => "seccomp-argument-adds",
        }
    }

    /// Returns true if the median is quoted instead of the fastest batch. Such calls interrupt
    /// other processors, and the fastest batch may have found none to interrupt.
    pub fn quotes_median(self) -> bool {
        matches!(self, Self::MembarrierGlobal | Self::MembarrierPrivateRunning)
    }

    /// Returns the bytes that the call moves, or `None` if it moves none.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::ReadByte | Self::WriteByte => Some(1),
            Self::ReadBulk | Self::WriteBulk => Some(65_536),
            _ => None,
        }
    }
}

/// A measured figure, or the reason for its absence.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// The measured figure, ns.
    Measured(Spread),
    /// The reason why there is no figure, in one line.
    NotMeasured(String),
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxFigure {
    /// The probe to which the figure belongs.
    pub probe: Probe,
    /// The object that was measured, e.g. a path, or its peculiarity (`a symbolic link`).
    pub on: Option<String>,
    /// The measured figure, or the reason for its absence.
    pub figure: Figure,
}

/// A defence of the kernel that changes the price of the crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mitigation {
    /// Short name, e.g. `PTI`.
    pub name: String,
    /// Short state, e.g. `off`.
    pub state: String,
    /// The kernel's whole text about the mitigation.
    pub told: String,
}

/// The seccomp filters that calls of this process already pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// There is no filter.
    None,
    /// The process is in seccomp's strict mode.
    Strict,
    /// The number of filters; 0 if the kernel doesn't tell it (before 5.9).
    Filters(u32),
    /// The kernel doesn't tell if there are filters.
    Unknown,
}

/// Everything on the screen of `systoll box`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxReport {
    /// Processor, kernel and clock of the box.
    pub host: Host,
    /// Defences that change the price of the crossing; `None` if the kernel doesn't tell.
    pub mitigations: Option<Vec<Mitigation>>,
    /// The filters that every figure below includes.
    pub seccomp: Seccomp,
    /// Price of the crossing at the start of the survey.
    pub crossing_before: Spread,
    /// Price of the crossing at the end of the survey.
    pub crossing_after: Spread,
    /// One entry for each of [`Probe::ALL`], in that order.
    pub figures: Vec<BoxFigure>,
    /// Time that watching adds to a call, by backend, in ns. The caller fills it, since this crate
    /// cannot watch.
    pub watch_ns: Vec<(String, Spread)>,
}

impl BoxFigure {
    /// Returns the figure to quote, in ns.
    pub fn quoted(&self) -> Option<f64> {
        match self.figure {
            Figure::Measured(spread) if self.probe.quotes_median() => Some(spread.median),
            Figure::Measured(spread) => Some(spread.min),
            Figure::NotMeasured(_) => None,
        }
    }
}

impl BoxReport {
    /// Returns the measured batches of `probe`, or `None` if it was not measured.
    pub fn spread(&self, probe: Probe) -> Option<Spread> {
        self.figures.iter().find(|f| f.probe == probe).and_then(|f| match f.figure {
            Figure::Measured(spread) => Some(spread),
            Figure::NotMeasured(_) => None,
        })
    }

    /// Returns true if the box was busy with something else: the crossing's batches differ much, or
    /// the start and the end of the survey disagree by more than a tenth.
    pub fn noisy(&self) -> bool {
        let (before, after) = (self.crossing_before, self.crossing_after);
        let wide = |s: Spread| s.median > 1.1 * s.min || s.high > 1.5 * s.min;
        wide(before) || wide(after) || (before.min - after.min).abs() > 0.1 * before.min.min(after.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_has_an_id_of_its_own() {
        let ids: std::collections::BTreeSet<_> = Probe::ALL.iter().map(|p| p.id()).collect();
        assert_eq!(ids.len(), Probe::ALL.len());
    }

    #[test]
    fn a_wide_or_moving_crossing_is_noise() {
        let quiet = Spread { min: 100.0, median: 101.0, high: 110.0 };
        let report = |before, after| BoxReport {
            host: Host::default(),
            mitigations: None,
            seccomp: Seccomp::None,
            crossing_before: before,
            crossing_after: after,
            figures: vec![],
            watch_ns: vec![],
        };
        assert!(!report(quiet, quiet).noisy());
        assert!(report(Spread { median: 120.0, ..quiet }, quiet).noisy());
        assert!(report(quiet, Spread { high: 200.0, ..quiet }).noisy());
        assert!(report(quiet, Spread { min: 120.0, median: 121.0, high: 125.0 }).noisy());
    }
}
