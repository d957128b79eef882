//! The owner of the code that makes the calls, which decides the cures that a reader can apply.
//!
//! A user of `sed` changes no line of it, and the caller of a package waits for its authors. Therefore the stack
//! tells whether the calling code is the reader's own, an installed package's, or that of a program which came with
//! the system.

use crate::code::language::CodeLanguage;
use serde::Deserialize;
use std::sync::Arc;
use systoll_model::{Frame, FrameClass, FrameId, Process, Recording, Row, Sysno, short_file};

/// A reader who can apply a cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actor {
    /// The author of the code that makes the calls.
    Author,
    /// The author of code that calls the package or library which makes the calls.
    Caller,
    /// A user who only runs the program that makes the calls.
    User,
}

/// The owner of the code that makes the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The reader, as far as is known.
    #[default]
    Reader,
    /// A package, a library, or a module of the language's own library, by its name; and the reader's line that calls
    /// it, if that is known.
    Package { name: String, called_at: Option<String> },
    /// A program that came with the system, by its name.
    Program(String),
    /// A library that came with the system, by its name, and the program that came with it and calls it.
    Library { name: String, program: String },
}

/// Folders into which a system's packages put programs and libraries. Programs that users build themselves lie
/// elsewhere.
const OF_SYSTEM: &[&str] = &[
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/usr/share/",
    "/usr/games/",
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib64/",
    "/nix/store/",
    "/snap/",
];

/// Folders into which package managers put sources, one folder for each package.
const OF_PACKAGES: &[&str] =
    &["/site-packages/", "/dist-packages/", "/node_modules/", "/gems/", "/pkg/mod/", "/registry/src/", "/vendor/"];

/// Calls that no script asks for, whatever its language: they are about the memory in which the interpreter keeps data
/// and the code that it makes.
const OF_EACH_INTERPRETER: &[&str] = &["mprotect", "pkey_mprotect", "brk"];

/// The name, in every language, of the function that takes up a connection, and of its system calls.
const ACCEPTS: &str = "accept";

/// Further calls that no script of a shell or of awk asks for: their languages have no words for what a descriptor, the
/// memory or a signal mask is like.
const OF_SMALL_LANGUAGES: &[&str] = &[
    "fcntl",
    "ioctl",
    "fstat",
    "lseek",
    "madvise",
    "mmap",
    "munmap",
    "mremap",
    "rt_sigprocmask",
    "rt_sigaction",
    "sigaltstack",
];

/// Modules of languages' own libraries that are thin layers over system calls, so that cures name
/// their functions: to call `os.path.exists` is to ask `stat`.
const THIN: &[&str] = &[
    "asyncio",
    "codecs",
    "fileinput",
    "fileutils",
    "find",
    "fnmatch",
    "genericpath",
    "glob",
    "io",
    "open3",
    "os",
    "pathlib",
    "pathname",
    "posixpath",
    "queue",
    "random",
    "secrets",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "stat",
    "subprocess",
    "threading",
    "urllib",
    "uuid",
];

/// Functions of the C library that any code of a program calls for memory.
const ALLOCATOR: &[&str] = &["malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign", "free"];

/// Least share of the looks at a row's lines, 0 to 1, that have one owner, for it to own the code that makes the calls.
const OF_LINES: f64 = 0.5;

impl Owner {
    /// Returns the owner of the code that makes a row's calls.
    pub(crate) fn of(recording: &Recording, row: &Row) -> Self {
        let program = recording.process(row.process);
        if let Some(owner) = Self::of_lines(recording, row, program) {
            return owner;
        }
        if CodeLanguage::of_program(program).is_some() {
            // The interpreter's script is its first argument, unless that is an option. `ocaml` is a script of
            // `ocamlrun` that runs the next one.
            let is_script = |word: &&Arc<str>| CodeLanguage::of_file(&name_of(word)).is_none();
            let file = program.argv.iter().skip(1).find(is_script).filter(|word| is_of_system(word));
            return file.map_or(Self::Reader, |path| Self::Program(name_of(path)));
        }
        Self::of_compiled(recording, row, program)
    }

