//! Separate debug files: those that distributions install, those linked by `objcopy --add-gnu-debuglink`, the one
//! inside the file itself (`.gnu_debugdata`), and those that `debuginfod-find` fetches.

use crate::elf::ElfFile;
use crate::mapped::{self, FileBytes};
use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use systoll_binfile::{c_str, half};

/// Folder in which distributions install debug files (gdb's default `debug-file-directory`).
const ROOT: &str = "/usr/lib/debug";
/// Environment variable with the folders to search instead, separated by colons.
const ROOTS_VARIABLE: &str = "SYSTOLL_DEBUG_PATH";
/// Environment variable with the servers that `debuginfod-find` asks; without it no server is asked
/// (debuginfod-find(1)).
const SERVERS_VARIABLE: &str = "DEBUGINFOD_URLS";
/// Time that all downloads of a run may take together; the report waits for them.
const MAX_FETCHING: Duration = Duration::from_secs(20);
/// Bytes of an unpacked `.gnu_debugdata`, at most.
const MAX_UNPACKED: u64 = 64 << 20;
/// Memory for unpacking it, at most, KiB.
const MAX_DICTIONARY_KIB: u32 = 64 << 10;

/// A separate debug file.
#[derive(Debug)]
pub(crate) struct DebugFile {
    pub(crate) elf: ElfFile,
}

/// Finds the debug file of `elf`, whose path in the target is `path`.
pub(crate) fn find(elf: &ElfFile, path: &str) -> Option<DebugFile> {
    by_build_id(elf).or_else(|| by_link(elf, Path::new(path))).or_else(|| inside(elf))
}

/// Returns the folders that hold debug files.
fn roots() -> &'static [PathBuf] {
    static ROOTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    ROOTS.get_or_init(|| match std::env::var_os(ROOTS_VARIABLE) {
        Some(folders) => std::env::split_paths(&folders).filter(|f| f.is_absolute()).collect(),
        None => vec![PathBuf::from(ROOT)],
    })
}

fn open(path: PathBuf) -> Option<DebugFile> {
    let elf = ElfFile::parse(mapped::open_file(&path).ok()?)?;
    Some(DebugFile { elf })
}

