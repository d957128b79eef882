//! Names of functions that V8 and HotSpot compile at run time, from a map that the process writes.
//!
//! Such a map tells the function's range, not the line that is executed.

use super::perf_map::{PerfMap, of_hotspot, of_v8};
use super::thread::Thread;
use crate::lines::ScriptLine;
use crate::{ModuleKey, PlacedFrame, RawFrame, Symbols};
use std::collections::HashMap;
use std::path::PathBuf;
use systoll_model::{FrameClass, Language};

/// Processes whose maps are kept open, at most.
const MAX_PROCESSES: usize = 64;

/// A just-in-time compiler of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiler {
    /// The compiler of Node.
    V8,
    /// The compiler of Java.
    HotSpot,
}

impl Compiler {
    /// Returns the compiler in a file of this name.
    pub(crate) fn of(file: &str) -> Option<Self> {
        match file {
            "node" | "nodejs" => Some(Self::V8),
            "libjvm.so" => Some(Self::HotSpot),
            name if name.starts_with("libnode.so") => Some(Self::V8),
            _ => None,
        }
    }

    fn missing(self) -> &'static str {
        match self {
            Self::V8 => {
                "no names of JavaScript's functions: they need node --perf-basic-prof-only-functions \
                 --interpreted-frames-native-stack"
            }
            Self::HotSpot => {
                "no names of Java's methods: they need -XX:+PreserveFramePointer and a map of compiled code \
                 while it runs (perf-map-agent, or jcmd PID Compiler.perfmap)"
            }
        }
    }
}

/// Returns true if a library comes with one of the compilers, so that its calls are made for
/// scripts.
pub(crate) fn is_bundled(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let of_java = ["libjava.so", "libnio.so", "libnet.so", "libextnet.so", "libzip.so", "libjli.so", "libjimage.so"];
    file.starts_with("libuv.so") || of_java.contains(&file)
}

/// The maps of processes, by process id; `None` for a process without one.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    maps: HashMap<i32, Option<PerfMap>>,
}

/// A process id, and the path and owner of the process's map.
struct Process {
    pid: i32,
    map: PathBuf,
    uid: u32,
}

impl Processes {
    /// Returns the frames with the names of compiled functions between them; `None` if there is no
    /// map.
    pub(crate) fn name(
        &mut self,
        symbols: &mut Symbols,
        placed: &[PlacedFrame],
        thread: Thread,
        (key, compiler): (ModuleKey, Compiler),
    ) -> Option<Vec<RawFrame>> {
        let process = process(thread.tid)?;
        let Some(map) = self.map(&process) else {
            let path = symbols.path(key).unwrap_or_default();
            symbols.complain(format!("{path}: {}", compiler.missing()));
            return None;
        };
        let mut frames = Vec::with_capacity(placed.len());
        let mut any = false;
        for placed in placed {
            frames.push(placed.frame);
            if placed.frame.module.is_none() {
                let line = map.name(placed.frame.lookup()).and_then(|name| line(compiler, &name));
                let frame = line.and_then(|(line, class)| symbols.scripts.lines.frame(line, class));
                any |= frame.is_some();
                frames.extend(frame);
            }
        }
        if any {
            symbols.scripts.runtimes.insert(key);
            symbols.scripts.any_compiled = true;
        }
        Some(frames)
    }

    /// Returns true if any process has a map.
    pub(crate) fn any(&self) -> bool {
        self.maps.values().any(Option::is_some)
    }

    fn map(&mut self, process: &Process) -> Option<&mut PerfMap> {
        if self.maps.len() >= MAX_PROCESSES && !self.maps.contains_key(&process.pid) {
            self.maps.clear();
        }
        let map = self.maps.entry(process.pid).or_default();
        if map.as_ref().is_none_or(|m| m.is_stale(&process.map)) {
            *map = PerfMap::open(&process.map, process.uid);
        }
        map.as_mut()
    }
}

fn line(compiler: Compiler, name: &str) -> Option<(ScriptLine, FrameClass)> {
    let (language, compiled) = match compiler {
        Compiler::V8 => (Language::JavaScript, of_v8(name)?),
        Compiler::HotSpot => (Language::Java, of_hotspot(name)?),
    };
    let class = if compiled.is_library { FrameClass::Runtime } else { FrameClass::User };
    let (function, file) = (compiled.function.into(), compiled.file.map(Into::into));
    Some((ScriptLine { language, function, file, line: None }, class))
}

/// Returns true if the process of `tid` has a map at all, whoever owns it.
pub(crate) fn has_map(tid: i32) -> bool {
    process(tid).is_some_and(|process| process.map.symlink_metadata().is_ok())
}

fn process(tid: i32) -> Option<Process> {
    let status = String::from_utf8(systoll_files::read_kernel(format!("/proc/{tid}/status"), 4096).ok()?).ok()?;
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    let pid = field("Tgid")?.trim().parse().ok()?;
    // The last number is the one in the process's own PID namespace, by which the map is named.
    let own: u32 = field("NStgid").and_then(|f| f.split_whitespace().last()?.parse().ok())?;
    let uid = field("Uid")?.split_whitespace().nth(1)?.parse().ok()?;
    Some(Process { pid, map: PathBuf::from(format!("/proc/{tid}/root/tmp/perf-{own}.map")), uid })
}
