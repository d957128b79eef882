//! The name that the caller's language gives to the function that was called: `os.path.realpath`, not `readlink`.

mod known;

use crate::causes::target::Target;
use crate::code::author::{ApiShare, Author};
use crate::code::language::CodeLanguage;
use crate::collections::sums::Sums;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use systoll_model::{
    Frame, FrameClass, FrameId, Language as ScriptLanguage, Recording, Row, RowId, StackId, Sysno, WholeStack,
};

/// Returns the name of the function of the language's own library that the user's code called. It comes from the
/// script's lines if the library is written in the language, from functions of the run-time on the stack, or from the
/// C library's function that the language's function calls. The target of the calls' descriptors tells functions
/// apart that share these. Returns `None` if nothing tells the name, or if it is that of the C function.
pub(crate) fn language_api(
    recording: &Recording,
    id: RowId,
    language: Option<CodeLanguage>,
    target: Option<Target>,
) -> Option<String> {
    let language = language?;
    let row = recording.row(id);
    let frames: Vec<&Frame> = recording.row_frames(row).collect();
    let several = serves_several(recording, id, language);
    if language == CodeLanguage::JavaScript && several {
        return None;
    }
    let library = called_by_script(&frames).or_else(|| called_by_script(&heaviest_stack(recording, id)));
    let own = match (language, library) {
        (CodeLanguage::Python, Some(frame)) => return python_name(frame),
        (CodeLanguage::Rust, _) => rust_name(&frames),
        (CodeLanguage::Cpp, _) => cpp_name(&frames),
        // Go's functions are named as they are imported: `os.Stat`, and `fmt.Println`.
        (CodeLanguage::Go, _) => go_name(row.api.as_deref()?),
        (language, Some(frame)) if !several => script_name(language, frame),
        _ => None,
    };
    let api = row.api.as_deref();
    // A call that another library makes is not what the script asked for.
    let is_own = || by_interpreter(recording, language, &frames) && !known::is_of_loop(&frames);
    let runtime = || served(recording, id, language).or_else(|| known::by_runtime(language, &frames));
    let known = || runtime().or_else(|| known::by_libc(language, api.filter(|_| is_own())?));
    // A shell that makes a call at no line of its script reads that script, starts or ends.
    let is_shell = matches!(language, CodeLanguage::Shell | CodeLanguage::Bash);
    let at_line = || !row.lines.is_empty() || row.user.is_some_and(|user| recording.frame(user).language.is_some());
    let known = || if is_shell && !at_line() { None } else { known() };
    let shown = own.or_else(|| known().map(str::to_owned))?;
    // A call that makes a socket has no descriptor yet.
    let target = target.or_else(|| (row.syscall == Sysno::from_name("socket")?).then_some(Target::Socket));
    Some(known::of_target(language, &shown, target).map_or(shown, str::to_owned))
}

/// Share of a row's calls from which on one function stands for all.
const MOST: f64 = 0.75;

/// Returns the language's function that the run-time's functions on a row's sampled stacks stand for, if most of its
/// calls come by one.
fn served(recording: &Recording, id: RowId, language: CodeLanguage) -> Option<&'static str> {
    let stacks = recording.whole_stacks_of(id).iter();
    let by_name: BTreeMap<_, u64> = Sums::of(stacks.map(|whole| (by_stack(recording, language, whole), whole.weight)));
    let all = by_name.values().fold(0u64, |sum, weight| sum.saturating_add(*weight));
    let (name, weight) = by_name.into_iter().max_by_key(|(_, weight)| *weight)?;
    name.filter(|_| weight as f64 >= all as f64 * MOST)
}

/// Returns the language's function that the run-time's functions on a whole stack stand for.
fn by_stack(recording: &Recording, language: CodeLanguage, whole: &WholeStack) -> Option<&'static str> {
    let frames: Vec<&Frame> = recording.stack(whole.stack).frames.iter().map(|f| recording.frame(*f)).collect();
    known::by_runtime(language, &frames)
}

