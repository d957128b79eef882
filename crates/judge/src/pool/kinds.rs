//! The kinds of pools: functions by which work is given to a pool's threads, and functions of these threads.
//!
//! A stack of a pool's thread shows the work and not who wanted it. A stack of the hand-over shows who wanted it.

use systoll_model::{Frame, FrameClass, FrameId, Language};

/// A function on a stack, which may be inlined into others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'r> {
    pub(super) name: &'r str,
    pub(super) file: &'r str,
    pub(super) frame: FrameId,
    pub(super) language: Option<Language>,
    /// The library's function that the compiler inlined at the frame's call, outermost.
    pub(super) callee: Option<&'r str>,
    /// True if the function is the program's own, not a library's.
    pub(super) is_own: bool,
}

impl<'r> Function<'r> {
    /// Returns the functions of a frame, innermost first.
    pub(super) fn of(id: FrameId, frame: &'r Frame) -> impl Iterator<Item = Self> {
        frame.locations.iter().map(move |place| {
            let (name, file) = (&*place.function, place.file.as_deref().unwrap_or_default());
            let is_own = frame.class == FrameClass::User && (frame.language.is_some() || is_programs_own(name, file));
            Self { name, file, frame: id, language: frame.language, callee: frame.callee.as_deref(), is_own }
        })
    }
}

/// Returns true for a function of a Rust or Go program that belongs neither to a package from a registry nor to Rust
/// itself. If its file is unknown, returns true unless it belongs to one of the crates that tokio's pool consists of.
fn is_programs_own(name: &str, file: &str) -> bool {
    const LIBRARIES: [&str; 8] =
        ["tokio::", "core::", "std::", "alloc::", "parking_lot::", "parking_lot_core::", "lock_api::", "mio::"];
    if !file.is_empty() {
        return !["/registry/src/", "/rustc/", "/pkg/mod/"].iter().any(|folder| file.contains(folder));
    }
    let path = name.trim_start_matches('<');
    name.contains("::") && !LIBRARIES.iter().any(|krate| path.starts_with(krate))
}

/// A kind of pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Libuv,
    PythonExecutor,
    PythonPool,
    JavaExecutor,
    ForkJoin,
    ThreadPerTask,
    Virtual,
    Tokio,
    Goroutine,
    /// Not a pool: asyncio's loop, which reads, writes and accepts for the transports that the program made.
    Transport,
}

/// The part that a sampled call has in the work of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'r> {
    /// A thread of the pool makes the call for a task that has no line of the program's own, with the operation's name
    /// where the pool names it.
    Work(Kind, Option<&'r str>),
    /// The call gives work to the pool, for this line of the program and operation.
    Asks(Kind, Option<FrameId>, Option<&'r str>),
    /// The call takes work, or reports its end.
    HandsOver(Kind),
    /// The call waits for the pool's results, for this line of the program, or is made by the line that gets them.
    Awaits(Kind, FrameId),
}

/// Returns the part that a call with this stack, innermost function first, has in a pool's work; `None` if it has none,
/// or if a thread of a pool makes the call for a line of the program that is on the stack.
pub(super) fn part<'r>(stack: &[Function<'r>]) -> Option<Part<'r>> {
    // Virtual threads are carried by a pool, so they come before it.
    const KINDS: [Kind; 10] = [
        Kind::Libuv,
        Kind::PythonExecutor,
        Kind::PythonPool,
        Kind::Virtual,
        Kind::JavaExecutor,
        Kind::ThreadPerTask,
        Kind::ForkJoin,
        Kind::Tokio,
        Kind::Goroutine,
        Kind::Transport,
    ];
    KINDS.into_iter().find_map(|kind| kind.part(stack))
}

