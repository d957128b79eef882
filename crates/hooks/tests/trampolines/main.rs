//! Runs the counting code in generated functions and checks what it counts.

mod areas;
mod asked_windows;
mod counts;
mod full_ring;
mod handshake;
mod hostile;
mod lab;
mod looks;
mod machine;
mod masks;
mod real;
mod ring;
mod ring_pages;
mod server;
mod signals;
mod steps;
mod threads;
mod tree;
mod trunks;
mod unwinding;
mod waiting;

/// Runs `body` in a forked copy of this process. Fails if the copy fails.
fn forked(body: impl FnOnce()) {
    // SAFETY: the only other thread is the test harness's, which is waiting; the child runs `body`
    // and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child without the parent's clean-up.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
}