/// Returns the documented name of a function of a script's language, if the frame is one of that language.
fn script_name(language: CodeLanguage, frame: &Frame) -> Option<String> {
    match frame.language? {
        ScriptLanguage::Python if language == CodeLanguage::Python => python_name(frame),
        ScriptLanguage::Ruby if language == CodeLanguage::Ruby => ruby_name(frame),
        ScriptLanguage::Php if language == CodeLanguage::Php => php_name(frame),
        ScriptLanguage::Perl if language == CodeLanguage::Perl => perl_name(frame),
        ScriptLanguage::JavaScript if language == CodeLanguage::JavaScript => node_name(frame),
        ScriptLanguage::Java if language == CodeLanguage::Java => java_name(frame),
        _ => None,
    }
}

/// Returns the functions of the caller's library by which a row's calls came, each with its share: one of a row whose context
/// tells it, several where one function of the C library serves them all.
pub(crate) fn api_shares(recording: &Recording, id: RowId) -> Vec<ApiShare> {
    let language = Author::of(recording, recording.row(id)).language;
    if let Some(language) = language {
        let by_name = functions_called(recording, id, language);
        let all = by_name.values().fold(0u64, |sum, weight| sum.saturating_add(*weight));
        if by_name.len() > 1 && all > 0 {
            let share = |(name, weight): (Option<String>, u64)| ApiShare { name, share: weight as f64 / all as f64 };
            return by_name.into_iter().map(share).collect();
        }
    }
    vec![ApiShare { name: language_api(recording, id, language, None), share: 1.0 }]
}

/// Returns the function of Node's library that the user's line of `row` called; `None` if no stack tells it. One function
/// of the C library, `syscall`, serves several of them.
pub fn node_function(recording: &Recording, row: &Row) -> Option<String> {
    let user = row.user.filter(|user| recording.frame(*user).language == Some(ScriptLanguage::JavaScript))?;
    let at = recording.rows.iter().position(|known| std::ptr::eq(known, row))?;
    let own: Vec<FrameId> = recording.row_frame_ids(row).collect();
    let trunks = recording.trunks_of(RowId(at as u32)).iter().map(|trunk| &*recording.stack(trunk.stack).frames);
    std::iter::once(&*own).chain(trunks).find_map(|frames| {
        let place = frames.iter().position(|frame| *frame == user)?;
        node_name(recording.frame(*frames.get(place.checked_sub(1)?)?))
    })
}

/// Returns the script's frame that the innermost frame of the user's own script called; `None` if that only started an event
/// loop, which made the calls.
fn called_by_script<'a>(frames: &[&'a Frame]) -> Option<&'a Frame> {
    let of_script: Vec<&Frame> = frames.iter().copied().filter(|frame| frame.language.is_some()).collect();
    let user = of_script.iter().position(|frame| frame.class == FrameClass::User)?;
    let called = of_script.get(..user)?;
    if called.iter().any(|frame| is_loop(frame)) { None } else { called.last().copied() }
}

/// Returns true for the function of asyncio that runs whatever its loop has to do.
fn is_loop(frame: &Frame) -> bool {
    let of_asyncio = |file: &str| file.ends_with("/asyncio/base_events.py");
    frame.location().is_some_and(|at| &*at.function == "_run_once" && at.file.as_deref().is_some_and(of_asyncio))
}

/// Returns true if a row's calls come from several functions of the language's library, none of which makes most of them:
/// `statx` serves `fs.statSync`, `fs.lstatSync` and `fs.realpathSync`.
fn serves_several(recording: &Recording, id: RowId, language: CodeLanguage) -> bool {
    let mut by_name = functions_called(recording, id, language);
    by_name.remove(&None);
    let all = by_name.values().fold(0u64, |sum, weight| sum.saturating_add(*weight));
    let most = by_name.values().max().copied().unwrap_or_default();
    (most as f64) < all as f64 * MOST
}

