//! Keeps plans, and the code built from them, on disk between runs.
//!
//! Invariant: a wrong entry would make us damage a program, so an entry is used only if this build of this user's
//! systoll wrote it for these very bytes. The name of every entry holds the build ([`Build`]), so there are no versions
//! to maintain: another build finds no entries, and unused ones are dropped in time. Names hold a hash of the whole
//! file and entries hold a checksum, both keyed with a secret of the folder's, since a build-id is only what a file
//! claims. To avoid reading and hashing every file in every run, the hash of a file in a certain state (`FileState`) is
//! kept as well, on file systems that note every change of contents. If the folder is unusable, everything works
//! without it.

use super::build::Build;
use std::fmt::Write;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use systoll_hooks::plan::{self, Plan, PlanError};
use systoll_symbols::FileState;
use systoll_trust::Folder;
use twox_hash::XxHash3_64;

/// Bytes that the cache may hold by default, without names and trailers; a sixteenth more is possible ([`LOOKS`]).
pub const DEFAULT_LIMIT: u64 = 64 << 20;

/// Number of checks of the folder's size, on average, while entries fill it once. A check reads every entry's size,
/// milliseconds for a few thousand, so it is made at random.
const LOOKS: u64 = 16;

const MAGIC: &[u8; 8] = b"systoll\x02";
/// Bytes of magic and checksum. They follow the payload, so that a reader can use it without a copy.
const TRAILER: usize = 16;
/// Name of the cache's folder below the user's folder for caches.
const NAME: &str = "systoll";
const SECRET: &str = "secret";
const SECRET_SIZE: usize = 32;
/// Bytes of a build-id that an entry's name holds: the size of a SHA-1, which linkers write.
const ID_SIZE: usize = 20;

/// Kind of a cache entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key of a file in a certain state, made by [`Cache::key_of`].
    State,
    /// A plan, made by [`Cache::plan`].
    Plan,
    /// Assembled code of a file.
    Code,
    /// Facts that runs found out about a file.
    Notes,
    /// The code that measures how much time counting takes.
    Own,
    /// Times that runs have measured by twins.
    Twins,
}

impl Kind {
    /// Every kind of entry.
    pub const ALL: [Self; 6] = [Self::State, Self::Plan, Self::Code, Self::Notes, Self::Own, Self::Twins];

    /// Returns the kind's part of an entry's name: a short word of lower-case letters.
    fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Plan => "plan",
            Self::Code => "code",
            Self::Notes => "notes",
            Self::Own => "own",
            Self::Twins => "twins",
        }
    }
}

/// Identity of a file by its content, not by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// Returns the key of something that can be made from this file in several ways; `way` says which, in lower-case
    /// letters, digits and dashes.
    #[must_use]
    pub fn with(&self, way: &str) -> Self {
        Self(format!("{}-{way}", self.0))
    }

    /// Returns the key as text, which is the same in every run.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The folder that holds the entries; `None` keeps nothing.
#[derive(Debug)]
pub struct Cache(Option<Open>);

#[derive(Debug)]
struct Open {
    folder: Folder,
    build: &'static Build,
    secret: [u8; SECRET_SIZE],
    limit: u64,
}

impl Cache {
    /// Opens the user's cache: `$XDG_CACHE_HOME/systoll`, or `~/.cache/systoll` (XDG Base Directory Specification 0.8).
    /// Without either, or if it can't be trusted, nothing is kept.
    #[must_use]
    pub fn open() -> Self {
        systoll_trust::cache().map_or_else(Self::none, |base| Self::at(&base, DEFAULT_LIMIT))
    }

    /// Opens the cache in the folder `systoll` below `base`, making both if need be, of at most `limit` bytes. If this
    /// build can't be identified, nothing is kept.
    #[must_use]
    pub fn at(base: &Path, limit: u64) -> Self {
        Build::own().map_or_else(Self::none, |build| Self::of_build(base, limit, build))
    }

    /// Opens the cache as `build` of this program: it finds the entries of that build only.
    #[must_use]
    pub fn of_build(base: &Path, limit: u64, build: &'static Build) -> Self {
        let folder = Folder::below(base, &[NAME]).ok();
        Self(folder.and_then(|folder| Some(Open { secret: secret(&folder)?, folder, build, limit })))
    }

    /// Returns a cache that keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Returns true if there is a folder to keep entries in.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the key of a whole file with this `content`; `None` if nothing is kept.
    #[must_use]
    pub fn key(&self, content: &[u8]) -> Option<Key> {
        let open = self.0.as_ref()?;
        let mut key = String::new();
        for byte in plan::build_id(content).unwrap_or_default().iter().take(ID_SIZE) {
            let _ = write!(key, "{byte:02x}");
        }
        let _ = write!(key, "-{:x}-{:016x}", content.len(), open.hash(&[b"content", content]));
        Some(Key(key))
    }

