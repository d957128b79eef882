//! Finds and kills a process and its descendants.

/// Kills a child that has not been waited for, and all its descendants. All are stopped first, so
/// none can start another meanwhile. A process that ends while its parent is stopped keeps its id,
/// so no other process is hit.
pub fn kill_tree(root: u32) {
    let mut tree = vec![root];
    signal(root, libc::SIGSTOP);
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        let new: Vec<u32> = children(parent).into_iter().filter(|c| !tree.contains(c)).collect();
        new.iter().for_each(|child| signal(*child, libc::SIGSTOP));
        tree.extend(new);
        next += 1;
    }
    // Children are killed first: an orphan's id may be reused.
    tree.iter().rev().for_each(|pid| signal(*pid, libc::SIGKILL));
}

pub(crate) fn signal(pid: u32, number: libc::c_int) {
    // SAFETY: kill takes two integers. The pid is our child's, or a descendant's whose stopped
    // parent has not waited for it.
    unsafe { libc::kill(pid as libc::pid_t, number) };
}

/// Returns the children that any thread of a process has started, from /proc
/// (CONFIG_PROC_CHILDREN).
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|t| systoll_files::read_kernel(t.path().join("children"), 64).ok());
    lists
        .flat_map(|list| {
            String::from_utf8_lossy(&list).split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}
