//! Recognises calls that set a thread's users or groups to their present values: glibc's `posix_spawn` makes two with
//! POSIX_SPAWN_RESETIDS, which GNU make uses for every job. Such calls do not change a process's rights.

use crate::inproc::monitor::handles::NodeAddr;
use crate::inproc::monitor::program::Programs;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::procfs;
use systoll_hooks::numbers::{SETFSGID, SETFSUID, SETGID, SETREGID, SETRESGID, SETRESUID, SETREUID, SETUID};

/// Kind of the ids that a call sets, and the number of its arguments that are ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sets {
    Users(usize),
    Groups(usize),
}

/// Returns true if the call that a waiting thread is about to make, counted at `node`, changes none of its ids.
pub(crate) fn keeps_ids(programs: &Programs, waiter: &Waiter, node: NodeAddr) -> bool {
    let Some(program) = programs.get(&waiter.slot.program) else { return false };
    let number = program.number_of(node).unwrap_or(waiter.registers.ax as u32);
    let Some(sets) = sets(number) else { return false };
    let kept = procfs::ids(waiter.tid).is_some_and(|ids| match sets {
        Sets::Users(n) => are_kept(ids.users, waiter.args().get(..n).unwrap_or_default()),
        Sets::Groups(n) => are_kept(ids.groups, waiter.args().get(..n).unwrap_or_default()),
    });
    // In another user namespace a number means another user.
    kept && procfs::has_our_namespaces(waiter.tid)
}

fn sets(number: u32) -> Option<Sets> {
    Some(match number {
        SETUID | SETFSUID => Sets::Users(1),
        SETREUID => Sets::Users(2),
        SETRESUID => Sets::Users(3),
        SETGID | SETFSGID => Sets::Groups(1),
        SETREGID => Sets::Groups(2),
        SETRESGID => Sets::Groups(3),
        _ => return None,
    })
}

/// Returns true if `args` change none of the four ids (real, effective, saved, file system): all four are equal, and no
/// other id is named. The kernel uses the arguments' lower halves; all bits set leave an id alone.
fn are_kept(ids: [u32; 4], args: &[u64]) -> bool {
    let [id, others @ ..] = ids;
    let named = |arg: &u64| *arg as u32 == id || *arg as u32 == u32::MAX;
    !args.is_empty() && others == [id; 3] && args.iter().all(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_where_none_other_is_named() {
        const NONE: u64 = u64::MAX;
        let mine = [1000; 4];
        for args in [&[1000][..], &[NONE, 1000, NONE], &[0xffff_ffff, 1000], &[1 << 32 | 1000]] {
            assert!(are_kept(mine, args), "{args:?}");
        }
        for args in [&[0][..], &[NONE, 0, NONE], &[1000, 1001], &[]] {
            assert!(!are_kept(mine, args), "{args:?}");
        }
        // A return to an earlier id changes the rights.
        for ids in [[1000, 0, 1000, 0], [0, 0, 0, 1000], [0, 1000, 1000, 1000]] {
            assert!(!are_kept(ids, &[NONE, 1000, NONE]) && !are_kept(ids, &[0]), "{ids:?}");
        }
        assert_eq!((sets(SETRESGID), sets(SETUID)), (Some(Sets::Groups(3)), Some(Sets::Users(1))));
        assert_eq!(sets(systoll_hooks::numbers::CHROOT), None);
    }
}
