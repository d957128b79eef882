//! What watching takes beside what clocks see, by twins: programs that run watched and unwatched in turns.
//!
//! A shell that starts some small programs, and one that forks copies of itself: of the kinds that the command's own
//! processes were, on this box, in the minute of the run. What the watched ones used more than the unwatched ones, less
//! what their own clocks saw of watching, is what no clock sees; it is laid on what the command's clocks saw. Run when a
//! command has ended that started many programs, for a small part of the time it took.

use crate::backend::Launch;
use crate::error::Error;
use crate::inproc::monitor::results::own_cpu::{Beside, Spent};
use crate::inproc::monitor::sys;
use crate::launch;
use crate::signals::Signals;
use crate::table::{Image, RawRow, Table};
use crate::tracee;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use systoll_model::{EnvChange, Sysno};

/// Programs that a twin starts: what 16 take more watched is told apart from what a box that is at rest does by chance (a
/// tenth of it).
const EACH: usize = 16;
/// Copies that a twin makes of itself: the first ones have memory of their own to be got, later ones that of those before,
/// so that 16 took a third more each than the 1,000 of a script.
const COPIES: usize = 48;
/// As many copies of the command as make these worth while.
const FEWEST_COPIES: u64 = 250;
/// As many starts as make what clocks don't see matter: of 64 that is some 10 ms.
const FEWEST: u64 = 64;
/// What twins may take, as a part of the command's time; two rounds they always have.
const SHARE: f64 = 0.05;
const FEWEST_ROUNDS: usize = 2;
/// Rounds at most.
const ROUNDS: usize = 6;
/// How far what twins tell may be off for other programs than they start, as a part of it: loops of cat, grep, sed and
/// echo under the same shell differed so. How far rounds lie from their middle comes on top.
const DOUBT: f64 = 0.25;

/// Shells that take `-c` and read no file of the user's before they do what it says, once `ENV` and `BASH_ENV` are gone.
const SHELLS: [&str; 5] = ["sh", "dash", "bash", "ash", "busybox"];
/// The shell where the command's own programs were not started by one of those; and one that forks where the first may
/// do with `vfork`, for commands that fork.
const SHELL: &str = "/bin/sh";
const FORKING_SHELL: &str = "/bin/bash";
/// Utilities of POSIX that read and print: with `--version` they print that, or say that they don't know it.
const UTILITIES: [&str; 27] = [
    "awk", "basename", "cat", "cut", "date", "dirname", "echo", "env", "expr", "false", "grep", "gawk", "head", "id",
    "ls", "mawk", "printf", "sed", "seq", "sort", "tail", "test", "tr", "true", "uname", "uniq", "wc",
];
/// The program where the command started others: the first that is there.
const TRUE: [&str; 2] = ["/bin/true", "/usr/bin/true"];
/// Variables that twins have as the command does: what a utility's start costs depends on them.
const KEPT: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "PATH"];

/// What is to be run as twins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Twins {
    shell: PathBuf,
    /// What the first twin starts, one after the other; none where the command started few.
    programs: Vec<PathBuf>,
    /// The shell of a second one, which forks, if there is one.
    copier: Option<PathBuf>,
    limit: Duration,
}

impl Twins {
    /// The twins of a command that took `wall_ns`; `None` where what clocks don't see of watching it is little.
    pub(crate) fn of(table: &Table, spent: &Spent, wall_ns: u64) -> Option<Self> {
        let copies = spent.copies >= FEWEST_COPIES;
        let starts = spent.starts > FEWEST;
        let kin = Kin::of(&table.images);
        (starts || copies).then(|| Self {
            shell: kin.shell(forks(table)),
            programs: if starts { kin.programs() } else { Vec::new() },
            copier: copies.then(|| kin.shell(false)),
            limit: Duration::from_nanos((wall_ns as f64 * SHARE) as u64),
        })
    }