    /// Returns the key of something that is made from no file: a unique name of lower-case letters, digits and dashes.
    #[must_use]
    pub fn key_named(name: &str) -> Key {
        Key(name.into())
    }

    /// Returns the [`Cache::key`] of a file in `state`, whose content only `read` returns: the key of an earlier run if
    /// the file has not changed, otherwise a new one, which is kept if the state detects changes. `build_id` is the
    /// build-id that the file claims to have.
    pub fn key_of(
        &self,
        state: Option<&FileState>,
        build_id: Option<&str>,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Key> {
        self.key_and_content(state, build_id, read).0
    }

    /// Returns [`Cache::key_of`], and the content if it had to be read.
    pub(crate) fn key_and_content(
        &self,
        state: Option<&FileState>,
        build_id: Option<&str>,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> (Option<Key>, Option<Vec<u8>>) {
        let telling = self.unread(state, build_id);
        let kept = telling.as_ref().and_then(|key| String::from_utf8(self.get(Kind::State, key)?).ok());
        if let Some(kept) = kept {
            return (Some(Key(kept)), None);
        }
        let content = read();
        let key = content.as_ref().and_then(|content| self.key(content));
        if let (Some(telling), Some(key)) = (&telling, &key) {
            self.put(Kind::State, telling, key.0.as_bytes());
        }
        (key, content)
    }

    /// Returns the key of a file in `state` while its content is unknown. Returns `None` if the content must be read in
    /// every run.
    pub(crate) fn unread(&self, state: Option<&FileState>, build_id: Option<&str>) -> Option<Key> {
        self.state_key(state.filter(|state| is_telling(state))?, build_id)
    }

    fn state_key(&self, state: &FileState, build_id: Option<&str>) -> Option<Key> {
        let open = self.0.as_ref()?;
        let numbers = [state.modified.0, state.modified.1, state.changed.0, state.changed.1, state.file_system];
        let numbers: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let place: Vec<u8> = [state.device, state.inode, state.size].iter().flat_map(|n| n.to_le_bytes()).collect();
        let id = build_id.unwrap_or_default().as_bytes();
        let halves = ["first", "second"].map(|half| open.hash(&[b"state", half.as_bytes(), &place, &numbers, id]));
        Some(Key(format!("{:016x}{:016x}", halves[0], halves[1])))
    }

    /// Returns the payload kept as `kind` for `key`. Returns `None` if there is none; removes an entry that is damaged
    /// or not ours.
    #[must_use]
    pub fn get(&self, kind: Kind, key: &Key) -> Option<Vec<u8>> {
        let open = self.0.as_ref()?;
        let name = open.name(kind, key);
        let mut bytes = open.folder.read(&name, open.limit.saturating_add(TRAILER as u64))?;
        let intact = bytes.split_last_chunk::<TRAILER>();
        if intact.is_none_or(|(payload, trailer)| *trailer != open.trailer(&name, payload)) {
            open.folder.remove(&name);
            return None;
        }
        bytes.truncate(bytes.len().saturating_sub(TRAILER));
        Some(bytes)
    }

    /// Opens an entry for a reader that does not need it in one piece.
    pub(crate) fn entry(&self, kind: Kind, key: &Key) -> Option<Entry<'_>> {
        let open = self.0.as_ref()?;
        let name = open.name(kind, key);
        let (file, size) = open.folder.open(&name, open.limit.saturating_add(TRAILER as u64))?;
        let len = size.checked_sub(TRAILER as u64)?;
        Some(Entry { open, name, file, len, read: open.checksum() })
    }

    /// Keeps `payload`, and returns true if it did. The entries that were not used for longest make room.
    pub fn put(&self, kind: Kind, key: &Key, payload: &[u8]) -> bool {
        let Some(open) = &self.0 else { return false };
        let name = open.name(kind, key);
        let fits = payload.len() as u64 <= open.limit;
        let kept = fits && open.folder.write(&name, &[payload, &open.trailer(&name, payload)]).is_ok();
        if kept && open.is_to_shrink(payload.len() as u64) {
            open.folder.shrink(open.limit, SECRET);
        }
        kept
    }

    /// Returns the path of an entry, even if there is none.
    #[must_use]
    pub fn path_of(&self, kind: Kind, key: &Key) -> Option<PathBuf> {
        let open = self.0.as_ref()?;
        Some(open.folder.path().join(open.name(kind, key)))
    }

    /// Returns the plan for `elf`: the one kept, or a new one, which is then kept.
    ///
    /// # Errors
    ///
    /// The errors of [`plan::plan`].
    pub fn plan(&self, elf: &[u8]) -> Result<Plan, PlanError> {
        let key = self.key(elf);
        match key.as_ref().and_then(|key| self.kept_plan(key)).filter(|plan| plan.is_for(elf)) {
            Some(plan) => Ok(plan),
            None => self.new_plan(key.as_ref(), elf),
        }
    }

    /// Returns the plan kept for `key`.
    #[must_use]
    pub fn kept_plan(&self, key: &Key) -> Option<Plan> {
        Plan::from_bytes(&self.get(Kind::Plan, key)?)
    }

    /// Makes a plan for `elf`, and keeps it if there is a `key`.
    ///
    /// # Errors
    ///
    /// The errors of [`plan::plan`].
    pub fn new_plan(&self, key: Option<&Key>, elf: &[u8]) -> Result<Plan, PlanError> {
        let plan = plan::plan(elf)?;
        if let Some(key) = key {
            self.put(Kind::Plan, key, &plan.to_bytes());
        }
        Ok(plan)
    }
}

/// Returns true if files with the same `state` have the same content: the file system notes the time of every change,
/// made by writing or through a mapping, and the last change is not so recent that another could have come within the
/// clock's tick.
fn is_telling(state: &FileState) -> bool {
    // ext2 to ext4, XFS, Btrfs, F2FS, OverlayFS, SquashFS, EROFS (kernel: uapi/linux/magic.h;
    // fs/xfs/libxfs/xfs_format.h). Not tmpfs, whose mappings change without a trace.
    const KNOWN: [i64; 7] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x794c_7630, 0x7371_7368, 0xe0f5_e1e2];
    const TICK: u64 = 2;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let old = u64::try_from(state.changed.0).is_ok_and(|changed| changed + TICK < now);
    old && KNOWN.contains(&state.file_system)
}