/// Prefix of the functions of libuv that ask for an operation, and of those that run it.
const UV_ASKS: &str = "uv_fs_";
const UV_RUNS: &str = "uv__fs_";
/// Suffix of a function that runs an operation until all is done: `uv__fs_write_all`.
const UV_REPEATS: &str = "_all";
/// Module of Node's own in which the streams of files are.
const FILE_STREAMS: &str = "node:internal/fs/streams";
/// Function of libuv that runs a request about files in a thread of the pool.
const UV_WORKS: &str = "uv__fs_work";
/// Operations that a thread of libuv's pool runs by calling the C library's function of the same name.
const UV_DIRECT: &[&str] = &[
    "access",
    "chmod",
    "chown",
    "fchmod",
    "fchown",
    "fsync",
    "ftruncate",
    "lchown",
    "link",
    "mkdir",
    "rename",
    "rmdir",
    "symlink",
    "unlink",
];
/// Function of libuv by which the loop notices that the pool has done something.
const UV_WOKEN: &str = "uv__async_io";
/// Prefix of tokio's functions about files, each in a module of its own.
const TOKIO_FS: &str = "tokio::fs::";
/// Beginnings of the functions by which asyncio's loop reads, writes, accepts and closes for a transport.
const TRANSPORTS: [&str; 5] =
    ["_read_ready", "_write_ready", "_sendto_ready", "_accept_connection", "_call_connection_lost"];
/// Packages and classes of Java that carry tasks.
const JAVA_CARRIERS: [&str; 7] = [
    "java.util.concurrent.",
    "java.lang.Thread.",
    "java.lang.VirtualThread",
    "java.lang.ThreadBuilders",
    "java.lang.System$",
    "jdk.internal.misc.",
    "jdk.internal.vm.",
];

impl Kind {
    /// Returns the words for an operation of the pool.
    pub(super) fn operation(self, name: &str) -> String {
        match self {
            Self::Libuv => format!("{UV_ASKS}{name}"),
            Self::Tokio => format!("{TOKIO_FS}{name}"),
            _ => name.to_owned(),
        }
    }

