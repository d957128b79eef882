//! Estimates the processor time that the command and its descendants would have taken unwatched: a figure and its
//! interval.
//!
//! The time that threads spent on asking, on mapping our memory and on counting is measured where it is spent. No clock
//! of the run separates the rest from the program's own work: an exec that stops, larger page tables that are copied
//! and freed, losses from caches. [`UnseenTime`] measures that by twins, programs that run watched and unwatched in
//! turns after the command has ended ([`super::twins`]).

use crate::cpu::{IMPOSSIBLE, not_below};
use crate::inproc::monitor::results::cpu_time::ObserverTime;
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::session::DraftRecording;
use crate::procfs::Schedstat;
use systoll_model::{Problem, ProblemKind, Recording};

/// Largest distance of the interval's ends from the figure for which the figure is shown: a share of the figure, plus a
/// time, ns, for programs that end at once.
const TOLD_WITHIN: f64 = 0.5;
const SMALL_NS: u64 = 300_000;
/// Relative uncertainty of the time that counting adds to a call.
const ADDED_DOUBT: f64 = 0.1;
/// Cost of the slot's pages for each thread besides a process's first, ns: 16 us (5,000 threads) to 46 us (30,000) by
/// their unwatched twins. It is uncertain by as much.
const THREAD_NS: f64 = 25_000.0;
/// Greatest age of the last reading of a process that has not noted its time, ns.
const ASKED_AGO_NS: u64 = 100_000_000;

/// Time of watching that no clock of the run sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnseenTime {
    /// Unseen time for each program started after the first, ns. It is the same for the first twenty starts of a script
    /// and for three hundred, while the time that clocks see falls by half, as each file is read once.
    pub(crate) per_start_ns: f64,
    /// Unseen time for each process that is forked and executes no other program, ns.
    pub(crate) per_copy_ns: f64,
    /// Relative uncertainty of both figures.
    pub(crate) doubt: f64,
}

impl UnseenTime {
    /// Estimates for runs without twins. Measured on loops of 20 to 300 starts under dash, bash and Python: 0.3 ms
    /// (true) to 1.2 ms (sed under bash) a start, 55 us (a small C program) to 100 us (bash) a copy.
    pub(crate) const UNMEASURED: Self = Self { per_start_ns: 700_000.0, per_copy_ns: 65_000.0, doubt: 0.75 };
}

/// Measured processor times of a run, and numbers of events that cost time unseen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MeasuredTimes {
    /// Time of all processes that were waited for, by the kernel.
    pub(crate) waited_for_ns: u64,
    /// Time of all processes by their own notes, without the time for asking and mapping, ns.
    pub(crate) said_ns: u64,
    /// Time that counting added to calls, ns.
    pub(crate) added_ns: u64,
    /// Time that new programs spent on mapping our memory, ns.
    pub(crate) starts_ns: u64,
    /// Processor time that threads spent on asking and on writing windows.
    pub(crate) asked: ObserverTime,
    /// Number of programs started in the run.
    pub(crate) starts: u64,
    /// Number of processes that were forked and executed no other program.
    pub(crate) copies: u64,
    /// Number of threads besides the first of each process.
    pub(crate) threads: u64,
    /// Cost of the calls, ns.
    pub(crate) toll_ns: u64,
    /// Processor time of the launcher during the run, ns.
    pub(crate) launcher_ns: u64,
    /// Time for which the launcher was ready without a processor, for each ns of its processor time.
    pub(crate) queued: f64,
    /// Elapsed time of the run, as watched, ns.
    pub(crate) wall_ns: u64,
}

impl MeasuredTimes {
    /// Sums up a run of `wall_ns`; `children` is the user and system time of all children that were waited for.
    pub(crate) fn of(draft: &DraftRecording, root: &RootProcess, wall_ns: u64, children: (u64, u64)) -> Self {
        let (stats, table) = (&draft.stats, &draft.table);
        let before = stats.facts.children_before;
        let waited_for = children.0.saturating_sub(before.0) + children.1.saturating_sub(before.1);
        let images = table.images.iter().fold(0u64, |sum, i| sum.saturating_add(i.instances.max(1)));
        let attached = root.attached;
        // Each image is the result of a fork or an exec, or ran before the run. Each exec but the first was made by a
        // forked process.
        let forks =
            images.saturating_sub(stats.starts).saturating_sub(attached.map_or(0, |attached| attached.processes));
        let added_ns = (stats.around.added_ns * table.calls as f64) as u64;
        let said = table.images.iter().fold(0u64, |sum, i| sum.saturating_add(i.cpu_ns));
        let mut asked = stats.counted.asked;
        if root.cut_short || attached.is_some_and(|attached| attached.used.is_some()) {
            // Processes were read when they were left, so none is missing.
            asked.unsaid = 0;
        }
        Self {
            // Attached processes still run, so the kernel does not report their time as children's.
            waited_for_ns: if attached.is_some() { 0 } else { waited_for.saturating_sub(root.before_exec_ns) },
            said_ns: said.saturating_sub(added_ns),
            added_ns,
            starts_ns: stats.starts_ns,
            asked,
            starts: stats.starts,
            copies: forks.saturating_sub(stats.starts.saturating_sub(1)),
            threads: table.threads_in_all().saturating_sub(images),
            launcher_ns: stats.launcher_ns,
            queued: queued(),
            toll_ns: table.rows.iter().filter_map(|r| r.counts.toll_ns).fold(0, u64::saturating_add),
            wall_ns,
        }
    }