impl Open {
    /// Returns the file name of an entry. All names are made here, so that none lacks the build.
    fn name(&self, kind: Kind, key: &Key) -> String {
        format!("{}-{}-{}", kind.name(), self.build.as_str(), key.0)
    }

    /// Returns true if the folder's size should be checked, now that an entry of `bytes` is new: the larger the entry,
    /// the more probably.
    fn is_to_shrink(&self, bytes: u64) -> bool {
        let drawn = RandomState::new().hash_one(bytes) % self.limit.max(1);
        drawn < bytes.saturating_mul(LOOKS)
    }

    /// Returns a hash whose collisions nobody can find without the secret.
    fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize().as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// Returns a checksum of nothing so far. It detects damage and is no signature: code that can write into a folder
    /// of this user's alone can change the user's programs just as well. Entries are megabytes and are read at every
    /// start, and BLAKE3 takes twice as long (200 and 90 us for 1.3 MB on an EPYC).
    fn checksum(&self) -> XxHash3_64 {
        XxHash3_64::with_seed(self.secret.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)))
    }

    fn trailer(&self, name: &str, payload: &[u8]) -> [u8; TRAILER] {
        let mut sum = self.checksum();
        sum.write(payload);
        self.trailer_of(name, sum.finish())
    }

    fn trailer_of(&self, name: &str, sum: u64) -> [u8; TRAILER] {
        let mut trailer = [0; TRAILER];
        let (magic, rest) = trailer.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        rest.copy_from_slice(&self.hash(&[name.as_bytes(), &sum.to_le_bytes()]).to_le_bytes());
        trailer
    }
}

/// An entry that is read piece by piece. Use nothing of it before [`Entry::ends_as_kept`] has returned true.
pub(crate) struct Entry<'a> {
    open: &'a Open,
    name: String,
    file: File,
    len: u64,
    /// Checksum of the pieces read in order so far.
    read: XxHash3_64,
}

impl Entry<'_> {
    /// Returns the length of the payload, bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `bytes` from offset `at`, without counting them as read in order.
    pub(crate) fn peek(&self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.file.read_exact_at(bytes, at).ok()
    }

    /// Fills `bytes` from offset `at`, where the last piece ended.
    pub(crate) fn read(&mut self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.peek(at, bytes)?;
        self.read.write(bytes);
        Some(())
    }

    /// Counts `bytes`, which were peeked at, as the next piece.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.read.write(bytes);
    }

    /// Returns true if all bytes read, from the first to the last, are the kept ones. Otherwise removes the entry.
    pub(crate) fn ends_as_kept(self) -> bool {
        let mut trailer = [0; TRAILER];
        let read = self.file.read_exact_at(&mut trailer, self.len).is_ok();
        let intact = read && trailer == self.open.trailer_of(&self.name, self.read.finish());
        if !intact {
            self.open.folder.remove(&self.name);
        }
        intact
    }
}

/// Returns the folder's secret; makes it at first use.
fn secret(folder: &Folder) -> Option<[u8; SECRET_SIZE]> {
    let read = || folder.read(SECRET, SECRET_SIZE as u64)?.try_into().ok();
    read().or_else(|| {
        let mut fresh = [0; SECRET_SIZE];
        let mut random = systoll_files::kernel("/dev/urandom").ok()?;
        std::io::Read::read_exact(&mut random, &mut fresh).ok()?;
        let _ = folder.write(SECRET, &[&fresh]);
        // Another systoll may have made a secret at the same time: the one written last holds.
        read()
    })
}
