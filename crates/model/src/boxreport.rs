//! What `systoll box` measures: the price of a crossing, of common calls and of what follows them.

use crate::prices::Spread;
use crate::recording::Host;

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// A call of an empty function: what a crossing is to be compared with.
    FunctionCall,
    /// clock_gettime(CLOCK_MONOTONIC) as a program calls it, through the vDSO if that serves.
    ClockVdso,
    /// time() as a program calls it.
    TimeVdso,
    /// The crossing: getppid, called through a function as programs call it.
    Crossing,
    /// The same without the function: the `syscall` instruction alone. What is missing to
    /// [`Probe::Crossing`] is the first return after it, which the kernel's mitigations may have
    /// made unpredictable.
    CrossingAlone,
    /// clock_gettime(CLOCK_MONOTONIC) through the kernel.
    ClockKernel,
    /// rt_sigprocmask that changes nothing.
    Sigprocmask,
    /// newfstatat of /etc/localtime.
    StatLocaltime,
    /// newfstatat of a plain file.
    StatPlain,
    /// read of one byte of a file in memory.
    ReadByte,
    /// read of 64 KiB of it.
    ReadBulk,
    /// write of one byte to a file in memory.
    WriteByte,
    /// write of 64 KiB to it.
    WriteBulk,
    /// futex(FUTEX_WAKE) without a waiter.
    FutexWake,
    /// membarrier(MEMBARRIER_CMD_GLOBAL): mostly waiting.
    MembarrierGlobal,
    /// membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) while the process's other thread sleeps.
    MembarrierPrivate,
    /// The same while the process's other thread runs on another processor.
    MembarrierPrivateRunning,
    /// What a seccomp filter that allows everything adds to a call.
    SeccompAdds,
    /// What a seccomp filter that looks at an argument adds to a call: the kernel can't decide
    /// such a call once for all.
    SeccompArgumentAdds,
}

impl Probe {
    /// All of them, in the order of the screen.
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

    /// Its name in JSON.
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

    /// Whether the median is to be quoted and not the fastest batch: of calls whose cost is
    /// another processor's doing, the fastest met none.
    pub fn quotes_median(self) -> bool {
        matches!(self, Self::MembarrierGlobal | Self::MembarrierPrivateRunning)
    }

    /// Bytes it moves, where it moves any.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::ReadByte | Self::WriteByte => Some(1),
            Self::ReadBulk | Self::WriteBulk => Some(65_536),
            _ => None,
        }
    }
}

/// A figure, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// In ns.
    Measured(Spread),
    /// Why not, in one line.
    NotMeasured(String),
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxFigure {
    /// What of.
    pub probe: Probe,
    /// What it was made on, e.g. a path, or what is peculiar about that (`a symbolic link`).
    pub on: Option<String>,
    /// How dear.
    pub figure: Figure,
}

/// A defence of the kernel that bears on the crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mitigation {
    /// Short name, e.g. `PTI`.
    pub name: String,
    /// Short state, e.g. `off`.
    pub state: String,
    /// What the kernel says, whole.
    pub told: String,
}

/// Whether the calls of this process already go through a seccomp filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// They don't.
    None,
    /// Strict mode.
    Strict,
    /// So many filters, 0 where the kernel doesn't tell the number (before 5.9).
    Filters(u32),
    /// The kernel doesn't say.
    Unknown,
}

/// Everything on the screen of `systoll box`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxReport {
    /// The box.
    pub host: Host,
    /// Defences that bear on the crossing; `None` where the kernel doesn't tell.
    pub mitigations: Option<Vec<Mitigation>>,
    /// Filters every figure below already includes.
    pub seccomp: Seccomp,
    /// The crossing at the start of the survey.
    pub crossing_before: Spread,
    /// The crossing at its end.
    pub crossing_after: Spread,
    /// One entry for each of [`Probe::ALL`], in that order.
    pub figures: Vec<BoxFigure>,
    /// What being watched adds to a call, by backend, in ns; filled by who can watch.
    pub watch_ns: Vec<(String, Spread)>,
}

impl BoxFigure {
    /// The figure to quote, in ns.
    pub fn quoted(&self) -> Option<f64> {
        match self.figure {
            Figure::Measured(spread) if self.probe.quotes_median() => Some(spread.median),
            Figure::Measured(spread) => Some(spread.min),
            Figure::NotMeasured(_) => None,
        }
    }
}

impl BoxReport {
    /// The figure of `probe`, where it was measured.
    pub fn spread(&self, probe: Probe) -> Option<Spread> {
        self.figures.iter().find(|f| f.probe == probe).and_then(|f| match f.figure {
            Figure::Measured(spread) => Some(spread),
            Figure::NotMeasured(_) => None,
        })
    }

    /// Whether the box did something else at the same time: the crossing's batches differ much,
    /// or start and end of the survey disagree by more than a tenth.
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
