//! Measures the cost of watching that clocks do not see, by twins: programs that run watched and unwatched in turns.
//!
//! One twin is a shell that starts small programs, another one forks copies of itself. They resemble the command's own
//! processes, and run on the same machine right after it. The time by which watched twins exceed unwatched ones, minus
//! the time of watching that their own clocks saw, is the time that no clock sees. From it follows the unseen time of
//! the command. Twins run after a command that started many programs, for a small part of its time.
//!
//! Two rounds start 96 programs and, where the command forks, make 288 copies: more than a build of 30 files does. The
//! figures are kept for a day, for later runs with the same twins, and measured anew if a run's starts took other
//! times: the machine is busier, or less busy.

use crate::backend::{HowToWatch, Launch};
use crate::error::Error;
use crate::inproc::cache::{Cache, Key, Kind};
use crate::inproc::monitor::results::own_cpu::{MeasuredTimes, UnseenTime};
use crate::inproc::monitor::sys;
use crate::signals::Signals;
use crate::table::{Image, RawRow, Table};
use crate::{launch, tracee};
use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use systoll_model::{EnvChange, Sysno};

/// Programs that a twin starts. The extra time of 16 watched programs is ten times the chance variation of an idle
/// machine.
const EACH: usize = 16;
/// Copies that a twin makes of itself. The first ones must allocate memory, which later ones inherit: with 16 copies,
/// each took a third more than each of a script's 1,000.
const COPIES: usize = 48;
/// Number of copies made by the command from which on a twin that makes copies is worth its time.
const FEWEST_COPIES: u64 = 250;
/// Number of starts from which on unseen costs matter: the unseen cost of 64 starts is some 10 ms.
const FEWEST: u64 = 64;
/// Time for twins, as a share of the command's time, and the number of rounds that are run in any case.
const SHARE: f64 = 0.05;
const FEWEST_ROUNDS: usize = 2;
/// Largest number of rounds of twins.
const ROUNDS: usize = 6;
/// Time for which later runs use the figures of a run's twins, seconds.
const KEPT_FOR: u64 = 24 * 60 * 60;
/// Factor by which the seen time of a start may differ from that of the run whose twins' figures are used. With both
/// processors taken it varies by more: times from figures of a moment before were a fifth to a third too high there.
const ALIKE: f64 = 1.15;
/// Relative uncertainty of the result for other programs than the twins start: loops of cat, grep, sed and echo under
/// the same shell differed by that much. The spread of the rounds is added to it.
const DOUBT: f64 = 0.25;

/// Shells that take `-c` and read no file of the user's before running it, once `ENV` and `BASH_ENV` are unset.
const SHELLS: [&str; 5] = ["sh", "dash", "bash", "ash", "busybox"];
/// Shell for commands whose programs were not started by one of [`SHELLS`]; and, for commands that fork, one that uses
/// `fork` where the first may use `vfork`.
const SHELL: &str = "/bin/sh";
const FORKING_SHELL: &str = "/bin/bash";
/// Utilities that with `--version` and no operand print their version, or say that they don't know the option.
const UTILITIES: [&str; 47] = [
    "awk",
    "basename",
    "cat",
    "chmod",
    "cp",
    "cut",
    "date",
    "dirname",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "gawk",
    "grep",
    "gzip",
    "head",
    "id",
    "ln",
    "ls",
    "mawk",
    "md5sum",
    "mkdir",
    "mv",
    "nproc",
    "od",
    "paste",
    "printf",
    "readlink",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "tail",
    "tar",
    "test",
    "touch",
    "tr",
    "true",
    "uname",
    "uniq",
    "wc",
    "xargs",
];
/// Programs used in place of any other; the first that exists is used.
const TRUE: [&str; 2] = ["/bin/true", "/usr/bin/true"];
/// Variables that twins inherit: a utility's start depends on them.
const KEPT: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "PATH"];

