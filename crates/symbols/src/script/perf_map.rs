//! Names of functions compiled at run time, from the file that run-times write for profilers: `/tmp/perf-PID.map`,
//! lines of start, size (both hexadecimal) and name (tools/perf/Documentation/jit-interface.txt of Linux).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use systoll_files::Links;

/// Bytes read of a map, at most.
const MAX_BYTES: u64 = 64 << 20;
/// Functions remembered of a map, at most.
const MAX_FUNCTIONS: usize = 1 << 19;
/// Bytes of a line, at most; longer lines are skipped.
const MAX_LINE: usize = 4096;
/// Bytes read at once.
const PIECE: usize = 1 << 16;

/// A process's map, read as far as it has been written.
#[derive(Debug)]
pub(crate) struct PerfMap {
    file: File,
    read_to: u64,
    /// Start of a line whose end has not been written yet.
    rest: Vec<u8>,
    functions: Functions,
}

/// Functions by address; where they overlap, the newest one.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    by_start: BTreeMap<u64, (u64, Arc<str>)>,
}

impl PerfMap {
    /// Opens a map. Returns `None` if there is none, or if it does not belong to `uid`, since every user can put a
    /// file there.
    pub(crate) fn open(path: &Path, uid: u32) -> Option<Self> {
        let (file, metadata) = systoll_files::open(path, Links::Refuse).ok()?;
        (metadata.uid() == uid).then(|| Self { file, read_to: 0, rest: Vec::new(), functions: Functions::default() })
    }

    /// Returns the name of the function around `address`.
    pub(crate) fn name(&mut self, address: u64) -> Option<Arc<str>> {
        self.read_on();
        self.functions.name(address)
    }

    /// Returns true if the file at `path` is another one by now, or was written anew.
    pub(crate) fn is_stale(&self, path: &Path) -> bool {
        let (Ok(now), Ok(own)) = (path.symlink_metadata(), self.file.metadata()) else { return false };
        (now.dev(), now.ino()) != (own.dev(), own.ino()) || own.len() < self.read_to
    }

    fn read_on(&mut self) {
        let mut piece = vec![0; PIECE];
        while self.read_to < MAX_BYTES {
            let Ok(got @ 1..) = self.file.read_at(&mut piece, self.read_to) else { return };
            self.read_to += got as u64;
            self.rest.extend(piece.iter().take(got));
            let Some(end) = self.rest.iter().rposition(|b| *b == b'\n') else {
                // No line of a map is this long. It is dropped, and its remainder is parsed as a line of its own.
                if self.rest.len() > MAX_LINE {
                    self.rest.clear();
                }
                continue;
            };
            let rest = self.rest.split_off(end + 1);
            self.functions.add(&self.rest);
            self.rest = rest;
        }
    }
}

impl Functions {
    /// Adds the functions of whole lines.
    pub(crate) fn add(&mut self, lines: &[u8]) {
        for line in lines.split(|b| *b == b'\n').filter(|l| l.len() <= MAX_LINE) {
            if let Some((start, end, name)) = parse(line) {
                self.insert(start, end, name);
            }
        }
    }

    fn insert(&mut self, start: u64, end: u64, name: Arc<str>) {
        while let Some((at, _)) = self.by_start.range(start..end).next().map(|(at, f)| (*at, f.0)) {
            self.by_start.remove(&at);
        }
        if let Some((_, before)) = self.by_start.range_mut(..start).next_back() {
            before.0 = before.0.min(start);
        }
        if self.by_start.len() < MAX_FUNCTIONS {
            self.by_start.insert(start, (end, name));
        }
    }

    pub(crate) fn name(&self, address: u64) -> Option<Arc<str>> {
        let (_, (end, name)) = self.by_start.range(..=address).next_back()?;
        (address < *end).then(|| Arc::clone(name))
    }
}

/// Returns the start, the end and the name in a line.
fn parse(line: &[u8]) -> Option<(u64, u64, Arc<str>)> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.splitn(3, ' ');
    let mut hex = || {
        let field = fields.next()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (start, size) = (hex()?, hex()?);
    let name = fields.next()?.trim();
    let end = start.checked_add(size)?;
    (size > 0 && !name.is_empty()).then(|| (start, end, name.into()))
}

/// A function as a map names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compiled<'n> {
    pub(crate) function: &'n str,
    pub(crate) file: Option<&'n str>,
    /// True if the function belongs to the run-time's own library.
    pub(crate) is_library: bool,
}

