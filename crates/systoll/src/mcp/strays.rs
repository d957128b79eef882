//! Processes that a call has started and that have lost their parent: they become children of this server, so that a call
//! that is taken back can end them too.

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use systoll_cure::{children, kill_tree};

/// Ids of the processes that calls themselves have started and will wait for.
static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the kernel give this process what loses its parent below it. Where it can't be had such processes are left.
pub(super) fn adopt() {
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// A process that a call has started.
pub(super) struct Own {
    pub(super) child: Child,
}

impl Own {
    /// Starts it. Until it is known as ours nothing is reaped.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut own = own();
        let child = command.spawn()?;
        own.insert(child.id());
        Ok(Self { child })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        own().remove(&self.child.id());
    }
}

/// The orphans that were there before a call began: an earlier call has left them behind on purpose.
pub(super) struct Strays(BTreeSet<u32>);

impl Strays {
    pub(super) fn before() -> Self {
        Self(orphans(&own()).collect())
    }

    /// Kills those that have come since, with all that they have started.
    pub(super) fn kill_new(&self) {
        // Killing one can make an orphan of what it has started in that moment.
        const ROUNDS: usize = 8;
        for _ in 0..ROUNDS {
            let own = own();
            let new: Vec<u32> = orphans(&own).filter(|pid| !self.0.contains(pid)).collect();
            if new.is_empty() {
                return;
            }
            for pid in new {
                kill_tree(pid);
                let _ = waitpid(Pid::from_raw(pid.cast_signed()), None);
            }
        }
    }

    /// Takes away one that has ended: nobody else waits for it.
    pub(super) fn reap() {
        let own = own();
        let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
        let seen = loop {
            match waitid(Id::All, ended | WaitPidFlag::WNOWAIT) {
                Err(Errno::EINTR) => {}
                seen => break seen,
            }
        };
        let pid = seen.ok().as_ref().and_then(WaitStatus::pid);
        if let Some(pid) = pid.filter(|pid| !own.contains(&pid.as_raw().cast_unsigned())) {
            let _ = waitid(Id::Pid(pid), ended);
        }
    }
}

/// Children of this process that no call has started itself.
fn orphans(own: &BTreeSet<u32>) -> impl Iterator<Item = u32> {
    children(std::process::id()).into_iter().filter(|pid| !own.contains(pid))
}