    /// Runs them: `watched` watches a launch as the command was watched. `None` where one can't be run.
    pub(crate) fn measure(&self, watched: impl Fn(&Launch) -> Result<Spent, Error>) -> Option<Beside> {
        let (mut starts, mut copies) = (Vec::new(), Vec::new());
        let began = Instant::now();
        for round in 0..ROUNDS {
            if round >= FEWEST_ROUNDS && began.elapsed() * (round as u32 + 1) / round as u32 > self.limit {
                break;
            }
            if !self.programs.is_empty() {
                starts.push(Excess::of(&of_shell(&self.shell, &self.starting()), &watched)?.per_seen()?);
            }
            if let Some(copier) = &self.copier {
                let per_seen = median(&starts).unwrap_or(0.0);
                copies.push(Excess::of(&of_shell(copier, &"(:); ".repeat(COPIES)), &watched)?.per_copy_ns(per_seen)?);
            }
        }
        let or = |all: &[f64], else_: f64| median(all).unwrap_or(else_);
        let unmeasured = Beside::UNMEASURED;
        Some(Beside {
            per_seen: or(&starts, unmeasured.per_seen),
            per_copy_ns: or(&copies, unmeasured.per_copy_ns),
            doubt: DOUBT + unrest(&starts).max(unrest(&copies)),
        })
    }

    /// The script that starts programs. It ends with a command of the shell's own, so that none takes its place.
    fn starting(&self) -> String {
        let line = |program: &PathBuf| format!("{} --version; ", program.display());
        self.programs.iter().map(line).collect::<String>() + ":"
    }
}

/// A shell with a script, and no more of this process's surroundings than a utility's start depends on.
fn of_shell(shell: &Path, script: &str) -> Launch {
    let gone = std::env::vars_os().map(|(name, _)| name).filter(|name| KEPT.iter().all(|kept| name != kept));
    let mut command: Vec<OsString> = vec![shell.into()];
    if shell.ends_with("busybox") {
        command.push("sh".into());
    }
    // What the command may read is not theirs.
    command.extend(["-c".into(), format!("exec </dev/null; {script}").into()]);
    Launch {
        command,
        env: gone.map(EnvChange::Remove).collect(),
        discard_output: true,
        cwd: Some("/".into()),
        ..Launch::default()
    }
}

/// Whether most processes were made by copying their makers' memory: `posix_spawn` is `clone3` or `vfork` to the kernel, as
/// far as can be told without flags.
fn forks(table: &Table) -> bool {
    let made = |names: [&str; 2]| {
        let made_by = |row: &&RawRow| names.iter().any(|name| Sysno::from_name(name) == Some(row.syscall));
        table.rows.iter().filter(made_by).map(|row| row.counts.calls).fold(0u64, u64::saturating_add)
    };
    made(["clone", "fork"]) > made(["vfork", "clone3"])
}

/// How far figures of the same lie from their middle at most, as a part of that.
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

/// What the command's processes were, by the file that each ran.
struct Kin<'t> {
    /// How many programs were started of a file, most first.
    started: Vec<(&'t str, u64)>,
    /// How many processes came of ones of a file, most first.
    makers: Vec<(&'t str, u64)>,
}

impl<'t> Kin<'t> {
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

    /// The shell that made most of them, if a shell made most; else one that makes them as they were made: `forks`, by
    /// copying the maker's memory.
    fn shell(&self, forks: bool) -> PathBuf {
        let is_shell = |file: &&Path| is_one_of(file, &SHELLS);
        let maker = self.makers.first().map(|(exe, _)| Path::new(*exe)).filter(is_shell);
        let like = Some(Path::new(FORKING_SHELL)).filter(|_| forks).filter(is_shell);
        maker.or(like).unwrap_or(Path::new(SHELL)).to_owned()
    }

    /// Programs of the kinds that were started, as often as each was, others stood for by one that does nothing.
    fn programs(&self) -> Vec<PathBuf> {
        let all = self.started.iter().map(|(_, n)| n).sum::<u64>();
        let other = TRUE.iter().map(Path::new).find(|file| file.is_file());
        let at = |place: u64| {
            let mut left = place;
            let exe = self.started.iter().find(|(_, n)| left.checked_sub(*n).map(|rest| left = rest).is_none());
            let exe = exe.map(|(exe, _)| Path::new(*exe)).filter(|exe| is_one_of(exe, &UTILITIES));
            exe.or(other).map(Path::to_owned)
        };
        // In the middle of each part of the count.
        (0..EACH as u64).filter_map(|nth| at(all * (2 * nth + 1) / (2 * EACH as u64))).collect()
    }
}

/// Whether a file has one of these names and lies where no other user can change it.
fn is_one_of(file: &Path, names: &[&str]) -> bool {
    let named = file.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains(&name));
    let plain =
        file.to_str().is_some_and(|text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b)));
    let folder = file.parent().is_some_and(|folder| folder == Path::new("/bin") || folder == Path::new("/usr/bin"));
    named && plain && folder && systoll_trust::check(file).is_ok()
}

