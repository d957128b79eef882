//! Recognises the moment at which watching ends, in the calls that the command makes.

use crate::backend::{HowToWatch, Launch, Moment};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use systoll_model::Signature;

/// Calls that write text to a descriptor.
const WRITES: [&str; 2] = ["write", "writev"];
/// Calls that open a script.
const OPENS: [&str; 2] = ["open", "openat"];
/// Bytes read at a time of what a call writes.
const PIECE: usize = 64 << 10;
/// Bytes examined of what one call writes, at most: longer ones write data, not lines for people.
const MOST_WRITTEN: usize = 1 << 20;
/// Buffers of a `writev` that are examined, at most: the kernel takes no more (UIO_MAXIOV).
const MOST_BUFFERS: usize = 1024;
/// Bytes of a path, at most (PATH_MAX).
const MOST_PATH: usize = 4096;

/// Reads the memory of a thread's process: from an address into a buffer, as many bytes as are there.
pub(crate) type Reads<'a> = &'a dyn Fn(u64, &mut [u8]) -> usize;

/// A file, by its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(path: impl AsRef<Path>) -> Option<Self> {
        fs::metadata(path).ok().map(|file| Self(file.dev(), file.ino()))
    }
}

/// The end of what was written to a file so far: as many bytes as a text may have begun in.
struct Written {
    file: FileId,
    last: Vec<u8>,
}

/// The moment that is waited for.
#[derive(Default)]
pub(crate) struct Awaited {
    moment: Option<Moment>,
    /// Files that are the command's standard output and error.
    outputs: Vec<Written>,
    /// Files among the command's arguments, one of which may be a script.
    scripts: Vec<FileId>,
    seen: bool,
    is_told: bool,
}

impl Awaited {
    /// Returns the moment that the watching of a command waits for.
    pub(crate) fn of(launch: &Launch) -> Self {
        let mut awaited = Self { moment: launch.how.until.clone(), ..Self::default() };
        match &awaited.moment {
            Some(Moment::Line(_)) => awaited.outputs = outputs(launch),
            Some(Moment::Main) => awaited.scripts = scripts(launch),
            None => {}
        }
        awaited
    }

    /// Returns true if a moment is waited for and has not come.
    pub(crate) fn waits(&self) -> bool {
        self.moment.is_some() && !self.seen
    }

    /// Returns true if threads have to ask at each call of this kind.
    pub(crate) fn asks_at(&self, signature: &Signature) -> bool {
        !self.seen && self.moment.as_ref().is_some_and(|moment| is_asked(moment, signature))
    }

    /// Notes a call that a thread is about to make.
    pub(crate) fn entered(&mut self, tid: i32, signature: &Signature, args: &[u64; 6], read: Reads<'_>) {
        if !self.asks_at(signature) {
            return;
        }
        self.seen = match &self.moment {
            Some(Moment::Line(text)) => {
                let file = FileId::of(format!("/proc/{tid}/fd/{}", args[0] as i32));
                let written = self.outputs.iter_mut().find(|written| Some(written.file) == file);
                written.is_some_and(|written| written.holds(text, signature, args, read))
            }
            _ => path_of(tid, signature, args, read).and_then(FileId::of).is_some_and(|id| self.scripts.contains(&id)),
        };
    }

    /// Notes that `main` of a program begins, which the command's own process runs. `scripted` is true if that program
    /// may run a script.
    pub(crate) fn main_began(&mut self, scripted: bool) {
        let by_script = scripted && !self.scripts.is_empty();
        self.seen |= self.moment == Some(Moment::Main) && !by_script;
    }

    /// Returns true if the moment has come.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen
    }

    /// Returns true the first time after the moment has come.
    pub(crate) fn take_seen(&mut self) -> bool {
        self.seen && !std::mem::replace(&mut self.is_told, true)
    }
}

/// Returns true if calls of this kind may show the moment that `how` waits for.
pub(crate) fn is_asked_at(how: &HowToWatch, signature: &Signature) -> bool {
    how.until.as_ref().is_some_and(|moment| is_asked(moment, signature))
}