    /// Returns the words for the pool.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Libuv => "libuv's pool",
            Self::PythonExecutor => "a ThreadPoolExecutor",
            Self::PythonPool => "a multiprocessing pool of threads",
            Self::JavaExecutor => "a ThreadPoolExecutor",
            Self::ForkJoin => "a ForkJoinPool",
            Self::ThreadPerTask => "a thread for each task",
            Self::Virtual => "virtual threads",
            Self::Tokio => "tokio's blocking threads",
            Self::Goroutine => "goroutines",
            Self::Transport => "asyncio's transports",
        }
    }

    /// Returns the words for the calls at which the lines were seen that asked for work, or that wait for it.
    pub(super) fn asked_at(self, by_waits: bool) -> &'static str {
        match self {
            Self::Goroutine => "where their creator was called",
            Self::Transport if by_waits => "where the program uses them",
            Self::Transport => "where they were made",
            _ if by_waits => "at waits for its results",
            _ => "at its wake-ups",
        }
    }

    /// Returns true if work is handed over to threads, by calls of its own.
    pub(super) fn hands_over(self) -> bool {
        !matches!(self, Self::Goroutine | Self::Transport)
    }

    fn part<'r>(self, stack: &[Function<'r>]) -> Option<Part<'r>> {
        if let Some(at) = stack.iter().position(|f| self.submits(f))
            && stack.get(..at).is_some_and(|inner| self.only_hands_over(inner))
        {
            let outer = stack.get(at + 1..).unwrap_or_default();
            let asked = match self {
                Self::Libuv => outer.first().and_then(|f| f.name.strip_prefix(UV_ASKS)),
                Self::Tokio => tokio_asked(outer),
                _ => None,
            };
            // A file's stream asks when its reader is ready: then no line of the program is on the stack.
            let stream = || outer.iter().rfind(|f| f.file == FILE_STREAMS);
            return Some(Part::Asks(self, outer.iter().find(|f| f.is_own).or_else(stream).map(|f| f.frame), asked));
        }
        let Some(thread) = stack.iter().position(|f| self.is_thread(f)) else {
            if self == Self::Libuv && stack.iter().take_while(|f| !f.is_own).any(|f| f.name == UV_WOKEN) {
                return Some(Part::HandsOver(self));
            }
            let waits = stack.iter().rposition(|f| self.awaits(f))?;
            let line = stack.get(waits + 1..)?.iter().find(|f| f.is_own)?;
            return Some(Part::Awaits(self, line.frame));
        };
        if self == Self::Transport
            && let Some(serves) = stack.get(..thread)?.iter().position(|f| is_transports(f))
            && let Some(own) = stack.get(..serves)?.iter().rfind(|f| f.is_own)
        {
            // The protocol's method, which the transport calls.
            return Some(Part::Awaits(self, own.frame));
        }
        if self == Self::Transport
            && let Some(uses) = stack.get(..thread)?.iter().rposition(uses_transport)
            && let Some(own) = stack.get(uses + 1..thread)?.iter().find(|f| f.is_own)
        {
            return Some(Part::Awaits(self, own.frame));
        }
        let inner = stack.get(..thread).filter(|inner| !inner.iter().any(|f| f.is_own))?;
        Some(match self.task(inner, stack) {
            Some(operation) => Part::Work(self, operation),
            None if !self.hands_over() => return None,
            None => Part::HandsOver(self),
        })
    }

    /// Returns true for a function that gives work to the pool.
    fn submits(self, f: &Function<'_>) -> bool {
        let is = |names: &[&str]| names.contains(&f.name);
        match self {
            Self::Libuv => is(&["uv__work_submit"]),
            Self::PythonExecutor => is(&["submit"]) && is_in(f, Language::Python, "/concurrent/futures/thread.py"),
            Self::PythonPool => {
                is(&["apply_async", "_map_async", "imap", "imap_unordered"])
                    && is_in(f, Language::Python, "/multiprocessing/pool.py")
            }
            Self::JavaExecutor => is(&[
                "java.util.concurrent.ThreadPoolExecutor.execute",
                "java.util.concurrent.ScheduledThreadPoolExecutor.delayedExecute",
            ]),
            Self::ThreadPerTask => is(&[
                "java.util.concurrent.CompletableFuture$ThreadPerTaskExecutor.execute",
                "java.util.concurrent.ThreadPerTaskExecutor.start",
            ]),
            Self::Virtual => is(&["java.lang.VirtualThread.start"]),
            Self::ForkJoin => {
                const GIVES: [&str; 7] =
                    ["execute", "submit", "invoke", "externalSubmit", "externalPush", "poolSubmit", "lazySubmit"];
                let method = f.name.strip_prefix("java.util.concurrent.ForkJoinPool.");
                method.is_some_and(|method| GIVES.contains(&method)) || is(&["java.util.concurrent.ForkJoinTask.fork"])
            }
            // A goroutine's creator is known by name, and is any function.
            Self::Goroutine => false,
            Self::Transport => {
                let makes = ["create_", "_create_", "connect_accepted_socket", "start_server", "start_serving"];
                makes.iter().any(|name| f.name.starts_with(name))
                    && is_in(f, Language::Python, "/asyncio/base_events.py")
                    || f.name.starts_with("create_unix_") && is_in(f, Language::Python, "/asyncio/unix_events.py")
            }
            Self::Tokio => f.name.ends_with("Spawner::spawn_task") || rust(f, "spawn_task", "runtime/blocking/pool.rs"),
        }
    }

    /// Returns true for the function that each thread of the pool runs.
    fn is_thread(self, f: &Function<'_>) -> bool {
        let is = |names: &[&str]| names.contains(&f.name);
        match self {
            Self::Libuv => f.name == "worker" && f.file.ends_with("/threadpool.c"),
            Self::PythonExecutor => f.name == "_worker" && is_in(f, Language::Python, "/concurrent/futures/thread.py"),
            Self::PythonPool => f.name == "worker" && is_in(f, Language::Python, "/multiprocessing/pool.py"),
            Self::JavaExecutor => is(&["java.util.concurrent.ThreadPoolExecutor.runWorker"]),
            Self::ThreadPerTask => f
                .name
                .strip_prefix("java.util.concurrent.CompletableFuture$Async")
                .is_some_and(|method| method.ends_with(".run")),
            Self::Virtual => is(&["java.lang.VirtualThread.run"]),
            Self::ForkJoin => is(&["java.util.concurrent.ForkJoinWorkerThread.run"]),
            Self::Goroutine => is(&["runtime.goexit"]),
            Self::Transport => is(&["_run_once"]) && is_in(f, Language::Python, "/asyncio/base_events.py"),
            Self::Tokio => {
                f.name.ends_with("runtime::blocking::pool::Inner::run") || rust(f, "run", "runtime/blocking/pool.rs")
            }
        }
    }

    /// Returns true for a function that waits for the pool's results.
    fn awaits(self, f: &Function<'_>) -> bool {
        let is = |names: &[&str]| names.contains(&f.name);
        match self {
            Self::PythonExecutor => {
                is(&["result", "exception", "wait", "as_completed", "result_iterator"])
                    && is_in(f, Language::Python, "/concurrent/futures/_base.py")
            }
            Self::PythonPool => is(&["get", "wait", "next"]) && is_in(f, Language::Python, "/multiprocessing/pool.py"),
            Self::JavaExecutor => is(&[
                "java.util.concurrent.FutureTask.get",
                "java.util.concurrent.AbstractExecutorService.invokeAll",
                "java.util.concurrent.AbstractExecutorService.invokeAny",
            ]),
            Self::ForkJoin => is(&[
                "java.util.concurrent.CompletableFuture.get",
                "java.util.concurrent.CompletableFuture.join",
                "java.util.concurrent.ForkJoinTask.get",
                "java.util.concurrent.ForkJoinTask.join",
                "java.util.concurrent.ForkJoinTask.invoke",
            ]),
            Self::Libuv | Self::ThreadPerTask | Self::Virtual | Self::Tokio | Self::Goroutine | Self::Transport => {
                false
            }
        }
    }

    /// Returns the operation's name, or `None` in its place, if the functions `inner` to the one that runs a thread of
    /// the pool do a task.
    fn task<'r>(self, inner: &[Function<'r>], stack: &[Function<'r>]) -> Option<Option<&'r str>> {
        match self {
            Self::Libuv => {
                // Copying a file asks for other operations, which the same thread runs at once.
                let works = stack.iter().rposition(|f| f.name == UV_WORKS)?;
                let name = stack.get(works.checked_sub(1)?)?.name;
                let operation = name.strip_prefix(UV_RUNS).map(|name| name.strip_suffix(UV_REPEATS).unwrap_or(name));
                operation.or_else(|| UV_DIRECT.contains(&name).then_some(name)).map(Some)
            }
            // The task is what `run` calls, unless that reports the end of the task.
            Self::PythonExecutor => {
                let runs =
                    inner.iter().position(|f| f.name == "run" && f.file.ends_with("/concurrent/futures/thread.py"))?;
                let reports = |f: &Function<'_>| f.file.ends_with("/concurrent/futures/_base.py");
                (!inner.get(..runs)?.iter().any(reports)).then_some(None)
            }
            // `worker` itself calls the task; taking one and reporting its end are functions of other modules.
            Self::PythonPool => {
                let carries = |f: &Function<'_>| {
                    ["/queues.py", "/connection.py", "/threading.py", "/queue.py"]
                        .iter()
                        .any(|file| f.file.ends_with(file))
                };
                (!inner.iter().any(carries)).then_some(None)
            }
            Self::JavaExecutor | Self::ForkJoin | Self::ThreadPerTask | Self::Virtual => {
                let is_task = |f: &Function<'_>| f.language == Some(Language::Java) && !carries(f.name);
                inner.iter().any(is_task).then_some(None)
            }
            Self::Goroutine => inner.last().and_then(|f| creator(f.name)).map(Some),
            Self::Transport => inner.iter().any(is_transports).then_some(None),
            Self::Tokio => {
                let polls = |f: &Function<'_>| {
                    f.name.contains("BlockingTask") && f.name.ends_with("poll")
                        || rust(f, "poll", "runtime/blocking/task.rs")
                };
                inner.iter().any(polls).then(|| inner.iter().find_map(tokio_operation))
            }
        }
    }

    /// Returns true if the pool names the operation of some of its work only, since the compiler may have inlined it.
    pub(super) fn names_some(self) -> bool {
        self == Self::Tokio
    }

    /// Returns true if the functions inner to the one that gives work do nothing but hand it over: a pool may run a task
    /// at once in the thread that gave it.
    fn only_hands_over(self, inner: &[Function<'_>]) -> bool {
        let is_java = matches!(self, Self::JavaExecutor | Self::ForkJoin | Self::ThreadPerTask | Self::Virtual);
        !inner.iter().any(|f| f.is_own || is_java && f.language == Some(Language::Java) && !carries(f.name))
    }
}

