//! Detects files that a program makes and removes by their names, again and again: those that it writes and reads back,
//! which its own memory would have held, and those that it makes to hold a lock. A file of which only one descriptor is
//! used is a line of the table of things ([`super::made_again`]).

use super::renamed::folder;
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Effect, IN_MEMORY, SCRATCH, Semantics, Way, removes_name};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use systoll_model::constants::O_EXCL;
use systoll_model::{Errno, Recording, Row};

/// Largest content of a file, bytes, that the program's own memory would have held as well.
const HELD: u64 = 64 << 10;
/// Largest content of a lock file, bytes: the number of its maker, and perhaps a host's name.
const NOTE: u64 = 256;
/// Largest number of folders, and of lock files, remembered.
const REMEMBERED: usize = 1 << 10;

/// Claims all calls on such files but the first.
pub(super) struct Scratch {
    /// Folders of files read back, and paths of lock files, that earlier windows show, by process and use.
    known: Set<(u32, Use, String)>,
    /// True if somebody found a file that was to be new: a lock that another holds.
    is_contended: bool,
}

/// The use of a file that its maker could have done without.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    /// It was read back by its maker, and nothing of it remains.
    Scratch,
    /// All that it did was to be there: for the others who want it to be new.
    Lock,
}

/// The life of a file that was made in the window.
#[derive(Default)]
struct Life {
    path: String,
    calls: Vec<usize>,
    /// Number of descriptors that are open on it.
    open: usize,
    openings: usize,
    wrote: u64,
    read_back: bool,
    removed: bool,
    /// True if the file had to be new.
    exclusive: bool,
    /// True if another process may have used the file.
    shared: bool,
}

impl Life {
    /// Returns the use of the file if its life is over.
    fn was(&self) -> Option<Use> {
        let is_gone = self.removed && self.open == 0;
        let is_own = self.read_back && (1..=HELD).contains(&self.wrote) && self.openings > 1;
        let unread = self.exclusive && !self.read_back && self.openings == 1 && self.wrote <= NOTE;
        match () {
            () if is_gone && is_own => Some(Use::Scratch),
            () if is_gone && unread => Some(Use::Lock),
            () => None,
        }
    }
}

/// The files of a window.
#[derive(Default)]
struct Lives {
    all: Vec<Life>,
    /// By path: the index in `all` of a file that is not removed.
    named: Map<String, usize>,
    /// By descriptor: the index in `all` of the file that it is open on.
    held: Map<i32, usize>,
    /// Indices in `all` of the files made since others could last use the program's files.
    own: Vec<usize>,
}

impl Lives {
    fn of(steps: &[Step<'_>]) -> Self {
        let mut lives = Self::default();
        for (at, step) in steps.iter().enumerate() {
            lives.step(at, step);
        }
        lives
    }

    fn step(&mut self, at: usize, step: &Step<'_>) {
        let is_held = step.descriptor().is_some_and(|fd| self.held.contains_key(&fd));
        if step.lets(Barrier::OTHERS_USE) || !is_held && step.lets(Barrier::OTHERS_SAY) {
            for place in std::mem::take(&mut self.own) {
                self.all.get_mut(place).filter(|life| !life.removed).into_iter().for_each(|life| life.shared = true);
            }
        }
        if step.observed.call.errno().is_some() {
            return;
        }
        if let Some((opened, fd)) = step.opened.as_ref().zip(step.observed.call.result) {
            let fd = fd as i32;
            self.held.remove(&fd);
            match self.named.get(&*opened.path).copied() {
                Some(place) => {
                    self.note(place, at, |life| (life.open, life.openings) = (life.open + 1, life.openings + 1))
                }
                None if opened.anew && opened.writes => {
                    let flags = step.observed.opening_flags(step.effects).unwrap_or(0);
                    self.begin(at, opened.path.to_string(), flags & O_EXCL != 0);
                }
                None => return,
            }
            if let Some(place) = self.named.get(&*opened.path) {
                self.held.insert(fd, *place);
            }
            return;
        }
        if let Some(place) = step.observed.paths(step.effects).next().and_then(|path| self.named.get(&*path).copied()) {
            let removes = removes_name(step.observed.syscall);
            let renames = step.lines.names();
            self.note(place, at, |life| (life.removed, life.shared) = (removes, life.shared || renames));
            if let Some(life) = self.all.get(place).filter(|_| removes || renames) {
                self.named.remove(&life.path);
            }
            return;
        }
        self.on_descriptor(at, step);
    }

    fn begin(&mut self, at: usize, path: String, exclusive: bool) {
        self.named.insert(path.clone(), self.all.len());
        self.own.push(self.all.len());
        self.all.push(Life { path, calls: vec![at], open: 1, openings: 1, exclusive, ..Life::default() });
    }

    /// Notes a call on a file, and what it changes.
    fn note(&mut self, place: usize, at: usize, change: impl FnOnce(&mut Life)) {
        if let Some(life) = self.all.get_mut(place) {
            life.calls.push(at);
            change(life);
        }
    }

    fn on_descriptor(&mut self, at: usize, step: &Step<'_>) {
        let Some((fd, place)) = step.descriptor().and_then(|fd| Some((fd, *self.held.get(&fd)?))) else {
            self.let_go(step);
            return;
        };
        // A copy of the descriptor, or a mapping, may be used in ways that the window does not show.
        let copies =
            step.lines.maps() || step.effects.iter().any(|e| matches!(e, Effect::Shares | Effect::Redirects(_)));
        let closes = step.lets_go(fd);
        let moved = step.moved.and_then(|moved| Some((moved.line.way, moved.got?)));
        self.note(place, at, |life| {
            life.shared |= copies;
            life.open = life.open.saturating_sub(usize::from(closes));
            match moved {
                Some((Way::Out, got)) => life.wrote = life.wrote.saturating_add(got),
                Some((Way::In, got)) => life.read_back |= got > 0 && life.wrote > 0,
                None => {}
            }
        });
        if closes {
            self.held.remove(&fd);
        }
    }

    /// Forgets the descriptors that a step closes or makes anew: they are of other files now.
    fn let_go(&mut self, step: &Step<'_>) {
        if let Some(fd) = step.observed.call.result.map(|fd| fd as i32).filter(|fd| step.makes_descriptor(*fd)) {
            self.held.remove(&fd);
        }
        for effect in step.effects.iter() {
            match effect {
                Effect::Closes(arg) | Effect::Redirects(arg) => {
                    self.held.remove(&step.observed.descriptor(arg));
                }
                Effect::Descriptors => self.held.clear(),
                _ => {}
            }
        }
    }
}

impl Scratch {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let finds_it =
            |row: &Row| semantics.lines_of(row.syscall).may_open && row.counts.errors.contains_key(&Errno::EEXIST);
        let is_contended = recording.rows.iter().any(finds_it);
        Self { known: Set::default(), is_contended }
    }
}