fn is_asked(moment: &Moment, signature: &Signature) -> bool {
    match moment {
        Moment::Line(_) => WRITES.contains(&signature.name),
        Moment::Main => OPENS.contains(&signature.name),
    }
}

/// Returns the files that are the command's standard output and error, each once.
fn outputs(launch: &Launch) -> Vec<Written> {
    let stream = |at: usize| launch.streams.get(at).and_then(Option::as_ref).map_or(at as i32, |file| file.as_raw_fd());
    let mut all: Vec<Written> = Vec::new();
    for fd in [stream(1), stream(2)] {
        if let Some(file) = FileId::of(format!("/proc/self/fd/{fd}"))
            && all.iter().all(|written| written.file != file)
        {
            all.push(Written { file, last: Vec::new() });
        }
    }
    all
}

/// Returns the files among the command's arguments.
fn scripts(launch: &Launch) -> Vec<FileId> {
    let cwd = launch.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let files = launch.command.iter().skip(1).map(|word| cwd.join(word)).filter(|path| path.is_file());
    files.filter_map(FileId::of).collect()
}

/// Returns the path that a call names, as we can open it.
fn path_of(tid: i32, signature: &Signature, args: &[u64; 6], read: Reads<'_>) -> Option<PathBuf> {
    let at = usize::from(signature.name == "openat");
    let mut bytes = vec![0; MOST_PATH];
    // The string may end right before memory that does not exist.
    let address = args[at];
    let to_page = 4096 - (address as usize & 4095);
    let mut n = read(address, bytes.get_mut(..to_page)?);
    if n == to_page && !bytes.get(..n)?.contains(&0) {
        n += read(address.wrapping_add(n as u64), bytes.get_mut(n..)?);
    }
    let end = bytes.get(..n)?.iter().position(|byte| *byte == 0)?;
    let path = Path::new(std::ffi::OsStr::from_bytes(bytes.get(..end)?));
    if let Ok(below_root) = path.strip_prefix("/") {
        return Some(Path::new(&format!("/proc/{tid}/root")).join(below_root));
    }
    let from =
        if at == 1 && args[0] as i32 != libc::AT_FDCWD { format!("fd/{}", args[0] as i32) } else { "cwd".into() };
    Some(Path::new(&format!("/proc/{tid}/{from}")).join(path))
}

impl Written {
    /// Adds what a call writes. Returns true if `text` is in it, or began in what was written before and ends in it.
    fn holds(&mut self, text: &[u8], signature: &Signature, args: &[u64; 6], read: Reads<'_>) -> bool {
        let mut left = MOST_WRITTEN;
        if signature.name == "write" {
            return self.add(text, (args[1], args[2]), &mut left, read);
        }
        let count = usize::try_from(args[2]).unwrap_or(usize::MAX).min(MOST_BUFFERS);
        let mut buffers = vec![0; count * 16];
        let n = read(args[1], &mut buffers);
        let words = |pair: &[u8]| {
            let (address, len) = pair.split_first_chunk::<8>()?;
            Some((u64::from_ne_bytes(*address), u64::from_ne_bytes(*len.first_chunk::<8>()?)))
        };
        let pairs = buffers.get(..n).unwrap_or_default().chunks_exact(16).filter_map(words);
        pairs.into_iter().any(|buffer| self.add(text, buffer, &mut left, read))
    }

    fn add(&mut self, text: &[u8], (mut address, len): (u64, u64), left: &mut usize, read: Reads<'_>) -> bool {
        let mut len = usize::try_from(len).unwrap_or(usize::MAX).min(*left);
        *left -= len;
        let mut piece = vec![0; PIECE.min(len)];
        while len > 0 {
            let most = piece.len().min(len);
            let n = read(address, piece.get_mut(..most).unwrap_or_default());
            if n == 0 {
                return false;
            }
            self.last.extend_from_slice(piece.get(..n).unwrap_or_default());
            if contains(&self.last, text) {
                return true;
            }
            // The text holds no line feed, so it can't have begun before one.
            let kept = self.last.len().saturating_sub(text.len().saturating_sub(1));
            self.last.drain(..kept);
            address = address.wrapping_add(n as u64);
            len -= n;
        }
        false
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && bytes.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    fn signature(name: &str) -> &'static Signature {
        systoll_model::Sysno::from_name(name).and_then(systoll_model::Sysno::signature).unwrap()
    }