    /// Returns the time of watching that clocks saw, without counting, ns.
    pub(crate) fn seen_ns(&self) -> u64 {
        self.starts_ns.saturating_add(self.asked.ns)
    }

    /// Returns the number of programs started after the first, whose cold start is not typical of later ones.
    pub(crate) fn later_starts(&self) -> u64 {
        self.starts.saturating_sub(1)
    }

    /// Returns the time of the processes that were waited for, without the time of watching that clocks saw, ns.
    pub(crate) fn without_seen_ns(&self) -> u64 {
        self.waited_for_ns.saturating_sub(self.added_ns.saturating_add(self.seen_ns()))
    }

    /// Returns the elapsed time by which watching prolonged later starts and copies in a run that took `own` processor time,
    /// ns: the same share of the elapsed time as of the processor time of the command and the launcher, and no more than that
    /// needed, with the time for which it had no processor. A bash script of 3,009 processes is left with 2.7 of 3.3 s, a Perl
    /// script of 2,001 with 3.2 of 3.3 s; beside two busy loops with 6.7 of 5.9 s and 7.3 of 7.9 s (one run each).
    pub(crate) fn longer_ns(&self, own: OwnCpu) -> u64 {
        if self.later_starts() + self.copies == 0 {
            return 0;
        }
        let all = own.total_ns.saturating_add(self.launcher_ns);
        let ours = all.saturating_sub(own.own_ns.unwrap_or(0)) as f64;
        (ours * (1.0 + self.queued)).min(ours / all.max(1) as f64 * self.wall_ns as f64) as u64
    }

    /// Returns the estimate of the command's own processor time.
    pub(crate) fn own(&self, beside: UnseenTime) -> OwnCpu {
        let threads = THREAD_NS * self.threads as f64;
        let starts_and_copies =
            beside.per_start_ns * self.later_starts() as f64 + beside.per_copy_ns * self.copies as f64;
        let unseen = starts_and_copies + threads;
        let (added, starts) = (self.added_ns as f64 * ADDED_DOUBT, self.starts_ns as f64 / 2.0);
        // The uncertainty of mapping memory is that of one start: if only one program starts, half of it may be the
        // program's own.
        let starts = starts / self.starts.max(1) as f64;
        let doubt = (starts_and_copies * beside.doubt + threads + added + starts) as u64;
        let mut doubt_ns = doubt.saturating_add(self.asked.doubt_ns);
        let less = |ns: u64| (ns as f64 - unseen).max(0.0) as u64;
        let mut own_ns = less(self.without_seen_ns());
        let mut total_ns = self.waited_for_ns;
        // Daemons and running processes are not waited for; they have noted their time themselves.
        let said = less(self.said_ns);
        if said > own_ns {
            let ours = self.added_ns.saturating_add(self.seen_ns()).saturating_add(unseen as u64);
            total_ns = total_ns.max(said.saturating_add(ours));
            own_ns = said;
            doubt_ns = doubt_ns.saturating_add(self.asked.unsaid.saturating_mul(ASKED_AGO_NS));
        }
        OwnCpu { total_ns, own_ns: not_below(own_ns, self.toll_ns), toll_ns: self.toll_ns, doubt_ns }
    }
}

/// Returns [`MeasuredTimes::queued`] of this thread, which is the launcher; 0 if the kernel does not tell.
fn queued() -> f64 {
    let stat = Schedstat::open(std::process::id() as i32, nix::unistd::gettid().as_raw());
    let times = stat.and_then(|stat| stat.read());
    times.map_or(0.0, |times| times.queued_ns as f64 / times.cpu_ns.max(1) as f64)
}

/// An estimate of the command's own processor time, and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OwnCpu {
    /// Processor time measured for the command, ns.
    total_ns: u64,
    /// The command's own part of that time; `None` if it is less than its calls alone cost.
    own_ns: Option<u64>,
    /// Cost of the command's calls, a lower bound, ns.
    toll_ns: u64,
    doubt_ns: u64,
}

impl OwnCpu {
    /// Returns the estimate if it is certain enough.
    pub(crate) fn known(&self) -> Option<u64> {
        // The time is no more than the measured time, and no less than the calls' toll.
        let below = |own: u64| own.saturating_sub(self.toll_ns).min(self.doubt_ns);
        let above = |own: u64| self.total_ns.saturating_sub(own).min(self.doubt_ns);
        let good = |own: &u64| below(*own).max(above(*own)) <= (*own as f64 * TOLD_WITHIN) as u64 + SMALL_NS;
        self.own_ns.filter(|own| *own > 0).filter(good)
    }

