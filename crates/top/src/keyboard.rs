//! Waits for keys at a terminal, and notices that it is gone.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, getpgrp, getppid, tcgetpgrp};
use std::fs::File;
use std::io::{self, IsTerminal, Stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The terminal from which crossterm reads keys: standard input, or else the controlling terminal.
#[derive(Debug)]
enum Source {
    Stdin(Stdin),
    Controlling(File),
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Controlling(file) => file.as_fd(),
        }
    }
}

/// The terminal at which keys are pressed.
#[derive(Debug)]
pub(crate) struct Keyboard {
    source: Source,
    /// This process's parent when the screen was opened.
    parent: Pid,
}

impl Keyboard {
    /// Opens the terminal.
    ///
    /// # Errors
    /// If standard input is none, and the process has no controlling terminal.
    pub(crate) fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        let source =
            if stdin.is_terminal() { Source::Stdin(stdin) } else { Source::Controlling(File::open("/dev/tty")?) };
        Ok(Self { source, parent: getppid() })
    }

    /// Waits until a key is pressed, at most for `time`. Returns false if keys are not for this process now, because it is
    /// in the background.
    ///
    /// # Errors
    /// If the terminal is gone, or is another program's for good: this process is in the background and its parent, which
    /// could bring it back, has ended.
    pub(crate) fn wait(&self, time: Duration) -> io::Result<bool> {
        // No terminal of another session has a foreground, and reading it is not restricted.
        let is_background = tcgetpgrp(&self.source).is_ok_and(|foreground| foreground != getpgrp());
        if is_background {
            if getppid() != self.parent {
                return Err(io::Error::other("it is another program's"));
            }
            std::thread::sleep(time);
        }
        let time = if is_background { Duration::ZERO } else { time };
        let mut descriptors = [PollFd::new(self.source.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)) {
            // The window's new size is an event too.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        if descriptors.iter().any(|one| one.revents().is_none_or(|events| events.intersects(gone))) {
            return Err(io::Error::other("it is gone"));
        }
        Ok(!is_background)
    }
}