/// Returns the function that has the `go` statement by which a goroutine began with `function`: the compiler names the
/// function literals and calls in it `creator.func1` and `creator.gowrap1`.
fn creator(function: &str) -> Option<&str> {
    let mut creator = function;
    while let Some((before, last)) = creator.rsplit_once('.') {
        let number = last.strip_prefix("gowrap").or_else(|| last.strip_prefix("func")).unwrap_or(last);
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            break;
        }
        creator = before;
    }
    (creator.len() < function.len()).then_some(creator)
}

/// Returns true for a function by which asyncio's loop serves a transport.
fn is_transports(f: &Function<'_>) -> bool {
    TRANSPORTS.iter().any(|name| f.name.starts_with(name)) && is_in(f, Language::Python, "/asyncio/selector_events.py")
}

/// Returns true for a function by which a program writes to a transport of asyncio's.
fn uses_transport(f: &Function<'_>) -> bool {
    ["write", "writelines", "sendto"].contains(&f.name) && is_in(f, Language::Python, "/asyncio/selector_events.py")
}

/// Returns the operation that a function of `tokio::fs` stands for: the module in which it is.
fn tokio_operation<'r>(f: &Function<'r>) -> Option<&'r str> {
    let by_file = || {
        let (_, module) = f.file.rsplit_once("/src/fs/").filter(|(folder, _)| folder.contains("/tokio"))?;
        module.strip_suffix(".rs")
    };
    module_of_tokio(f.name).or_else(by_file).filter(|module| !["asyncify", "mod"].contains(module))
}