/// Parses the name that V8 gives to a function of a script: `JS:*render /srv/app.js:5:16`, with the kind of its code
/// and the place where it begins. Returns `None` for other names.
pub(crate) fn of_v8(name: &str) -> Option<Compiled<'_>> {
    let (kind, rest) = name.split_once(':')?;
    if !matches!(kind, "JS" | "LazyCompile" | "InterpretedFunction" | "Function" | "Script" | "Eval") {
        return None;
    }
    let rest = rest.trim_start_matches(['~', '*', '^', '+']);
    let (function, place) = rest.split_once(' ')?;
    let file = place.rsplitn(3, ':').nth(2).unwrap_or(place);
    let file = file.strip_prefix("file://").unwrap_or(file);
    let function = match function {
        "" if matches!(kind, "Script" | "Eval") => "(script)",
        "" => "(anonymous)",
        named => named,
    };
    Some(Compiled { function, file: Some(file), is_library: file.starts_with("node:") || file.is_empty() })
}

/// Parses the name that HotSpot gives to a method: `int A.leaf(int)`, or with perf-map-agent `LA;::leaf`. Returns
/// `None` for other names.
pub(crate) fn of_hotspot(name: &str) -> Option<Compiled<'_>> {
    const LIBRARY: [&str; 4] = ["java", "javax", "jdk", "sun"];
    let function = match name.split_once('(') {
        Some((typed, _)) => typed.rsplit(' ').next().filter(|f| f.contains('.'))?,
        None => name.contains(";::").then_some(name)?,
    };
    let package = function.strip_prefix('L').filter(|f| f.contains(";::")).unwrap_or(function);
    let is_library = package.split(['.', '/']).next().is_some_and(|p| LIBRARY.contains(&p));
    Some(Compiled { function, file: None, is_library })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_newest_function_at_an_address_counts() {
        let mut functions = Functions::default();
        functions.add(b"1000 100 old\n1080 10 inner\n0x2000 0x20 far\nno line\n3000 0 empty\n");
        let name = |f: &Functions, at| f.name(at).as_deref().map(str::to_owned);
        assert_eq!(name(&functions, 0x107f).as_deref(), Some("old"));
        assert_eq!(name(&functions, 0x108f).as_deref(), Some("inner"));
        // The rest of the old function, behind the inner one, is not known any more.
        assert_eq!(name(&functions, 0x1090), None);
        functions.add(b"1040 200 new name\n");
        assert_eq!(name(&functions, 0x103f).as_deref(), Some("old"));
        assert_eq!(name(&functions, 0x1085).as_deref(), Some("new name"));
        assert_eq!((name(&functions, 0x2020), name(&functions, 0x3000)), (None, None));
    }

    #[test]
    fn names_are_taken_apart() {
        let js = |n| of_v8(n).map(|c| (c.function, c.file, c.is_library));
        assert_eq!(js("JS:*render /srv/app.js:5:16"), Some(("render", Some("/srv/app.js"), false)));
        assert_eq!(js("JS:~ file:///srv/a b.mjs:1:1"), Some(("(anonymous)", Some("/srv/a b.mjs"), false)));
        assert_eq!(js("LazyCompile:~emit node:events:466:44"), Some(("emit", Some("node:events"), true)));
        assert_eq!((js("Builtin:Call"), js("RegExp:a b")), (None, None));
        let java = |n| of_hotspot(n).map(|c| (c.function, c.is_library));
        assert_eq!(java("long A.leaf(int)"), Some(("A.leaf", false)));
        assert_eq!(java("java.lang.String java.util.Map.get(java.lang.Object)"), Some(("java.util.Map.get", true)));
        assert_eq!(java("Ljava/util/HashMap;::get"), Some(("Ljava/util/HashMap;::get", true)));
        assert_eq!(
            (java("Interpreter"), java("I2C/C2I adapters(0xbb)"), java("LA;::leaf")),
            (None, None, Some(("LA;::leaf", false)))
        );
    }

    proptest! {
        #[test]
        fn any_map_is_read(lines in proptest::collection::vec("[0-9a-fx]{0,17} ?[0-9a-f]{0,17} ?.{0,20}\n?", 0..50), at: u64) {
            let mut functions = Functions::default();
            functions.add(lines.concat().as_bytes());
            functions.name(at);
            for line in &lines {
                of_v8(line);
                of_hotspot(line);
            }
        }
    }
}