/// The twins to run after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Twins {
    shell: PathBuf,
    /// Programs that the first twin starts, one after the other; empty if the command started few.
    programs: Vec<PathBuf>,
    /// Shell of a second twin, which forks; `None` if there is none.
    copier: Option<PathBuf>,
    limit: Duration,
    /// Time of watching that clocks saw at each start of the command, ns.
    seen_each_ns: u64,
}

impl Twins {
    /// Returns the twins of a command; `None` if clocks miss little of the cost of watching.
    pub(crate) fn of(table: &Table, spent: &MeasuredTimes) -> Option<Self> {
        let copies = spent.copies >= FEWEST_COPIES;
        let starts = spent.starts > FEWEST;
        let kin = ProcessKinds::of(&table.images);
        (starts || copies).then(|| Self {
            shell: kin.shell(forks(table)),
            programs: if starts { kin.programs() } else { Vec::new() },
            copier: copies.then(|| kin.shell(false)),
            limit: Duration::from_nanos((spent.wall_ns as f64 * SHARE) as u64),
            seen_each_ns: spent.seen_ns() / spent.starts.max(1),
        })
    }

    /// Returns the unseen time by these twins: that of an earlier run, or that of twins that run now and are kept for
    /// later runs. `how` is the way in which `watched` watches. Returns `None` if a twin can't be run.
    pub(crate) fn kept_or_measured(
        &self,
        cache: &Cache,
        how: &HowToWatch,
        watched: impl Fn(&Launch) -> Result<MeasuredTimes, Error>,
    ) -> Option<UnseenTime> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let key = self.key(how.sampled_time);
        if let Some(kept) = cache.get(Kind::Twins, &key).and_then(|bytes| self.kept_at(&bytes, now)) {
            return Some(kept);
        }
        let measured = self.measure(watched)?;
        let UnseenTime { per_start_ns, per_copy_ns, doubt } = measured;
        let figures = [self.seen_each_ns as f64, per_start_ns, per_copy_ns, doubt].map(f64::to_le_bytes);
        cache.put(Kind::Twins, &key, &[&now.to_le_bytes()[..], &figures.concat()].concat());
        Some(measured)
    }

    /// Returns the figures of an entry unless it is older than [`KEPT_FOR`], of the future, or of a run whose starts took
    /// other times.
    fn kept_at(&self, entry: &[u8], now: u64) -> Option<UnseenTime> {
        let mut words = entry.as_chunks::<8>().0.iter().copied();
        let age = now.checked_sub(u64::from_le_bytes(words.next()?))?;
        let mut figure = || words.next().map(f64::from_le_bytes).filter(|figure| figure.is_finite() && *figure >= 0.0);
        let (then, this) = (figure()?, self.seen_each_ns as f64);
        let kept = UnseenTime { per_start_ns: figure()?, per_copy_ns: figure()?, doubt: figure()? };
        (age < KEPT_FOR && this <= then * ALIKE && then <= this * ALIKE).then_some(kept)
    }

    /// Returns the key of these twins' figures: programs, their shells and the way to watch.
    fn key(&self, sampled_time: bool) -> Key {
        let mut hash = DefaultHasher::new();
        // "per start": entries of earlier versions hold another figure.
        ("per start", &self.shell, &self.programs, &self.copier, sampled_time).hash(&mut hash);
        Cache::key_named(&format!("{:016x}", hash.finish()))
    }

    /// Runs the twins; `watched` watches a launch as the command was watched. Returns `None` if one can't be run.
    pub(crate) fn measure(&self, watched: impl Fn(&Launch) -> Result<MeasuredTimes, Error>) -> Option<UnseenTime> {
        let (mut starts, mut copies) = (Vec::new(), Vec::new());
        let began = Instant::now();
        for round in 0..ROUNDS {
            if round >= FEWEST_ROUNDS && began.elapsed() * (round as u32 + 1) / round as u32 > self.limit {
                break;
            }
            if !self.programs.is_empty() {
                starts.push(Excess::of(&of_shell(&self.shell, &self.starting()), &watched)?.per_start_ns()?);
            }
            if let Some(copier) = &self.copier {
                let per_start_ns = median(&starts).unwrap_or(0.0);
                copies
                    .push(Excess::of(&of_shell(copier, &"(:); ".repeat(COPIES)), &watched)?.per_copy_ns(per_start_ns)?);
            }
        }
        let or = |all: &[f64], else_: f64| median(all).unwrap_or(else_);
        let unmeasured = UnseenTime::UNMEASURED;
        Some(UnseenTime {
            per_start_ns: or(&starts, unmeasured.per_start_ns),
            per_copy_ns: or(&copies, unmeasured.per_copy_ns),
            doubt: DOUBT + unrest(&starts).max(unrest(&copies)),
        })
    }

    /// Returns the script that starts the programs. It ends with a built-in command, so that the shell execs none of
    /// them in its own place.
    fn starting(&self) -> String {
        let line = |program: &PathBuf| format!("{} --version; ", program.display());
        self.programs.iter().map(line).collect::<String>() + ":"
    }
}