    /// Returns the owner of the script that makes a row's calls: that of the row's own frames, or else that of the lines
    /// which make most of the calls. If no line is known to make them, a module of the language's library on the row's
    /// stack makes the calls. Returns `None` if neither tells it.
    fn of_lines(recording: &Recording, row: &Row, program: &Process) -> Option<Self> {
        let ids: Vec<FrameId> = recording.row_frame_ids(row).collect();
        let is_user = |id: &FrameId| {
            let frame = recording.frame(*id);
            frame.language.is_some() && frame.class == FrameClass::User
        };
        // The row may be told with one of its lines, which is then that of few calls only.
        let looks = row.lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.weight));
        let is_of_few = |id: &FrameId| {
            row.lines.iter().any(|line| line.frame == *id && (line.weight as f64) < OF_LINES * looks as f64)
        };
        let told = ids.iter().position(is_user).filter(|at| ids.get(*at).is_some_and(is_of_few));
        let frames: Vec<&Frame> = ids.iter().take(told.unwrap_or(ids.len())).map(|id| recording.frame(*id)).collect();
        if let Some(owner) = Self::of_script_frames(frames.iter().copied(), program) {
            return Some(owner);
        }
        let (mut owners, mut all): (Vec<(Self, u64)>, u64) = (Vec::new(), 0);
        for line in &row.lines {
            let of_line = frames.iter().copied().chain([recording.frame(line.frame)]);
            let weight = line.weight;
            all = all.saturating_add(weight);
            let Some(owner) = Self::of_script_frames(of_line, program) else { continue };
            match owners.iter_mut().find(|(known, _)| known.is_same(&owner)) {
                Some((_, sum)) => *sum = sum.saturating_add(weight),
                None => owners.push((owner, weight)),
            }
        }
        if let Some((owner, _)) = owners.into_iter().find(|(_, weight)| *weight as f64 >= OF_LINES * all as f64) {
            return Some(owner);
        }
        let of_library = frames.iter().filter(|frame| frame.language.is_some()).find_map(|frame| {
            let name = module(frame.location()?.file.as_deref()?)?;
            (!THIN.contains(&name.as_str())).then_some(name)
        });
        of_library.map(|name| Self::Package { name, called_at: None })
    }

    /// Returns true if both are the same owner, wherever it is called.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Package { name, .. }, Self::Package { name: others, .. }) => name == others,
            _ => self == other,
        }
    }

    /// Returns the owner of the code of a stack's script frames, which are told from the call outwards. Returns `None` if no
    /// frame of a script is a user's.
    pub(crate) fn of_script_frames<'a>(frames: impl Iterator<Item = &'a Frame>, program: &Process) -> Option<Self> {
        let script: Vec<&Frame> = frames.filter(|frame| frame.language.is_some()).collect();
        let at = script.iter().position(|frame| frame.class == FrameClass::User)?;
        Some(Self::of_script(script.get(..at).unwrap_or_default(), script.get(at..).unwrap_or_default(), program))
    }

    /// Returns the owner of a script. `inner` has the frames inside the first frame that is not in the language's
    /// library; `outer` has that frame and those outside of it.
    fn of_script(inner: &[&Frame], outer: &[&Frame], program: &Process) -> Self {
        let file = |frame: &&Frame| frame.location().and_then(|place| place.file.clone());
        let Some(path) = outer.first().and_then(file) else { return Self::Reader };
        let called_at =
            || outer.iter().find(|frame| file(frame).is_some_and(|path| is_own(&path))).and_then(|f| place(f));
        if let Some(name) = package(&path) {
            return Self::Package { name, called_at: called_at() };
        }
        if is_of_system(&path) {
            let script = program.argv.get(1).filter(|word| is_of_system(word));
            return Self::Program(name_of(script.map_or(&path, |word| word)));
        }
        let library = inner.last().and_then(file).and_then(|path| module(&path));
        match library {
            // A library function that makes the call directly is only a name for it.
            Some(name) if inner.len() > 1 && !THIN.contains(&name.as_str()) => {
                Self::Package { name, called_at: outer.first().and_then(|f| place(f)) }
            }
            _ => Self::Reader,
        }
    }

    fn of_compiled(recording: &Recording, row: &Row, program: &Process) -> Self {
        let user = row.user.map(|id| recording.frame(id));
        let source = user.and_then(|frame| frame.locations.last()?.file.as_deref());
        if let Some(name) = source.and_then(package) {
            return Self::Package { name, called_at: None };
        }
        let module = user.and_then(|frame| frame.module).map(|id| recording.module(id));
        let library = module.filter(|module| is_of_system(&module.path) && *module.path != *program.exe);
        if is_of_system(&program.exe) {
            let program = program.name().to_owned();
            // Who calls the allocator at that moment matters little.
            let allocates = row.api.as_deref().is_some_and(|api| ALLOCATOR.contains(&api));
            return match library
                .filter(|_| !allocates)
                .and_then(|library| Some(library.file_name().split_once(".so")?.0.to_owned()))
            {
                Some(name) => Self::Library { name, program },
                None => Self::Program(program),
            };
        }
        match library {
            Some(library) => Self::Package { name: library.file_name().to_owned(), called_at: None },
            None => Self::Reader,
        }
    }

    /// Returns the interpreter's authors as owner if no script of its language can ask for the calls by the function `called`;
    /// `None` if a script may have asked for some of them.
    pub(crate) fn of_interpreter(
        language: CodeLanguage,
        program: &Process,
        calls: &[Sysno],
        called: Option<&str>,
    ) -> Option<Self> {
        use CodeLanguage::{Awk, Bash, C, Cpp, Fish, Go, Rust, Shell};
        let small = matches!(language, Awk | Bash | Fish | Shell);
        let is_its_own = |call: &Sysno| {
            let is_of = |calls: &[&str]| call.name().is_some_and(|name| calls.contains(&name));
            is_of(OF_EACH_INTERPRETER) || small && is_of(OF_SMALL_LANGUAGES)
        };
        let is_compiled = matches!(language, C | Cpp | Go | Rust);
        let interprets = !is_compiled && CodeLanguage::of_program(program) == Some(language);
        // A shell's redirection asks about a descriptor and ends by closing it, so a `close` beside such questions is
        // the shell's own, too.
        let is_close = |call: &Sysno| small && call.name() == Some("close");
        let are_its_own = calls.iter().any(is_its_own) && calls.iter().all(|call| is_its_own(call) || is_close(call));
        // A function that takes up a connection asks for nothing else by it.
        let named = called.map(|name| name.rsplit([':', '.']).next().unwrap_or(name));
        let besides = named.is_some_and(|name| name == ACCEPTS)
            && !calls.iter().any(|call| call.name().is_some_and(|name| name.starts_with(ACCEPTS)));
        (interprets && (are_its_own || besides)).then(|| Self::Program(program.name().to_owned()))
    }

    /// Returns the reader's relation to the owner's code.
    pub(crate) fn reader(&self) -> Actor {
        match self {
            Self::Reader => Actor::Author,
            Self::Package { .. } => Actor::Caller,
            Self::Program(_) | Self::Library { .. } => Actor::User,
        }
    }

    /// Returns the cure `how`, preceded by the owner of the code that has to change if that is not the reader.
    pub(crate) fn in_its_code(&self, how: &str) -> String {
        match self {
            Self::Reader => how.to_owned(),
            Self::Package { name, .. } | Self::Program(name) => format!("in the code of {name}: {how}"),
            Self::Library { name, program } => format!("in the code of {name} or of {program}, which calls it: {how}"),
        }
    }

    /// Returns what a reader can do who doesn't write the code, if no setting helps; `None` for the reader's own
    /// code.
    pub(crate) fn else_to_do(&self) -> Option<String> {
        match self {
            Self::Reader => None,
            Self::Package { name, called_at: Some(place) } => Some(format!(
                "call {name} less often at {place}, or tell its authors; no setting that ends it is known here"
            )),
            Self::Package { name, called_at: None } => Some(format!(
                "if you only use {name}: call it less often, or tell its authors; no setting that ends it is known here"
            )),
            Self::Program(name) | Self::Library { program: name, .. } => {
                Some(format!("if you only run {name}: tell its authors; no setting that ends it is known here"))
            }
        }
    }
}

