//! Runs git such that neither its configuration nor its language changes the result.

use super::trouble::Trouble;
use nix::fcntl::{Flock, FlockArg};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prefix of the name of a worktree's folder.
const FOLDER: &str = "systoll-bisect-";
/// Name of the worktree in the folder.
const TREE: &str = "tree";
/// Name of the file beside the worktree that a running bisection has locked.
const LOCK: &str = "lock";

/// Number of bytes of git's output that are kept; a diff may have any length.
const MOST_OUTPUT: usize = 4 << 20;

/// A user's repository, and our worktree beside it.
pub(super) struct Worktree {
    repository: PathBuf,
    folder: tempfile::TempDir,
    made: bool,
    /// The lock, held as long as this process lives. The folder of a dead bisection is not locked.
    _lock: Flock<File>,
}

/// The output of a git command.
pub(super) struct Said {
    pub(super) ok: bool,
    pub(super) out: String,
    pub(super) err: String,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) author: String,
    pub(super) date: String,
}

fn git(at: &Path, args: &[&OsStr]) -> Result<Said, Trouble> {
    let mut command = Command::new("git");
    // No hook of the user's runs, git asks for no password and uses no other repository.
    command.arg("-C").arg(at).args(["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"]);
    command.args(["-c", "color.ui=false", "-c", "core.quotePath=false", "-c", "gc.auto=0"]).args(args);
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_PAGER", "cat").env("GIT_OPTIONAL_LOCKS", "0");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"] {
        command.env_remove(name);
    }
    let done = command.stdin(Stdio::null()).output().map_err(Trouble::NoGit)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_OUTPUT)]).into_owned();
    Ok(Said { ok: done.status.success(), out: text(&done.stdout), err: text(&done.stderr) })
}

impl Worktree {
    /// Makes a worktree of the repository that contains `at`, with `commit` checked out.
    pub(super) fn new(at: &Path, commit: &Commit) -> Result<Self, Trouble> {
        remove_left_behind(at);
        let folder = tempfile::Builder::new().prefix(FOLDER).tempdir().map_err(Trouble::Folder)?;
        let lock = File::create(folder.path().join(LOCK)).map_err(Trouble::Folder)?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| Trouble::Folder(e.into()))?;
        let mut worktree = Self { repository: at.to_owned(), folder, made: false, _lock: lock };
        let tree = worktree.path();
        let words = ["worktree", "add", "--detach", "--force"].map(OsStr::new);
        let said = git(at, &[&words[..], &[tree.as_os_str(), OsStr::new(&commit.id)]].concat())?;
        // A failed attempt may have left something to remove.
        worktree.made = true;
        if said.ok { Ok(worktree) } else { Err(Trouble::Git("make a worktree", said.err)) }
    }

    /// Returns the worktree's folder. Its name is constant: builds in it make the same files.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(TREE)
    }

    /// Runs git in the worktree.
    pub(super) fn git(&self, args: &[&str]) -> Result<Said, Trouble> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        git(&self.path(), &args.iter().map(OsString::as_os_str).collect::<Vec<_>>())
    }

    /// Checks `commit` out, and restores files of the repository that a build has changed.
    pub(super) fn check_out(&self, commit: &str) -> Result<(), Trouble> {
        let said = self.git(&["checkout", "--quiet", "--force", "--detach", commit])?;
        if said.ok { Ok(()) } else { Err(Trouble::Git("check a commit out", said.err)) }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        if self.made {
            // After an interrupt, new processes are killed; git must not be.
            if systoll_cure::interrupted().is_some() {
                systoll_cure::settle();
            }
            let tree = self.path();
            let words = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
            // The folder is removed in any case; git's next prune removes what git still knows
            // about it.
            let _ = git(&self.repository, &[&words[..], &[tree.as_os_str()]].concat());
        }
    }
}

/// Removes this repository's worktrees that killed bisections left behind: nobody holds their lock.
fn remove_left_behind(at: &Path) {
    let Ok(told) = git(at, &["worktree", "list", "--porcelain"].map(OsStr::new)) else { return };
    for tree in told.out.lines().filter_map(|line| line.strip_prefix("worktree ")).map(Path::new) {
        let Some(folder) = tree.parent().filter(|_| tree.ends_with(TREE)) else { continue };
        let is_ours = folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(FOLDER.as_bytes()));
        let lock = systoll_files::open(folder.join(LOCK), systoll_files::Links::Refuse);
        if !is_ours || lock.is_ok_and(|(file, _)| Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err()) {
            continue;
        }
        let words = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        // If the worktree can't be removed, the folder stays.
        let removed = git(at, &[&words[..], &[tree.as_os_str()]].concat());
        if removed.is_ok_and(|said| said.ok) {
            let _ = std::fs::remove_file(folder.join(LOCK));
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Returns the commit that `name` means in the repository that contains `at`.
pub(super) fn commit(at: &Path, name: &str) -> Result<Commit, Trouble> {
    let inside = git(at, &["rev-parse", "--git-dir"].map(OsStr::new))?;
    if !inside.ok {
        return Err(Trouble::outside(at, inside.err));
    }
    let wanted = format!("{name}^{{commit}}");
    let found = git(at, &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted].map(OsStr::new))?;
    let id = found.out.trim().to_owned();
    if !found.ok || id.is_empty() {
        return Err(Trouble::NoCommit(name.to_owned()));
    }
    describe(at, &id)
}

/// Returns the data of the commit `id`.
pub(super) fn describe(at: &Path, id: &str) -> Result<Commit, Trouble> {
    let words = ["show", "--no-patch", "--format=%H%x00%s%x00%an%x00%ad", "--date=short", id];
    let said = git(at, &words.map(OsStr::new))?;
    let mut parts = said.out.trim_end_matches('\n').split('\0').map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let commit = Commit { id: next(), subject: next(), author: next(), date: next() };
    if said.ok && !commit.id.is_empty() { Ok(commit) } else { Err(Trouble::NoCommit(id.to_owned())) }
}

/// Returns true if `old` is an ancestor of `new`.
pub(super) fn is_ancestor(at: &Path, old: &Commit, new: &Commit) -> Result<bool, Trouble> {
    Ok(git(at, &["merge-base", "--is-ancestor", &old.id, &new.id].map(OsStr::new))?.ok)
}