    /// Returns the lower bound of the estimate.
    fn least(&self) -> Option<u64> {
        self.known().map(|own| own.saturating_sub(self.doubt_ns).max(self.toll_ns).min(own))
    }

    /// Returns the upper bound of the estimate.
    pub(crate) fn most(&self) -> u64 {
        self.own_ns.map_or(self.total_ns, |own| own.saturating_add(self.doubt_ns).min(self.total_ns.max(own)))
    }

    /// Writes the estimate into a recording; if it is unknown, adds a problem that says why.
    pub(crate) fn tell(&self, recording: &mut Recording) {
        let header = &mut recording.header;
        header.own_cpu_ns = self.known();
        header.own_cpu_least_ns = self.least();
        header.own_cpu_most_ns = Some(self.most());
        if let [only] = recording.processes.as_mut_slice() {
            only.cpu_ns = self.known();
        }
        recording.problems.extend(self.problem());
    }

    /// Returns the reason why the estimate is unknown; `None` if it is known.
    fn problem(&self) -> Option<Problem> {
        if self.known().is_some() {
            return None;
        }
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
        let why = match self.own_ns {
            None => IMPOSSIBLE.to_owned(),
            Some(0) => "none was measured".to_owned(),
            Some(own) => format!(
                "too short to separate it from systoll's ({} measured; systoll's {}, to within {})",
                ms(self.total_ns),
                ms(self.total_ns.saturating_sub(own)),
                ms(self.doubt_ns.min(self.total_ns))
            ),
        };
        Some(Problem::new(ProblemKind::Price, format!("the command's own CPU time is unknown: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn told(own: OwnCpu) -> Recording {
        let mut recording = Recording::default();
        own.tell(&mut recording);
        recording
    }

    #[test]
    fn doubtful_or_impossible_times_are_unknown() {
        let own = |own_ns, doubt_ns| OwnCpu { total_ns: 30 * MS, own_ns, toll_ns: 4 * MS, doubt_ns };
        // A figure of 15 ms that may be off by 2 is good enough: it is shown with its interval.
        let header = told(own(Some(15 * MS), 2 * MS)).header;
        assert_eq!(header.own_cpu_ns, Some(15 * MS));
        assert_eq!((header.own_cpu_least_ns, header.own_cpu_most_ns), (Some(13 * MS), Some(17 * MS)));
        assert_eq!(told(own(Some(15 * MS), 2 * MS)).problems, []);
        // The lower bound is no less than the cost of the calls.
        assert_eq!(told(own(Some(5 * MS), 2 * MS)).header.own_cpu_least_ns, Some(4 * MS));
        for unknown in [own(Some(10 * MS), 6 * MS), own(None, 0), own(Some(0), 0)] {
            let recording = told(unknown);
            assert_eq!((recording.header.own_cpu_ns, recording.header.own_cpu_least_ns), (None, None));
            assert!(recording.problems[0].text.contains("CPU time is unknown"), "{unknown:?}");
        }
        assert_eq!([own(Some(10 * MS), 2 * MS).most(), own(None, 0).most()], [12 * MS, 30 * MS]);
    }

    #[test]
    fn unseen_time_is_subtracted_per_start_and_copy() {
        let asked = ObserverTime { ns: 500 * MS, ..ObserverTime::default() };
        let spent = MeasuredTimes {
            waited_for_ns: 3_000 * MS,
            starts: 1_001,
            copies: 1_000,
            asked,
            ..MeasuredTimes::default()
        };
        let beside = UnseenTime { per_start_ns: 250_000.0, per_copy_ns: 100_000.0, doubt: 0.25 };
        let own = spent.own(beside);
        // The result is 3,000 ms - 500, minus 1,000 later starts of 0.25 ms, minus 1,000 copies of 0.1 ms.
        assert_eq!(own.known().map(|ns| ns / MS), Some(2_150));
        assert_eq!(own.doubt_ns / MS, 87);
        let longer = |wall_ms, launcher_ms| {
            MeasuredTimes { wall_ns: wall_ms * MS, launcher_ns: launcher_ms * MS, queued: 0.5, ..spent }.longer_ns(own)
                / MS
        };
        // 2,150 of 4,300 ms are the command's own. A run that sleeps was prolonged by no more than the rest needed.
        assert_eq!([longer(4_000, 1_300), longer(90_000, 1_300)], [2_000, 3_225]);
        // For one program alone, everything spent on asking was seen.
        let alone = MeasuredTimes {
            waited_for_ns: 20 * MS,
            starts: 1,
            asked: ObserverTime { ns: 5 * MS, ..asked },
            ..MeasuredTimes::default()
        };
        assert_eq!(alone.own(UnseenTime::UNMEASURED).known(), Some(15 * MS));
    }
}