/// Returns a launch of a shell with a script, with only those variables that a utility's start depends on.
fn of_shell(shell: &Path, script: &str) -> Launch {
    let gone = std::env::vars_os().map(|(name, _)| name).filter(|name| KEPT.iter().all(|kept| name != kept));
    let mut command: Vec<OsString> = vec![shell.into()];
    if shell.ends_with("busybox") {
        command.push("sh".into());
    }
    // Redirect the input first: twins must not read the command's.
    command.extend(["-c".into(), format!("exec </dev/null; {script}").into()]);
    Launch {
        command,
        env: gone.map(EnvChange::Remove).collect(),
        discard_output: true,
        cwd: Some("/".into()),
        ..Launch::default()
    }
}

/// Returns true if most processes were made by copying their maker's memory, as far as that shows without flags: by
/// `clone` or `fork`, not by `vfork` or `clone3`, which `posix_spawn` makes.
fn forks(table: &Table) -> bool {
    let made = |names: [&str; 2]| {
        let made_by = |row: &&RawRow| names.iter().any(|name| Sysno::from_name(name) == Some(row.syscall));
        table.rows.iter().filter(made_by).map(|row| row.counts.calls).fold(0u64, u64::saturating_add)
    };
    made(["clone", "fork"]) > made(["vfork", "clone3"])
}

/// Returns the largest distance of a figure from the median, relative to the median.
fn unrest(all: &[f64]) -> f64 {
    let Some(middle) = median(all).filter(|middle| *middle > 0.0) else { return 0.0 };
    all.iter().map(|one| (one - middle).abs() / middle).fold(0.0, f64::max)
}

fn median(all: &[f64]) -> Option<f64> {
    let mut all = all.to_vec();
    all.sort_unstable_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some(low.midpoint(*high))
}

/// Kinds of the command's processes, by the file that each ran.
struct ProcessKinds<'t> {
    /// Number of programs started of each file, most first.
    started: Vec<(&'t str, u64)>,
    /// Number of processes made by programs of each file, most first.
    makers: Vec<(&'t str, u64)>,
}

impl<'t> ProcessKinds<'t> {
    fn of(images: &'t [Image]) -> Self {
        let (mut started, mut makers) = (HashMap::<&str, u64>::new(), HashMap::<&str, u64>::new());
        for image in images {
            let Some(parent) = image.parent.and_then(|p| images.get(p.index())) else { continue };
            let n = image.instances.max(1);
            *makers.entry(&parent.exe).or_default() += n;
            if image.exe != parent.exe {
                *started.entry(&image.exe).or_default() += n;
            }
        }
        let most_first = |counts: HashMap<&'t str, u64>| {
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
            counts
        };
        Self { started: most_first(started), makers: most_first(makers) }
    }

    /// Returns the shell that made most processes, if a shell did; otherwise one that makes processes in the same way:
    /// by copying the maker's memory if `forks`.
    fn shell(&self, forks: bool) -> PathBuf {
        let is_shell = |file: &&Path| is_one_of(file, &SHELLS);
        let maker = self.makers.first().map(|(exe, _)| Path::new(*exe)).filter(is_shell);
        let like = Some(Path::new(FORKING_SHELL)).filter(|_| forks).filter(is_shell);
        maker.or(like).unwrap_or(Path::new(SHELL)).to_owned()
    }

    /// Returns the programs to start, of the kinds that the command started, in proportion; a program that does nothing
    /// replaces unknown ones.
    fn programs(&self) -> Vec<PathBuf> {
        let all = self.started.iter().map(|(_, n)| n).sum::<u64>();
        let other = TRUE.iter().map(Path::new).find(|file| file.is_file());
        let at = |place: u64| {
            let mut left = place;
            let exe = self.started.iter().find(|(_, n)| left.checked_sub(*n).map(|rest| left = rest).is_none());
            let exe = exe.map(|(exe, _)| Path::new(*exe)).filter(|exe| is_one_of(exe, &UTILITIES));
            exe.or(other).map(Path::to_owned)
        };
        // Take the program in the middle of each part of the sorted starts.
        (0..EACH as u64).filter_map(|nth| at(all * (2 * nth + 1) / (2 * EACH as u64))).collect()
    }
}