/// Returns the functions of the language's library on a row's whole stacks, with the number of calls that these stand for.
fn functions_called(recording: &Recording, id: RowId, language: CodeLanguage) -> BTreeMap<Option<String>, u64> {
    // A shell's own commands are functions of the shell, not of its scripts.
    if language == CodeLanguage::Bash {
        let name = |whole: &WholeStack| by_stack(recording, language, whole).map(str::to_owned);
        return Sums::of(recording.whole_stacks_of(id).iter().map(|whole| (name(whole), whole.weight)));
    }
    let name = |stack: StackId| {
        let frames: Vec<&Frame> = recording.stack(stack).frames.iter().map(|f| recording.frame(*f)).collect();
        called_by_script(&frames).and_then(|frame| script_name(language, frame))
    };
    Sums::of(recording.trunks_of(id).iter().map(|trunk| (name(trunk.stack), trunk.weight)))
}

/// Returns the frames above a row's context on which most of its looks agree, if its calls come
/// from several lines: those of the line that is named for the row, as far as any stack has it.
fn heaviest_stack(recording: &Recording, id: RowId) -> Vec<&Frame> {
    let user = recording.row(id).user;
    let is_of_line = |stack| user.is_some_and(|user| recording.stack(stack).frames.contains(&user));
    let trunks = recording.trunks_of(id).iter();
    let most = trunks.max_by_key(|trunk| (is_of_line(trunk.stack), trunk.weight, Reverse(trunk.stack)));
    most.map_or_else(Vec::new, |trunk| {
        recording.stack(trunk.stack).frames.iter().map(|frame| recording.frame(*frame)).collect()
    })
}

/// Returns true if the C library was called by an interpreter or by one of its modules, not by a library that serves
/// others too.
fn by_interpreter(recording: &Recording, language: CodeLanguage, frames: &[&Frame]) -> bool {
    let of_libc = |frame: &&&Frame| matches!(frame.class, FrameClass::Libc | FrameClass::Loader | FrameClass::Vdso);
    let Some(module) = frames.iter().find(|frame| !of_libc(frame)).and_then(|frame| frame.module) else { return true };
    let file = recording.module(module).file_name();
    // Node's calls go through libuv, which may be a file of its own.
    let of_node = language == CodeLanguage::JavaScript && file.starts_with("libuv.");
    !file.starts_with("lib") || CodeLanguage::of_file(file) == Some(language) || of_node
}

/// Returns the name of a Go function as it is called: `filepath.EvalSymlinks` for
/// `path/filepath.EvalSymlinks`. Returns `None` if the function is not Go's.
fn go_name(api: &str) -> Option<String> {
    let api = api.rsplit('/').next().unwrap_or(api);
    api.contains('.').then(|| api.to_owned())
}

/// Returns the name of a method of Ruby's library. Methods in C have a name and no line (`realpath`), the others have
/// both.
fn ruby_name(frame: &Frame) -> Option<String> {
    let place = frame.location()?;
    let name = place.function.rsplit([' ', '#', '.']).next().unwrap_or_default();
    let word = |c: char| c.is_ascii_alphanumeric() || "_?!`".contains(c);
    // A script does not call `initialize` by its name, but by `new` or `open`.
    (name != "initialize").then_some(())?;
    let file = place.file.as_deref().and_then(|file| file.rsplit('/').next()?.strip_suffix(".rb"));
    if let Some(module) = file.and_then(known::ruby_module) {
        return Some(format!("{module}.{name}"));
    }
    (!name.is_empty() && name.chars().all(word))
        .then(|| known::ruby(name).map_or_else(|| name.to_owned(), str::to_owned))
}

/// Returns the name of a function of PHP. PHP's own functions are in C: they have a name and no line.
fn php_name(frame: &Frame) -> Option<String> {
    frame.location().filter(|place| place.file.is_none()).map(|place| place.function.to_string())
}

/// Returns the documented name of a function of Node's library: `openSync` of `node:fs` is `fs.openSync`; `None` for
/// functions that only Node itself can call.
fn node_name(frame: &Frame) -> Option<String> {
    let place = frame.location()?;
    let module = match place.file.as_deref()?.strip_prefix("node:")?.replace('/', ".") {
        inner if inner == "internal.fs.promises" => "fs.promises".to_owned(),
        inner if inner == "internal.child_process" => "child_process".to_owned(),
        inner if inner.starts_with("internal.modules.") => return Some("require".to_owned()),
        inner if inner.starts_with("internal.") => return None,
        public => public,
    };
    let word = |c: char| c.is_ascii_alphanumeric() || "_$.".contains(c);
    let named = !place.function.is_empty() && place.function.chars().all(word);
    named.then(|| format!("{module}.{}", place.function))
}