/// Returns the module of `tokio::fs` that a function's name tells.
fn module_of_tokio(name: &str) -> Option<&str> {
    let (module, _) = name.strip_prefix(TOKIO_FS)?.split_once("::")?;
    (module != "asyncify").then_some(module)
}

/// Returns the operation of `tokio::fs` for which the functions outside of tokio's own hand work over.
fn tokio_asked<'r>(outer: &[Function<'r>]) -> Option<&'r str> {
    let own = outer.iter().position(|f| f.is_own)?;
    let inlined = outer.get(own).and_then(|f| f.callee).and_then(module_of_tokio);
    outer.get(..own)?.iter().rev().find_map(tokio_operation).or(inlined)
}

fn carries(method: &str) -> bool {
    JAVA_CARRIERS.iter().any(|carrier| method.starts_with(carrier))
}

fn is_in(f: &Function<'_>, language: Language, file: &str) -> bool {
    f.language == Some(language) && f.file.ends_with(file)
}

/// Returns true for a function of tokio, which debug information names without its module and with its generic types.
fn rust(f: &Function<'_>, name: &str, file: &str) -> bool {
    let bare = f.name.split('<').next().unwrap_or_default();
    bare == name && f.file.contains("/tokio") && f.file.ends_with(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goroutines_first_function_names_its_creator() {
        for (function, told) in [
            ("net/http.(*Server).Serve.gowrap3", Some("net/http.(*Server).Serve")),
            (
                "net/http.(*Transport).startDialConnForLocked.func1",
                Some("net/http.(*Transport).startDialConnForLocked"),
            ),
            ("database/sql.OpenDB.func1.2.gowrap1", Some("database/sql.OpenDB")),
            ("net/http.(*conn).serve", None),
            ("func1", None),
            ("", None),
        ] {
            assert_eq!(creator(function), told, "{function}");
        }
    }
}