/// Returns true if a file has one of these names and lies where no other user can change it.
fn is_one_of(file: &Path, names: &[&str]) -> bool {
    let named = file.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains(&name));
    let plain =
        file.to_str().is_some_and(|text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b)));
    let folder = file.parent().is_some_and(|folder| folder == Path::new("/bin") || folder == Path::new("/usr/bin"));
    named && plain && folder && systoll_trust::check(file).is_ok()
}

/// Times of one twin, watched and unwatched.
struct Excess {
    /// Times of the watched twin.
    spent: MeasuredTimes,
    /// Time by which the watched twin exceeds the unwatched one, without the time of watching that clocks saw, ns.
    ns: f64,
}

impl Excess {
    fn of(launch: &Launch, watched: &impl Fn(&Launch) -> Result<MeasuredTimes, Error>) -> Option<Self> {
        let before = unwatched_ns(launch)?;
        let spent = watched(launch).ok()?;
        let after = unwatched_ns(launch)?;
        let ns = spent.without_seen_ns() as f64 - before.midpoint(after) as f64;
        Some(Self { spent, ns })
    }

    /// Computes [`UnseenTime::per_start_ns`] from this twin.
    fn per_start_ns(&self) -> Option<f64> {
        let starts = self.spent.later_starts();
        (starts > 0).then(|| (self.ns / starts as f64).max(0.0))
    }

    /// Computes [`UnseenTime::per_copy_ns`] from this twin.
    fn per_copy_ns(&self, per_start_ns: f64) -> Option<f64> {
        let starts = per_start_ns * self.spent.later_starts() as f64;
        (self.spent.copies > 0).then(|| ((self.ns - starts) / self.spent.copies as f64).max(0.0))
    }
}