/// Returns the documented name of a method of Java's library: `java.nio.file.Files.newBufferedReader` is
/// `Files.newBufferedReader`, and a constructor is `new FileReader`.
fn java_name(frame: &Frame) -> Option<String> {
    let name = &frame.location()?.function;
    let (class, method) = name.rsplit_once('.')?;
    let class = class.rsplit('.').next().unwrap_or(class);
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    (class.starts_with(|c: char| c.is_ascii_uppercase()) && class.chars().all(word)).then_some(())?;
    // The classes that serve are not those that the program names: `FileChannelImpl` is a `FileChannel`.
    let serves = name.starts_with("sun.nio.") && !class.contains('$');
    let class = class.strip_suffix("Impl").filter(|_| serves).unwrap_or(class).replace('$', ".");
    match method {
        "<init>" => Some(format!("new {class}")),
        "<clinit>" => Some(class),
        method => method.chars().all(word).then(|| format!("{class}.{method}")),
    }
}

/// Returns the name of a function of Perl. Perl's own functions have the name of their operation and no line; those
/// of its library have both.
fn perl_name(frame: &Frame) -> Option<String> {
    let place = frame.location()?;
    match &place.file {
        Some(_) => Some(place.function.to_string()).filter(|name| name.contains("::") && !name.ends_with("::BEGIN")),
        None => known::perl(&place.function).map(str::to_owned),
    }
}

/// Returns the outermost function of Rust's library that the user's code called: `std::fs::metadata`, `File::read`.
fn rust_name(frames: &[&Frame]) -> Option<String> {
    let of_library =
        |name: &str| name.starts_with("std::") || name.starts_with("<std::") || name.starts_with("<&std::");
    let names = frames.iter().flat_map(|frame| &frame.locations).map(|place| &*place.function);
    // The search stops at the first frame of another crate: the library's start-up functions lie outside of `main`.
    let before_user = names.skip_while(|name| !of_library(name)).take_while(|name| {
        of_library(name) || name.starts_with("core::") || name.starts_with("<core::") || name.starts_with("alloc::")
    });
    // A function that is inlined at the user's call is the outermost one.
    let user = frames.iter().find(|frame| frame.class == FrameClass::User);
    let inlined = user.and_then(|frame| frame.callee.as_deref()).filter(|name| of_library(name)).and_then(rust_path);
    inlined.or_else(|| before_user.filter_map(rust_path).last())
}

/// Returns the outermost function of C++'s file system library that the user's code called.
fn cpp_name(frames: &[&Frame]) -> Option<String> {
    let names = frames.iter().flat_map(|frame| &frame.locations).map(|place| &*place.function);
    let of_library = |name: &&str| name.starts_with("std::filesystem::");
    let last = names.skip_while(|name| !of_library(name)).take_while(of_library).last()?;
    let name = last.split(['(', '<', '[']).next().unwrap_or(last).replace("__cxx11::", "");
    // The name of an operator holds the signs at which the name was cut.
    (!name.contains("operator")).then_some(name)
}

/// Returns `std::fs::metadata::<&str>` as `fs::metadata`, and `<&std::fs::File as std::io::Read>::read` as
/// `File::read`; `None` for a function that can't be called from outside the library.
fn rust_path(name: &str) -> Option<String> {
    if ["std::sys::", "std::rt::", "std::panic", "{closure", "_print", "drop", "FnOnce"]
        .iter()
        .any(|p| name.contains(p))
    {
        return name.starts_with("std::io::stdio::_print").then(|| "println!".to_owned());
    }
    let name = match name.strip_prefix('<') {
        Some(of_type) => {
            let (of, rest) = of_type.split_at_checked(closing(of_type)?)?;
            let of = of.split(" as ").next().unwrap_or(of).trim_start_matches('&').trim_start_matches("mut ");
            let of = of.split('<').next().unwrap_or(of);
            let method = rest.strip_prefix(">::")?;
            let method = method.split("::<").next().unwrap_or(method);
            format!("{}::{method}", of.rsplit("::").next().unwrap_or(of))
        }
        None => name.split("::<").next().unwrap_or(name).to_owned(),
    };
    let parts: Vec<&str> = name.split("::").collect();
    let last = parts.get(parts.len().saturating_sub(2)..)?.join("::");
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    (!last.is_empty() && last.chars().all(word)).then_some(last)
}