impl Detector for Scratch {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(who) = steps.first().map(|step| step.who) else { return };
        let is_making =
            steps.iter().any(|step| step.opened.as_ref().is_some_and(|opened| opened.anew && opened.writes));
        let any = self.known.iter().any(|(of, was, _)| *of == who && *was == Use::Scratch);
        if !is_making && !any {
            return;
        }
        let mut lives = Lives::of(steps);
        let mut claimed: Set<usize> = Set::default();
        for life in &mut lives.all {
            let Some(was) = life.was() else { continue };
            let (reason, holds, name) = match was {
                Use::Scratch => (ReasonId::FileIsShared, life.shared, folder(&life.path).to_owned()),
                Use::Lock => (ReasonId::LockFileIsWanted, self.is_contended, life.path.clone()),
            };
            let is_excused = life.calls.iter().fold(false, |_, at| claims.excuse(*at, reason, holds));
            if was == Use::Scratch {
                life.shared = is_excused;
            }
            if is_excused {
            } else if self.known.contains(&(who, was, name.clone())) {
                let object = Some(claims.object(&name));
                life.calls.iter().for_each(|at| claims.set(*at, Claim { object: object.clone(), ..claim(was) }));
                claimed.extend(&life.calls);
            } else if self.known.len() < REMEMBERED {
                // One file is needed in the whole run, not one in each window.
                self.known.insert((who, was, name));
            }
        }
        // Of a file whose life a window does not show whole, nothing is known.
        let is_known = |path: &str| self.known.contains(&(who, Use::Scratch, folder(path).to_owned()));
        let is_cut = |life: &&Life| !life.shared && life.was() != Some(Use::Scratch) && is_known(&life.path);
        let cut: Set<usize> = lives.all.iter().filter(is_cut).flat_map(|life| life.calls.iter().copied()).collect();
        let shown: Set<usize> = lives.all.iter().flat_map(|life| life.calls.iter().copied()).collect();
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| !claimed.contains(&step.index)) {
            let name = step.object.as_deref().or(step.observed.call.fd.as_deref()).filter(|name| name.starts_with('/'));
            if cut.contains(&at) || !shown.contains(&at) && name.is_some_and(is_known) {
                leave_out_later(step, claims);
            }
        }
    }
}

fn claim(was: Use) -> Claim {
    match was {
        Use::Scratch => Claim { facts: Fact::Scratch.into(), ..Claim::of(Kind::Toggle, SCRATCH, IN_MEMORY) },
        Use::Lock => Claim {
            facts: Fact::LockFile.into(),
            gives_up: "others wait longer for the lock",
            ..Claim::of(
                Kind::Toggle,
                "a lock file, made and removed around each step, though nobody else in this run was seen to want it",
                "keep the lock for many steps",
            )
        },
    }
}
