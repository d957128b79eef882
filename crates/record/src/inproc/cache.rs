//! Plans, and what is built from them, kept on disk between runs.
//!
//! Invariant: a wrong entry would make us damage a program, so none is believed that this build of this user's
//! systoll did not write for these very bytes. The name of every entry holds the build ([`Build`]), so there are no versions to
//! keep by hand: another build finds nothing, and what it left goes when it has not been used for longest. Names hold a
//! hash of the whole file, entries a checksum, both keyed with a secret of the folder's: a build-id alone is what a file claims.
//! So as not to read and hash every file in every run, the hash of a file in a certain state
//! (`FileState`) is kept as well, where the file system notes every change of contents.
//! Whatever is the matter with the folder, work goes on without it.

use super::build::Build;
use super::checksum::{Checksum, checksum};
use super::content::ContentHash;
use std::fmt::Write;
use std::fs::File;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use systoll_hooks::plan::{self, Plan, PlanError};
use systoll_symbols::FileState;
use systoll_trust::Folder;

/// Bytes kept, names and trailers not counted, give or take a sixteenth ([`LOOKS`]).
pub const DEFAULT_LIMIT: u64 = 64 << 20;

/// To see whether there is too much takes a look at every entry, milliseconds for a few thousand. It is taken at random,
/// so many times on average while what is put fills the folder once.
const LOOKS: u64 = 16;

const MAGIC: &[u8; 8] = b"systoll\x02";
/// Magic and checksum, after the payload: a reader of an entry has the payload without a copy.
const TRAILER: usize = 16;
/// Its folder below that of the user's caches.
const NAME: &str = "systoll";
const SECRET: &str = "secret";
const SECRET_SIZE: usize = 32;
/// Bytes of a build-id that go into a name; SHA-1, what linkers write, has as many.
const ID_SIZE: usize = 20;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key of a file in a certain state, made by [`Cache::key_of`].
    State,
    /// A plan, made by [`Cache::plan`].
    Plan,
    /// What `Symbols::fixed` tells of a file.
    Fixed,
    /// Assembled code of a file.
    Code,
    /// Contexts of earlier runs.
    Contexts,
    /// Files without calls that programs' loaders have mapped.
    NoCalls,
    /// What was asked of a file's symbols, lines and frames.
    Names,
    /// The code that measures what counting costs.
    Own,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::State, Self::Plan, Self::Fixed, Self::Code, Self::Contexts, Self::NoCalls, Self::Names, Self::Own];

    /// A short word of lower-case letters.
    fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Plan => "plan",
            Self::Fixed => "fixed",
            Self::Code => "code",
            Self::Contexts => "contexts",
            Self::NoCalls => "nocalls",
            Self::Names => "names",
            Self::Own => "own",
        }
    }
}

/// A file's identity: of its bytes, not of its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// The key of something made from this file in one of many ways: `way` says which, in lower-case
    /// letters, digits and dashes.
    #[must_use]
    pub fn with(&self, way: &str) -> Self {
        Self(format!("{}-{way}", self.0))
    }

    /// As text, which is the same in every run.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A folder with entries, or none.
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
    /// The user's: `$XDG_CACHE_HOME/systoll`, or `~/.cache/systoll` (XDG Base Directory
    /// Specification 0.8). Without either, or where it can't be trusted, nothing is kept.
    #[must_use]
    pub fn open() -> Self {
        systoll_trust::cache().map_or_else(Self::none, |base| Self::at(&base, DEFAULT_LIMIT))
    }

    /// That of the folder `systoll` below `base`, both made if need be, of at most `limit` bytes. Where nothing tells
    /// this build of the program from others, nothing is kept.
    #[must_use]
    pub fn at(base: &Path, limit: u64) -> Self {
        Build::own().map_or_else(Self::none, |build| Self::of_build(base, limit, build))
    }

    /// [`Cache::at`] as `build` of this program has it: it finds what that build has kept, and nothing else.
    #[must_use]
    pub fn of_build(base: &Path, limit: u64, build: &'static Build) -> Self {
        let folder = Folder::below(base, &[NAME]).ok();
        Self(folder.and_then(|folder| Some(Open { secret: secret(&folder)?, folder, build, limit })))
    }

    /// One that keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Whether there is a folder to keep things in.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.0.is_some()
    }

    /// What `content`, a whole file, is known by here. `None` where nothing is kept.
    #[must_use]
    pub fn key(&self, content: &[u8]) -> Option<Key> {
        let open = self.0.as_ref()?;
        let mut key = String::new();
        for byte in plan::build_id(content).unwrap_or_default().iter().take(ID_SIZE) {
            let _ = write!(key, "{byte:02x}");
        }
        let _ = write!(key, "-{:x}-{:016x}", content.len(), ContentHash::new(&open.secret).of(content));
        Some(Key(key))
    }

    /// What something is known by here that is made from no file: by a name of lower-case letters,
    /// digits and dashes that nothing else has.
    #[must_use]
    pub fn key_named(name: &str) -> Key {
        Key(name.into())
    }

    /// The [`Cache::key`] of a file in `state`, of which only `read` gives the content: from an
    /// earlier run if nothing has changed, or new, and kept if the state is telling. `build_id`
    /// is the file's own word.
    pub fn key_of(
        &self,
        state: Option<&FileState>,
        build_id: Option<&str>,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Key> {
        self.key_and_content(state, build_id, read).0
    }

    /// [`Cache::key_of`], and the content where it had to be read for that.
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

    /// What a file in `state` is looked up by while nothing is known of its content. `None` where that has to be read in every
    /// run.
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

    /// What was kept as `kind` for `key`; `None` if nothing was, or if it is damaged or not ours
    /// (it is then thrown away).
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

    /// [`Cache::get`] for a reader that has no use for the whole in one piece.
    pub(crate) fn entry(&self, kind: Kind, key: &Key) -> Option<Entry<'_>> {
        let open = self.0.as_ref()?;
        let name = open.name(kind, key);
        let (file, size) = open.folder.open(&name, open.limit.saturating_add(TRAILER as u64))?;
        let len = size.checked_sub(TRAILER as u64)?;
        Some(Entry { open, name, file, len, read: Checksum::new(&open.secret) })
    }

    /// Keeps `payload`, and returns whether it did. Entries that were not used for longest make room.
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

    /// Where an entry lies, if it is there or not.
    #[must_use]
    pub fn path_of(&self, kind: Kind, key: &Key) -> Option<PathBuf> {
        let open = self.0.as_ref()?;
        Some(open.folder.path().join(open.name(kind, key)))
    }

    /// The plan for `elf`: the one kept, or a new one, which is then kept.
    ///
    /// # Errors
    ///
    /// Those of [`plan::plan`].
    pub fn plan(&self, elf: &[u8]) -> Result<Plan, PlanError> {
        let key = self.key(elf);
        match key.as_ref().and_then(|key| self.kept_plan(key)).filter(|plan| plan.is_for(elf)) {
            Some(plan) => Ok(plan),
            None => self.new_plan(key.as_ref(), elf),
        }
    }

    /// The plan kept for `key`, if there is one.
    #[must_use]
    pub fn kept_plan(&self, key: &Key) -> Option<Plan> {
        Plan::from_bytes(&self.get(Kind::Plan, key)?)
    }

    /// A new plan for `elf`, which is kept if there is a `key`.
    ///
    /// # Errors
    ///
    /// Those of [`plan::plan`].
    pub fn new_plan(&self, key: Option<&Key>, elf: &[u8]) -> Result<Plan, PlanError> {
        let plan = plan::plan(elf)?;
        if let Some(key) = key {
            self.put(Kind::Plan, key, &plan.to_bytes());
        }
        Ok(plan)
    }
}