/// Returns the offset at which the angle bracket that is open before `text` is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            // The `>` of `fn() -> T` closes no bracket.
            '>' if before == '-' => {}
            '>' if depth == 0 => return Some(at),
            '>' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    None
}

/// Returns the name of a function of Python's library: `os.path.realpath` for `realpath` in
/// `<frozen posixpath>`, and `logging.info` for `info` in `…/logging/__init__.py`.
fn python_name(frame: &Frame) -> Option<String> {
    let place = frame.location()?;
    let file = place.file.as_deref()?;
    let module = match file.strip_prefix("<frozen ") {
        Some(frozen) => frozen.strip_suffix('>')?.to_owned(),
        None => {
            let (_, rest) = file.rsplit_once("/lib/python3")?;
            let (_, path) = rest.split_once('/')?;
            path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix(".py"))?.replace('/', ".")
        }
    };
    let module = match module.as_str() {
        "posixpath" | "genericpath" => "os.path",
        // The statement calls a function of this module.
        importlib if importlib.starts_with("importlib._bootstrap") => return Some("import".to_owned()),
        other => other,
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let named = !place.function.is_empty() && place.function.chars().all(word);
    named.then(|| format!("{module}.{}", place.function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Location, Process, ProcessId, RowTrunk, Stack, StackId};

    #[test]
    fn rusts_library_is_named_as_it_is_used() {
        for (name, shown) in [
            ("std::fs::metadata::<&str>", Some("fs::metadata")),
            ("<&std::fs::File as std::io::Read>::read", Some("File::read")),
            ("<std::fs::OpenOptions>::open::<&str>", Some("OpenOptions::open")),
            (
                "<std::io::buffered::bufreader::BufReader<std::fs::File> as std::io::Seek>::seek",
                Some("BufReader::seek"),
            ),
            (
                "<&mut std::io::BufWriter<std::boxed::Box<dyn std::io::Write + fn() -> u8>> as std::io::Write>::write::<u8>",
                Some("BufWriter::write"),
            ),
            ("std::io::buffered::bufreader::BufReader<std::fs::File>::seek_relative", None),
            ("std::fs::canonicalize::<&str>", Some("fs::canonicalize")),
            ("std::io::stdio::_print", Some("println!")),
            ("<std::sys::fd::unix::FileDesc>::read", None),
            ("std::rt::lang_start::{{closure}}", None),
            ("<<", None),
            ("", None),
        ] {
            assert_eq!(rust_path(name).as_deref(), shown, "{name}");
        }
    }

    #[test]
    fn cpps_file_system_functions_are_named_by_the_outermost() {
        let frame = |function: &str| {
            let location = Location { function: function.into(), file: None, line: None };
            Frame { locations: vec![location], ..Frame::default() }
        };
        let named = |names: &[&str]| {
            let frames: Vec<Frame> = names.iter().map(|name| frame(name)).collect();
            cpp_name(&frames.iter().collect::<Vec<_>>())
        };
        let create = ["fstatat", "std::filesystem::status", "std::filesystem::create_directories(path const&)", "main"];
        assert_eq!(named(&create).as_deref(), Some("std::filesystem::create_directories"));
        let read =
            ["getdents64", "std::filesystem::__cxx11::directory_iterator::directory_iterator", "run(int)", "main"];
        assert_eq!(named(&read).as_deref(), Some("std::filesystem::directory_iterator::directory_iterator"));
        assert_eq!(named(&["read", "main"]), None);
    }

    #[test]
    fn functions_in_c_are_named_where_they_have_no_line() {
        let frame = |function: &str, file: Option<&str>| {
            let location = Location { function: function.into(), file: file.map(Into::into), line: None };
            Frame { locations: vec![location], ..Frame::default() }
        };
        assert_eq!(php_name(&frame("file_put_contents", None)).as_deref(), Some("file_put_contents"));
        assert_eq!(php_name(&frame("Logger::line", Some("a.php"))), None);
        assert_eq!(perl_name(&frame("backtick", None)).as_deref(), Some("`…`"));
        assert_eq!(perl_name(&frame("add", None)), None);
        let find = frame("File::Find::find", Some("/usr/share/perl/5.36/File/Find.pm"));
        assert_eq!(perl_name(&find).as_deref(), Some("File::Find::find"));
    }

    #[test]
    fn javas_library_is_named_as_it_is_documented() {
        let named = |function: &str| {
            let location = Location { function: function.into(), file: None, line: None };
            java_name(&Frame { locations: vec![location], ..Frame::default() })
        };
        assert_eq!(named("java.nio.file.Files.newBufferedReader").as_deref(), Some("Files.newBufferedReader"));
        assert_eq!(named("java.io.FileReader.<init>").as_deref(), Some("new FileReader"));
        assert_eq!(named("java.util.Map$Entry.getKey").as_deref(), Some("Map.Entry.getKey"));
        assert_eq!(named("sun.nio.ch.FileChannelImpl.write").as_deref(), Some("FileChannel.write"));
        assert_eq!(named("com.shop.OrdersImpl.load").as_deref(), Some("OrdersImpl.load"));
        assert_eq!((named("main"), named("java.lang.invoke.lambda-form.x")), (None, None));
    }

    #[test]
    fn who_starts_an_event_loop_asks_for_none_of_its_calls() {
        let frame = |function: &str, file: &str, class| Frame {
            locations: vec![Location { function: function.into(), file: Some(file.into()), line: Some(1) }],
            language: Some(ScriptLanguage::Python),
            class,
            ..Frame::default()
        };
        let read = frame("_read_ready", "/usr/lib/python3.11/asyncio/selector_events.py", FrameClass::Runtime);
        let once = frame("_run_once", "/usr/lib/python3.11/asyncio/base_events.py", FrameClass::Runtime);
        let run = frame("run", "/usr/lib/python3.11/asyncio/runners.py", FrameClass::Runtime);
        let own = frame("main", "app.py", FrameClass::User);
        assert_eq!(called_by_script(&[&read, &once, &run, &own]), None);
        assert_eq!(called_by_script(&[&read, &own, &once, &run, &own]), Some(&read));
        assert_eq!(called_by_script(&[&run, &own]), Some(&run));
    }

    #[test]
    fn nodes_library_is_named_as_it_is_documented() {
        let named = |file: &str, function: &str| {
            let location = Location { function: function.into(), file: Some(file.into()), line: None };
            node_name(&Frame { locations: vec![location], ..Frame::default() })
        };
        for (file, function, name) in [
            ("node:fs", "appendFileSync", Some("fs.appendFileSync")),
            ("node:fs/promises", "readFile", Some("fs.promises.readFile")),
            ("node:internal/fs/promises", "open", Some("fs.promises.open")),
            ("node:internal/modules/cjs/loader", "Module._load", Some("require")),
            ("node:internal/timers", "listOnTimeout", None),
            ("node:fs", "(anonymous)", None),
            ("/srv/app.js", "run", None),
        ] {
            assert_eq!(named(file, function).as_deref(), name, "{file} {function}");
        }
    }

    #[test]
    fn rubys_functions_are_named_with_their_class() {
        let named = |function: &str| {
            let location = Location { function: function.into(), file: None, line: None };
            ruby_name(&Frame { locations: vec![location], ..Frame::default() })
        };
        assert_eq!(named("exist?").as_deref(), Some("File.exist?"));
        assert_eq!(named("frobnicate").as_deref(), Some("frobnicate"));
        assert_eq!(named("<main>"), None);
    }

    #[test]
    fn pythons_library_is_named_as_it_is_imported() {
        let named = |file: &str, function: &str| {
            let location = Location { function: function.into(), file: Some(file.into()), line: Some(1) };
            python_name(&Frame { locations: vec![location], ..Frame::default() })
        };
        for (file, function, name) in [
            ("<frozen posixpath>", "realpath", Some("os.path.realpath")),
            ("<frozen genericpath>", "exists", Some("os.path.exists")),
            ("/usr/lib/python3.11/shutil.py", "which", Some("shutil.which")),
            ("/usr/lib/python3.11/logging/__init__.py", "Logger.info", Some("logging.Logger.info")),
            ("/usr/lib/python3.11/json/decoder.py", "decode", Some("json.decoder.decode")),
            ("<frozen importlib._bootstrap>", "_find_spec", Some("import")),
            ("/usr/lib/python3.11/x.py", "<lambda>", None),
            ("/home/me/app.py", "run", None),
        ] {
            assert_eq!(named(file, function).as_deref(), name, "{file} {function}");
        }
    }

    #[test]
    fn a_row_that_serves_several_functions_of_node_has_the_name_of_none() {
        let frame = |function: &str, file: &str, class| Frame {
            locations: vec![Location { function: function.into(), file: Some(file.into()), line: Some(1) }],
            language: Some(ScriptLanguage::JavaScript),
            class,
            ..Frame::default()
        };
        let trunk = |stack, weight| RowTrunk { row: RowId(0), stack: StackId(stack), weight, looks: 0 };
        let serves = |trunks: &[RowTrunk]| {
            let recording = Recording {
                frames: vec![
                    frame("statSync", "node:fs", FrameClass::Runtime),
                    frame("lstatSync", "node:fs", FrameClass::Runtime),
                    frame("ask", "app.js", FrameClass::User),
                ],
                stacks: vec![
                    Stack { frames: vec![FrameId(0), FrameId(2)], complete: true },
                    Stack { frames: vec![FrameId(1), FrameId(2)], complete: true },
                ],
                trunks: trunks.to_vec(),
                ..Recording::default()
            };
            serves_several(&recording, RowId(0), CodeLanguage::JavaScript)
        };
        assert!(serves(&[trunk(0, 50), trunk(1, 40)]));
        assert!(!serves(&[trunk(0, 90), trunk(1, 10)]) && !serves(&[trunk(1, 5)]) && !serves(&[]));
    }

    #[test]
    fn the_function_is_one_that_the_named_line_calls() {
        let frame = |function: &str, file: &str, class| Frame {
            locations: vec![Location { function: function.into(), file: Some(file.into()), line: Some(1) }],
            language: Some(ScriptLanguage::Python),
            class,
            ..Frame::default()
        };
        // One line asks by two functions, and the next line, which makes half as many calls, by one.
        let library =
            ["exists", "isfile", "getmtime"].map(|name| frame(name, "<frozen genericpath>", FrameClass::Runtime));
        let lines = ["scan", "scan_next"].map(|name| frame(name, "watch.py", FrameClass::User));
        let stack = |of: [u32; 2]| Stack { frames: of.map(FrameId).to_vec(), complete: true };
        let row =
            Row { user: Some(FrameId(3)), ..Row::new(ProcessId(0), Sysno::named("newfstatat"), Counts::default()) };
        let trunk = |(stack, weight)| RowTrunk { row: RowId(0), stack: StackId(stack), weight, looks: 0 };
        let recording = Recording {
            processes: vec![Process { exe: "/usr/bin/python3.11".into(), ..Process::default() }],
            frames: library.into_iter().chain(lines).collect(),
            stacks: vec![stack([0, 3]), stack([1, 3]), stack([2, 4]), Stack::default()],
            rows: vec![Row { context: StackId(3), outer: StackId(3), ..row }],
            trunks: [(0, 33), (1, 32), (2, 35)].map(trunk).to_vec(),
            ..Recording::default()
        };
        let api = language_api(&recording, RowId(0), Some(CodeLanguage::Python), None);
        assert_eq!(api.as_deref(), Some("os.path.exists"));
    }
}