/// Returns one number that stands for the debug files that `elf` can have and for their states; zero if there are
/// none. Does not open them.
pub(crate) fn state(elf: &ElfFile, path: &str) -> u64 {
    let link = link(elf).map_or_else(Vec::new, |link| link.places(Path::new(path)));
    let found = places_of_build_id(elf).into_iter().chain(link);
    let stated = found.filter_map(|path| Some((std::fs::metadata(&path).ok()?, path)));
    stated.fold(0, |before, (m, path)| {
        let state = (m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
        FixedState::with_seed(before).hash_one((path, state))
    })
}

fn places_of_build_id(elf: &ElfFile) -> Vec<PathBuf> {
    let split = elf.build_id.as_deref().and_then(|id| id.split_at_checked(2));
    let Some((first, rest)) = split else { return Vec::new() };
    let name = format!(".build-id/{first}/{rest}.debug");
    roots().iter().map(|root| root.join(&name)).collect()
}

fn by_build_id(elf: &ElfFile) -> Option<DebugFile> {
    // The link in that folder may lead to the stripped file itself.
    let is_it = |found: &DebugFile| found.elf.build_id == elf.build_id && found.elf.section(".symtab").is_some();
    places_of_build_id(elf).into_iter().filter_map(open).find(is_it)
}

/// Reads the debug file in `.gnu_debugdata`: an ELF file with symbols only, packed by xz (gdb's "MiniDebugInfo").
fn inside(elf: &ElfFile) -> Option<DebugFile> {
    let packed = elf.section_data(elf.section(".gnu_debugdata")?)?;
    let reader = lzma_rust2::XzReader::new_mem_limit(packed.as_slice(), false, MAX_DICTIONARY_KIB);
    let mut bytes = Vec::new();
    reader.take(MAX_UNPACKED).read_to_end(&mut bytes).ok()?;
    let elf = ElfFile::parse(FileBytes::Memory(bytes.into()))?;
    Some(DebugFile { elf })
}

/// Returns true if the user has named servers to ask for debug files.
pub(crate) fn servers_are_named() -> bool {
    std::env::var_os(SERVERS_VARIABLE).is_some_and(|servers| !servers.is_empty())
}

/// Fetches the debug file of `elf` with `debuginfod-find`, if the user has named servers to ask. This takes time, so
/// call it only when no target waits.
pub(crate) fn fetch(elf: &ElfFile) -> Option<DebugFile> {
    static SPENT_MS: AtomicU64 = AtomicU64::new(0);
    let id = elf.build_id.as_deref()?;
    if !servers_are_named() {
        return None;
    }
    let left = MAX_FETCHING.checked_sub(Duration::from_millis(SPENT_MS.load(Ordering::Relaxed)))?;
    let start = Instant::now();
    let path = fetched(id, left);
    SPENT_MS.fetch_add(start.elapsed().as_millis() as u64, Ordering::Relaxed);
    open(path?).filter(|found| found.elf.build_id == elf.build_id)
}

/// Returns the path at which `debuginfod-find` has stored the debug file of this build-id; `None` if it did not find
/// the file in time.
fn fetched(id: &str, limit: Duration) -> Option<PathBuf> {
    const PAUSE: Duration = Duration::from_millis(2);
    const LONGEST_PATH: u64 = 4096;
    let mut command = Command::new(systoll_trust::helper("debuginfod-find")?);
    command.args(["debuginfo", id]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < limit => std::thread::sleep(PAUSE),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut path = String::new();
    child.stdout.take()?.take(LONGEST_PATH).read_to_string(&mut path).ok().filter(|_| status.success())?;
    Some(PathBuf::from(path.trim_end_matches('\n')))
}

/// The contents of `.gnu_debuglink`: a file's name, and its CRC.
struct Link {
    name: String,
    crc: u32,
}

impl Link {
    /// Returns the paths at which the debug file may lie, for a file whose path in the target is `path`.
    fn places(&self, path: &Path) -> Vec<PathBuf> {
        let Some(folder) = path.parent() else { return Vec::new() };
        let Ok(below) = folder.strip_prefix("/") else { return Vec::new() };
        let installed = roots().iter().map(|root| root.join(below).join(&self.name));
        [folder.join(&self.name), folder.join(".debug").join(&self.name)].into_iter().chain(installed).collect()
    }
}

/// Reads `.gnu_debuglink`, which holds a file name, padded to a multiple of 4 bytes, and the CRC of the file.
fn link(elf: &ElfFile) -> Option<Link> {
    let link = elf.section_data(elf.section(".gnu_debuglink")?)?;
    let name = c_str(&link, 0)?;
    let crc = half(&link, name.len().checked_add(1)?.checked_next_multiple_of(4)?)?;
    let name = std::str::from_utf8(name).ok().filter(|n| !n.contains('/') && !n.is_empty())?;
    Some(Link { name: name.to_owned(), crc })
}

fn by_link(elf: &ElfFile, path: &Path) -> Option<DebugFile> {
    let link = link(elf)?;
    link.places(path).into_iter().filter_map(open).find(|found| belongs(elf, &found.elf, link.crc))
}

fn belongs(elf: &ElfFile, debug: &ElfFile, crc: u32) -> bool {
    if elf.build_id.is_some() && debug.build_id.is_some() {
        return elf.build_id == debug.build_id;
    }
    let Some(bytes) = debug.bytes.read_all() else { return false };
    let mut sum = flate2::Crc::new();
    sum.update(&bytes);
    sum.sum() == crc
}

/// Returns true if the debug file refers to another one, which holds the parts that several share.
pub(crate) fn has_common_part(debug: &ElfFile) -> bool {
    debug.section(".gnu_debugaltlink").is_some()
}

/// Opens the file that holds the parts that `debug` shares with others: `.gnu_debugaltlink` has its path and build-id.
pub(crate) fn common_part(debug: &ElfFile) -> Option<ElfFile> {
    let link = debug.section_data(debug.section(".gnu_debugaltlink")?)?;
    let name = std::str::from_utf8(c_str(&link, 0)?).ok()?;
    let id: String = link.get(name.len() + 1..)?.iter().map(|b| format!("{b:02x}")).collect();
    // The path is relative to the debug file's folder below `.build-id`; in practice it is always `.dwz/…` below the
    // root.
    let below = name.split("/.dwz/").nth(1).or_else(|| name.strip_prefix(".dwz/"));
    let by_name = below.filter(|n| !n.contains("..")).map(|n| format!(".dwz/{n}"));
    let by_id = id.split_at_checked(2).map(|(a, b)| format!(".build-id/{a}/{b}.debug"));
    let relative: Vec<_> = [by_name, by_id].into_iter().flatten().collect();
    let absolute = Some(PathBuf::from(name)).filter(|p| p.is_absolute());
    roots()
        .iter()
        .flat_map(|root| relative.iter().map(|name| root.join(name)))
        .chain(absolute)
        .filter_map(open)
        .map(|found| found.elf)
        .find(|elf| elf.build_id.as_ref() == Some(&id))
}