/// Whether two files in the same `state` are the same: where the file system is one that puts
/// down the time of every change, by writing or through a mapping, and the last one is not so
/// recent that another could have come within the clock's tick.
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
    /// The file name of an entry: the only place where one is made, so that none lacks the build.
    fn name(&self, kind: Kind, key: &Key) -> String {
        format!("{}-{}-{}", kind.name(), self.build.as_str(), key.0)
    }

    /// Whether to look for entries to drop, now that one of so many bytes is new: always if it is large beside the limit.
    fn is_to_shrink(&self, bytes: u64) -> bool {
        let drawn = RandomState::new().hash_one(bytes) % self.limit.max(1);
        drawn < bytes.saturating_mul(LOOKS)
    }

    /// A hash that cannot be aimed at without the secret. Its algorithm may change with the compiler, which makes
    /// another build.
    fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.secret);
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        hasher.finish()
    }

    fn trailer(&self, name: &str, payload: &[u8]) -> [u8; TRAILER] {
        self.trailer_of(name, checksum(&self.secret, payload))
    }

    fn trailer_of(&self, name: &str, sum: u64) -> [u8; TRAILER] {
        let mut trailer = [0; TRAILER];
        let (magic, rest) = trailer.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        rest.copy_from_slice(&self.hash(&[name.as_bytes(), &sum.to_le_bytes()]).to_le_bytes());
        trailer
    }
}

/// An entry that is read piece by piece. Nothing of it is to be believed before [`Entry::ends_as_kept`] has said so.
pub(crate) struct Entry<'a> {
    open: &'a Open,
    name: String,
    file: File,
    len: u64,
    /// Of what has been read in order.
    read: Checksum,
}

impl Entry<'_> {
    /// Bytes of its payload.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `bytes` with what stands at `at`, ahead of its turn.
    pub(crate) fn peek(&self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.file.read_exact_at(bytes, at).ok()
    }

    /// Fills `bytes` with what stands at `at`, which is where the last piece ended.
    pub(crate) fn read(&mut self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.peek(at, bytes)?;
        self.read.add(bytes);
        Some(())
    }

    /// Takes `bytes`, which were peeked at, for the next piece.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.read.add(bytes);
    }

    /// Whether what was read, from the first byte to the last, is what was kept. If not, it is thrown away.
    pub(crate) fn ends_as_kept(self) -> bool {
        let mut trailer = [0; TRAILER];
        let read = self.file.read_exact_at(&mut trailer, self.len).is_ok();
        let intact = read && trailer == self.open.trailer_of(&self.name, self.read.end());
        if !intact {
            self.open.folder.remove(&self.name);
        }
        intact
    }
}

/// The folder's secret, made at first use.
fn secret(folder: &Folder) -> Option<[u8; SECRET_SIZE]> {
    let read = || folder.read(SECRET, SECRET_SIZE as u64)?.try_into().ok();
    read().or_else(|| {
        let mut fresh = [0; SECRET_SIZE];
        let mut random = systoll_files::kernel("/dev/urandom").ok()?;
        std::io::Read::read_exact(&mut random, &mut fresh).ok()?;
        let _ = folder.write(SECRET, &[&fresh]);
        // Another systoll may have been as quick: the last one's holds.
        read()
    })
}
