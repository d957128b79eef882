//! Handles orphans: processes that a call started and that lost their parent. They become children
//! of this server, which can end them when the call is cancelled.

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use systoll_cure::{children, kill_tree};

/// Ids of the processes that calls started and will wait for.
static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the kernel give orphans below this process to it. If that fails, orphans are left alone.
pub(super) fn adopt() {
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// A process that a call started.
pub(super) struct Own {
    pub(super) child: Child,
}

impl Own {
    /// Starts the process. Until it is registered, nothing is reaped.
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

/// The orphans from before a call, which an earlier call left behind on purpose.
pub(super) struct Orphans(BTreeSet<u32>);

impl Orphans {
    pub(super) fn before() -> Self {
        Self(orphans(&own()).collect())
    }

    /// Kills the orphans that have come since, with everything that they started.
    pub(super) fn kill_new(&self) {
        // Killing a process can make orphans of its newest children.
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

    /// Reaps an orphan that has ended: nobody else waits for it.
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

/// Returns the children of this process that no call started directly.
fn orphans(own: &BTreeSet<u32>) -> impl Iterator<Item = u32> {
    children(std::process::id()).into_iter().filter(|pid| !own.contains(pid))
}