/// Runs a launch unwatched. Returns the processor time, ns, that it and its descendants took from its exec on.
fn unwatched_ns(launch: &Launch) -> Option<u64> {
    let children = || {
        let (user, sys) = sys::children_times();
        user + sys
    };
    let before = children();
    let mut held =
        launch::prepare(launch).ok()?.start(&Signals::of(&launch.how, launch.grace).ok()?.original_mask()).ok()?;
    let used = sys::process_cpu(held.pid).unwrap_or(0);
    let released = held.release();
    tracee::wait_for(held.pid, true);
    released.ok()?;
    Some(children().saturating_sub(before).saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ImageId;

    fn image(exe: &str, parent: Option<usize>) -> Image {
        Image { exe: exe.into(), parent: parent.map(ImageId::at), instances: 1, ..Image::default() }
    }

    #[test]
    fn twins_are_of_the_kinds_that_the_commands_processes_were() {
        // A shell with 10 copies, of which nine became programs.
        let mut images = vec![image("/bin/sh", None)];
        images.extend((0..10).map(|_| image("/bin/sh", Some(0))));
        images.extend((1..7).map(|maker| image("/usr/bin/expr", Some(maker))));
        images.extend((7..10).map(|maker| image("/opt/of/mine", Some(maker))));
        let kin = ProcessKinds::of(&images);
        assert_eq!((kin.started[0], kin.makers[0]), (("/usr/bin/expr", 6), ("/bin/sh", 19)));
        assert_eq!(kin.shell(true), Path::new("/bin/sh"));
        let no_shells = ProcessKinds { makers: vec![("/opt/of/mine", 19)], ..kin };
        assert_eq!(no_shells.shell(false), Path::new(SHELL));
        let kin = no_shells;
        let programs = kin.programs();
        let of = |name: &str| programs.iter().filter(|p| p.ends_with(name)).count();
        // Six of nine programs are a known utility; `true` replaces the others.
        assert_eq!((programs.len(), of("expr"), of("true"), of("mine")), (EACH, 11, 5, 0));
    }

    #[test]
    fn twins_run_utilities_only_from_system_folders() {
        let folder = tempfile::tempdir().unwrap();
        let mine = folder.path().join("sed");
        std::fs::write(&mine, "").unwrap();
        assert!(!is_one_of(&mine, &UTILITIES));
        assert!(!is_one_of(Path::new("/bin/../tmp/sed"), &UTILITIES));
        assert!(!is_one_of(Path::new("/bin/sh"), &UTILITIES));
    }

    #[test]
    fn figures_of_twins_are_kept_for_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, how) = (Cache::at(folder.path(), 1 << 20), HowToWatch::default());
        let twins = |shell: &str, each: &str| Twins {
            shell: shell.into(),
            programs: vec![each.into(); EACH],
            copier: None,
            limit: Duration::ZERO,
            seen_each_ns: 1000,
        };
        let (one, other) = (twins("/bin/sh", "/bin/true"), twins("/bin/sh", "/bin/cat"));
        let kept = UnseenTime { per_start_ns: 5000.0, per_copy_ns: 7.0, doubt: 0.25 };
        let entry = |made: u64| {
            let figures = [1000.0, kept.per_start_ns, kept.per_copy_ns, kept.doubt].map(f64::to_le_bytes);
            [&made.to_le_bytes()[..], &figures.concat()].concat()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(cache.put(Kind::Twins, &one.key(false), &entry(now)));
        let fails = |_: &Launch| Err(Error::refused(systoll_model::BackendKind::Inproc, "no twin may run".into()));
        assert_eq!(one.kept_or_measured(&cache, &how, fails), Some(kept));
        let sampled = HowToWatch { sampled_time: true, ..how.clone() };
        for (twins, how) in [(&other, &how), (&one, &sampled)] {
            assert_eq!(twins.kept_or_measured(&cache, how, fails), None, "these twins have no figures yet");
        }
        assert_eq!(one.kept_at(&entry(100), 100 + KEPT_FOR - 1), Some(kept));
        assert_eq!([one.kept_at(&entry(100), 100 + KEPT_FOR), one.kept_at(&entry(100), 99)], [None, None]);
        assert_eq!([one.kept_at(&[], 100), one.kept_at(&entry(100)[..32], 100)], [None, None]);
        let at_other_times = [800, 900, 1100, 1200].map(|seen_each_ns| Twins { seen_each_ns, ..one.clone() });
        assert_eq!(at_other_times.map(|run| run.kept_at(&entry(100), 100).is_some()), [false, true, true, false]);
    }

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!([unrest(&[]), unrest(&[2.0]), unrest(&[1.0, 3.0]), unrest(&[0.0])], [0.0, 0.0, 0.5, 0.0]);
        assert_eq!(
            [median(&[]), median(&[3.0]), median(&[4.0, 1.0, 2.0]), median(&[1.0, 2.0])].map(|m| m.map(|m| m * 2.0)),
            [None, Some(6.0), Some(4.0), Some(3.0)]
        );
    }
}