fn is_of_system(path: &str) -> bool {
    OF_SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// Returns true if a source file is the reader's own.
fn is_own(path: &str) -> bool {
    !path.starts_with('<') && package(path).is_none() && !is_of_system(path) && !path.contains("/lib/python3")
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Returns a frame's position, such as `app.py:12`.
fn place(frame: &Frame) -> Option<String> {
    let place = frame.location()?;
    Some(format!("{}:{}", short_file(place.file.as_deref()?), place.line?))
}

/// Returns the package of a source file: `/x/site-packages/pymongo/pool.py` belongs to pymongo.
fn package(path: &str) -> Option<String> {
    let (at, folder) =
        OF_PACKAGES.iter().filter_map(|folder| Some((path.rfind(folder)?, folder))).max_by_key(|(at, _)| *at)?;
    let mut parts = path.get(at + folder.len()..)?.split('/').peekable();
    if *folder == "/registry/src/" {
        parts.next();
    }
    let mut name = parts.next().filter(|name| !name.is_empty())?.to_owned();
    // A name has more than one part with npm's scopes, Go's hosts and owners, Composer's vendors.
    let more = match *folder {
        "/node_modules/" => usize::from(name.starts_with('@')),
        "/vendor/" => 1,
        "/pkg/mod/" if !name.contains('@') => 2,
        _ => 0,
    };
    for part in parts.by_ref().take(more) {
        name = format!("{name}/{part}");
        if part.contains('@') {
            break;
        }
    }
    // Cuts off the ending of a module of one file, and the version of a folder: `uuid-1.0.0`, `uuid@v1.3.0`.
    let name = name.strip_suffix(".py").unwrap_or(&name);
    let version = name.char_indices().find(|(at, c)| {
        *at > 0
            && "-@".contains(*c)
            && name.get(at + 1..).is_some_and(|v| v.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))
    });
    name.get(..version.map_or(name.len(), |(at, _)| at)).map(str::to_owned)
}

/// Returns the module of a language's own library: `/usr/lib/python3.11/logging/handlers.py` belongs to logging.
fn module(path: &str) -> Option<String> {
    let rest = match path.strip_prefix("<frozen ") {
        Some(rest) => rest.trim_end_matches('>').split('.').next()?,
        None => ["/lib/python3", "/lib/ruby/"].iter().find_map(|lib| path.split_once(lib)).and_then(|(_, rest)| {
            // The module's path follows the version's folder.
            rest.split_once('/').map(|(_, rest)| rest)
        })?,
    };
    let name = rest.split('/').next()?;
    let name = name.trim_end_matches(".py").trim_end_matches(".rb");
    (!name.is_empty() && !name.starts_with("importlib")).then(|| name.to_owned())
}

/// Returns true if each request of a server starts the script anew, so that its variables keep nothing.
pub(crate) fn is_served(program: &Process, files: &[String]) -> bool {
    let name = program.name();
    let by_server = name.starts_with("php-fpm") || name.starts_with("php-cgi");
    let built_in = name.starts_with("php") && program.argv.iter().skip(1).any(|word| &**word == "-S");
    let in_server = !name.starts_with("php") && files.iter().any(|file| file.starts_with("libphp"));
    by_server || built_in || in_server
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Language, Location, Module, ModuleId, ProcessId, RowLine, Stack, StackId};

    #[test]
    fn packages_are_known_by_where_installers_put_them() {
        for (path, name) in [
            ("/srv/app/.venv/lib/python3.11/site-packages/pymongo/pool.py", Some("pymongo")),
            ("/usr/lib/python3/dist-packages/six.py", Some("six")),
            ("/srv/app/node_modules/express/node_modules/@scope/x/index.js", Some("@scope/x")),
            ("/var/lib/gems/3.1.0/gems/rack-2.2.7/lib/rack.rb", Some("rack")),
            ("/root/go/pkg/mod/github.com/google/uuid@v1.3.0/version4.go", Some("github.com/google/uuid")),
            ("/home/ann/.cargo/registry/src/index-6f17/uuid-1.0.0/src/v4.rs", Some("uuid")),
            ("/srv/app/vendor/monolog/monolog/src/Logger.php", Some("monolog/monolog")),
            ("/srv/app/main.py", None),
            ("/srv/site-packages/", None),
        ] {
            assert_eq!(package(path).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn who_has_few_of_a_row_s_lines_does_not_own_its_calls() {
        let frame = |file: &str, class| {
            let place = Location { function: "f".into(), file: Some(file.into()), line: Some(3) };
            Frame { class, locations: vec![place], language: Some(Language::Python), ..Frame::default() }
        };
        let owner = |told: &[FrameId], weights: &[u64]| {
            let line =
                |(at, weight): (usize, &u64)| RowLine { frame: FrameId(1 + at as u32), looks: 1, weight: *weight };
            let mut row = Row::new(ProcessId(0), Sysno::named("newfstatat"), Counts::default());
            row.outer = StackId(1);
            row.lines = weights.iter().enumerate().map(line).collect();
            let recording = Recording {
                processes: vec![Process { exe: "/usr/bin/python3.11".into(), ..Process::default() }],
                frames: vec![
                    frame("/usr/lib/python3.11/zipfile.py", FrameClass::Runtime),
                    frame("/srv/site-packages/certifi/core.py", FrameClass::User),
                    frame("/srv/site-packages/six.py", FrameClass::User),
                    frame("/srv/site-packages/yaml/a.py", FrameClass::User),
                ],
                stacks: vec![
                    Stack { frames: Vec::new(), complete: false },
                    Stack { frames: [&[FrameId(0)], told].concat(), complete: false },
                ],
                ..Recording::default()
            };
            match Owner::of(&recording, &row) {
                Owner::Package { name, .. } => name,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(
            [owner(&[], &[8, 1, 1]), owner(&[], &[1, 1, 1]), owner(&[], &[])],
            ["certifi", "zipfile", "zipfile"]
        );
        // The stack is told with the first line.
        let first = [FrameId(1)];
        assert_eq!(
            [owner(&first, &[1, 1, 1]), owner(&first, &[2, 1, 1]), owner(&first, &[])],
            ["zipfile", "certifi", "certifi"]
        );
    }

    #[test]
    fn a_library_that_a_program_of_the_system_calls_owns_its_calls() {
        let owner = |exe: &str, api: &str| {
            let module = |path: &str| Module { path: path.into(), ..Module::default() };
            let row = Row { user: Some(FrameId(0)), api: Some(api.into()), ..row_of("fstat") };
            let frame = Frame { class: FrameClass::User, module: Some(ModuleId(1)), ..Frame::default() };
            let recording = Recording {
                processes: vec![Process { exe: exe.into(), ..Process::default() }],
                modules: vec![module(exe), module("/usr/lib/x86_64-linux-gnu/libacl.so.1.1.2301")],
                frames: vec![frame],
                ..Recording::default()
            };
            Owner::of_compiled(&recording, &row, &recording.processes[0]).in_its_code("keep it")
        };
        assert_eq!(owner("/usr/bin/cp", "fstat"), "in the code of libacl or of cp, which calls it: keep it");
        assert_eq!(owner("/usr/bin/cp", "malloc"), "in the code of cp: keep it");
        assert_eq!(owner("/srv/app", "fstat"), "in the code of libacl.so.1.1.2301: keep it");
    }

    #[test]
    fn what_accept_does_besides_is_the_interpreter_s_own() {
        let owner = |called: &str, calls: &[&'static str]| {
            let program = Process { exe: "/usr/bin/perl".into(), argv: vec!["perl".into()], ..Process::default() };
            let calls: Vec<Sysno> = calls.iter().copied().map(Sysno::named).collect();
            Owner::of_interpreter(CodeLanguage::Perl, &program, &calls, Some(called)).is_some()
        };
        assert!(owner("IO::Socket::accept", &["ioctl"]) && owner("IO::Socket::accept", &["lseek", "fcntl"]));
        assert!(!owner("IO::Socket::accept", &["accept4"]) && !owner("sysread", &["read"]));
    }

    fn row_of(syscall: &'static str) -> Row {
        Row::new(ProcessId(0), Sysno::named(syscall), Counts::default())
    }

    #[test]
    fn calls_that_no_script_asks_for_are_the_interpreters() {
        let owner = |language, exe: &str, calls: &[&str]| {
            let program = Process { exe: exe.into(), ..Process::default() };
            let calls: Vec<Sysno> = calls.iter().map(|name| Sysno::named(name)).collect();
            Owner::of_interpreter(language, &program, &calls, None)
        };
        let its = |name: &str| Some(Owner::Program(name.to_owned()));
        assert_eq!(owner(CodeLanguage::Awk, "/usr/bin/gawk", &["fcntl"]), its("gawk"));
        assert_eq!(owner(CodeLanguage::Awk, "/usr/bin/gawk", &["fcntl", "openat"]), None, "a script opens files");
        assert_eq!(owner(CodeLanguage::JavaScript, "/opt/node/bin/node", &["mprotect"]), its("node"));
        assert_eq!(owner(CodeLanguage::Python, "/usr/bin/python3.11", &["fcntl"]), None, "Python has fcntl.fcntl");
        assert_eq!(owner(CodeLanguage::C, "/srv/app", &["mprotect"]), None);
        assert_eq!(owner(CodeLanguage::Lua, "/srv/app", &["mprotect"]), None, "the program's own code may call it");
    }

    #[test]
    fn modules_of_a_language_s_own_library_have_their_names() {
        for (path, name) in [
            ("/usr/lib/python3.11/logging/handlers.py", Some("logging")),
            ("/home/ann/.pyenv/versions/3.11.7/lib/python3.11/tempfile.py", Some("tempfile")),
            ("<frozen posixpath>", Some("posixpath")),
            ("<frozen importlib._bootstrap>", None),
            ("/usr/lib/ruby/3.1.0/tempfile.rb", Some("tempfile")),
            ("/srv/app/tempfile.py", None),
        ] {
            assert_eq!(module(path).as_deref(), name, "{path}");
        }
    }
}