/// One twin, watched and unwatched.
struct Excess {
    /// What the watched one used.
    spent: Spent,
    /// What it used more than the unwatched one, without what clocks saw of watching, ns.
    ns: f64,
}

impl Excess {
    fn of(launch: &Launch, watched: &impl Fn(&Launch) -> Result<Spent, Error>) -> Option<Self> {
        let before = unwatched_ns(launch)?;
        let spent = watched(launch).ok()?;
        let after = unwatched_ns(launch)?;
        let ns = spent.without_seen_ns() as f64 - before.midpoint(after) as f64;
        Some(Self { spent, ns })
    }

    /// See [`Beside::per_seen`].
    fn per_seen(&self) -> Option<f64> {
        let seen = self.spent.seen_of_later_starts_ns();
        (seen > 0.0).then(|| (self.ns / seen).max(0.0))
    }

    /// See [`Beside::per_copy_ns`].
    fn per_copy_ns(&self, per_seen: f64) -> Option<f64> {
        let starts = per_seen * self.spent.seen_of_later_starts_ns();
        (self.spent.copies > 0).then(|| ((self.ns - starts) / self.spent.copies as f64).max(0.0))
    }
}

/// Runs a launch unwatched; the processor time that it and its descendants took from its exec on, ns.
fn unwatched_ns(launch: &Launch) -> Option<u64> {
    let children = || {
        let (user, sys) = sys::children_times();
        user + sys
    };
    let before = children();
    let mut held = launch::prepare(launch).ok()?.start(&Signals::of(launch).ok()?.original_mask()).ok()?;
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
        // A shell of 10 copies, nine of which became programs.
        let mut images = vec![image("/bin/sh", None)];
        images.extend((0..10).map(|_| image("/bin/sh", Some(0))));
        images.extend((1..7).map(|maker| image("/usr/bin/expr", Some(maker))));
        images.extend((7..10).map(|maker| image("/opt/of/mine", Some(maker))));
        let kin = Kin::of(&images);
        assert_eq!((kin.started[0], kin.makers[0]), (("/usr/bin/expr", 6), ("/bin/sh", 19)));
        assert_eq!(kin.shell(true), Path::new("/bin/sh"));
        let no_shells = Kin { makers: vec![("/opt/of/mine", 19)], ..kin };
        assert_eq!(no_shells.shell(false), Path::new(SHELL));
        let kin = no_shells;
        let programs = kin.programs();
        let of = |name: &str| programs.iter().filter(|p| p.ends_with(name)).count();
        // Six of nine; what is no utility is stood for.
        assert_eq!((programs.len(), of("expr"), of("true"), of("mine")), (EACH, 11, 5, 0));
    }

    #[test]
    fn a_file_of_a_utilitys_name_elsewhere_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let mine = folder.path().join("sed");
        std::fs::write(&mine, "").unwrap();
        assert!(!is_one_of(&mine, &UTILITIES));
        assert!(!is_one_of(Path::new("/bin/../tmp/sed"), &UTILITIES));
        assert!(!is_one_of(Path::new("/bin/sh"), &UTILITIES));
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
