//! Finds out if calls of a running process can be answered in place.
//!
//! An answer is right only if every call that could change it is seen. systoll sees all code of a program that it
//! starts. A running program may already have code that is in no file, and sites that can't be hooked now.

use crate::inproc::monitor::attach::target::Refusal;
use crate::inproc::monitor::program::Patched;
use crate::problems::Problems;
use std::collections::BTreeSet;
use systoll_binfile::maps::{KERNELS, lines};
use systoll_hooks::assemble::must_be_seen;
use systoll_model::ProblemKind;

/// Returns the refusal of a process whose calls can't be answered.
pub(crate) fn refusal(pid: i32, why: &str) -> Refusal {
    Refusal {
        reason: format!("its calls can't be answered in place: {why}"),
        advice: Some(format!("what they cost: systoll attach --for 30s {pid}")),
    }
}

/// Returns why calls can't be answered, by the text of a process's `maps`: it has code that is in no file, or that can
/// be written.
pub(crate) fn obstacle(maps: &[u8]) -> Option<&'static str> {
    let mut code = lines(maps).filter(|line| line.executable && !KERNELS.contains(&line.path));
    code.any(|line| line.inode == 0 || line.shared || line.writable)
        .then_some("it runs JIT-compiled code, or other code that is in no file or can be written")
}

/// Returns why calls can't be answered, by the problems noted while a process's files were read; `losses_before` is the
/// number of losses before that.
pub(crate) fn losses(problems: &Problems, losses_before: u64) -> Option<String> {
    (problems.losses != losses_before).then(|| {
        let last = problems.list.iter().rev().find(|problem| problem.kind == ProblemKind::Lost);
        last.map_or_else(|| "not every place that makes calls is seen".to_owned(), |problem| problem.text.clone())
    })
}

/// Returns true if one of these places of a file, which can't be hooked, makes calls that must be seen.
pub(crate) fn must_be_hooked(file: &Patched, places: &BTreeSet<u64>) -> bool {
    file.known.plan.sites.iter().any(|site| places.contains(&site.address) && must_be_seen(site.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_no_files_is_an_obstacle() {
        let plain = "1000-2000 r-xp 00000000 fe:01 7 /bin/x\n3000-4000 rw-p 00000000 00:00 0 [heap]\n\
                     7000-8000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(obstacle(plain.as_bytes()), None);
        for line in [
            "9000-a000 rwxp 00000000 00:00 0 ",
            "9000-a000 r-xp 00000000 00:00 0 [anon:v8]",
            "9000-a000 rwxp 00000000 fe:01 9 /lib/y.so",
            "9000-a000 r-xs 00000000 fe:01 9 /lib/y.so",
            "9000-a000 rwxs 00000000 00:01 77 /dev/zero (deleted)",
        ] {
            assert!(obstacle(format!("{plain}{line}\n").as_bytes()).is_some(), "{line}");
        }
    }
}