    /// Reads our own memory as that of another process is read.
    fn own(address: u64, buffer: &mut [u8]) -> usize {
        let memory = File::open("/proc/self/mem").unwrap();
        memory.read_at(buffer, address).unwrap_or(0)
    }

    /// Returns a launch that waits for a line on this file.
    fn waits_for(text: &str, file: &Arc<File>) -> Awaited {
        let how = HowToWatch { until: Some(Moment::Line(text.into())), ..HowToWatch::default() };
        let streams = [None, Some(Arc::clone(file)), Some(Arc::clone(file))];
        Awaited::of(&Launch { how, streams, ..Launch::default() })
    }

    #[test]
    fn a_line_is_found_in_pieces_and_on_the_streams_alone() {
        let (out, other) = (Arc::new(tempfile::tempfile().unwrap()), tempfile::tempfile().unwrap());
        let tid = std::process::id() as i32;
        let writes = |awaited: &mut Awaited, file: &File, bytes: &[u8]| {
            let args = [file.as_raw_fd() as u64, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0, 0];
            awaited.entered(tid, signature("write"), &args, &own);
            awaited.take_seen()
        };
        let mut awaited = waits_for("ready to serve", &out);
        assert!(!writes(&mut awaited, &other, b"ready to serve\n"));
        assert!(!writes(&mut awaited, &out, b"ready to\n serve\nready"));
        assert!(!writes(&mut awaited, &out, b" to se"));
        assert!(writes(&mut awaited, &out, b"rve now"));
        assert!(!writes(&mut awaited, &out, b"ready to serve"), "told twice");
        let long = [vec![b'x'; PIECE - 3], b"ready to serve".to_vec()].concat();
        assert!(writes(&mut waits_for("ready to serve", &out), &out, &long));
    }

    #[test]
    fn the_buffers_of_one_call_are_one_text() {
        let out = Arc::new(tempfile::tempfile().unwrap());
        let (head, tail) = ("[info] list", "ening\n");
        let buffers = [head.as_ptr() as u64, head.len() as u64, tail.as_ptr() as u64, tail.len() as u64];
        let mut awaited = waits_for("listening", &out);
        let args = [out.as_raw_fd() as u64, buffers.as_ptr() as u64, 2, 0, 0, 0];
        awaited.entered(std::process::id() as i32, signature("writev"), &args, &own);
        assert!(awaited.is_seen());
        // A hostile call names more buffers than there are.
        let args = [out.as_raw_fd() as u64, 8, u64::MAX, 0, 0, 0];
        waits_for("x", &out).entered(std::process::id() as i32, signature("writev"), &args, &own);
    }

    #[test]
    fn the_main_of_a_script_is_where_its_interpreter_opens_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("app.py"), "").unwrap();
        std::fs::write(dir.path().join("other.py"), "").unwrap();
        let how = HowToWatch { until: Some(Moment::Main), ..HowToWatch::default() };
        let command = vec!["python3".into(), "app.py".into()];
        let launch = Launch { how, command, cwd: Some(dir.path().into()), ..Launch::default() };
        let opens = |awaited: &mut Awaited, name: &str| {
            let path = std::ffi::CString::new(dir.path().join(name).as_os_str().as_bytes()).unwrap();
            let args = [libc::AT_FDCWD as u64, path.as_ptr() as u64, 0, 0, 0, 0];
            awaited.entered(std::process::id() as i32, signature("openat"), &args, &own);
            awaited.is_seen()
        };
        let mut awaited = Awaited::of(&launch);
        awaited.main_began(true);
        assert!(!awaited.is_seen() && !opens(&mut awaited, "other.py") && opens(&mut awaited, "app.py"));
        let mut compiled = Awaited::of(&launch);
        compiled.main_began(false);
        assert!(compiled.is_seen());
    }
}
