//! Checks rules that a compiler does not check: length of files, unsafe code, paths of one machine, opening files,
//! environment variables, the beginnings of functions' comments, private words.

use crate::scaffold::unfilled;
use crate::words;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Lines that a file may have; a longer one does more than one thing.
const MAX_LINES: usize = 600;

/// Extensions of the files whose lines are counted.
const SOURCES: &[&str] = &["rs", "py", "c", "sh", "toml", "md"];

/// Crates that may have unsafe code; all others forbid it in their root.
const UNSAFE: &[&str] = &["record", "cure", "price", "test", "test-c"];

/// Returns broken rules, one line each.
pub(crate) fn broken(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut private = 0;
    for file in files {
        let bytes = std::fs::read(root.join(file)).with_context(|| format!("can't read {}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        broken.extend(too_long(file, &text));
        broken.extend(machine_path(file, &text));
        broken.extend(unsafe_at_large(file, &text));
        broken.extend(opens_by_path(file, &text));
        broken.extend(reads_environment(file, &text));
        broken.extend(knows_machine(file, &text));
        broken.extend(no_text(file, &bytes));
        broken.extend(unfilled(file, &text));
        broken.extend(begins_with_fragment(file, &text));
        broken.extend(words::shown(file, &text));
        private += words::in_comments(file, &text);
    }
    broken.extend(words::too_many_in_comments(private));
    Ok(broken)
}

fn too_long(file: &Path, text: &str) -> Option<String> {
    let counted = file.extension().is_some_and(|e| SOURCES.iter().any(|s| e == *s));
    let lines = text.lines().count();
    (counted && lines > MAX_LINES).then(|| format!("{}: {lines} lines, {MAX_LINES} are the most", file.display()))
}

/// Checks that a source is text: no zero byte, and valid UTF-8.
fn no_text(file: &Path, bytes: &[u8]) -> Option<String> {
    let source = file.extension().is_some_and(|e| SOURCES.iter().any(|s| e == *s));
    let good = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    (source && !good).then(|| format!("{}: it is no text", file.display()))
}

/// Checks for paths of a developer's machine, which mean nothing to others.
fn machine_path(file: &Path, text: &str) -> Option<String> {
    // The paths are concatenated, because this file must not break its own rule.
    let paths = [["/", "work/"], ["..", "/shared"], ["/root/", "."], ["/home/", "runner"]].map(|p| p.concat());
    let (at, line) = text.lines().enumerate().find(|(_, line)| paths.iter().any(|p| line.contains(p.as_str())))?;
    Some(format!("{}:{}: a path of one machine: {}", file.display(), at + 1, line.trim()))
}

fn unsafe_at_large(file: &Path, text: &str) -> Option<String> {
    let root = file.strip_prefix("crates").ok()?;
    let (name, rest) = root.to_str()?.split_once('/')?;
    let is_root = rest == "src/lib.rs" || rest == "src/main.rs";
    let free = UNSAFE.contains(&name) || text.contains("#![forbid(unsafe_code)]");
    (is_root && !free).then(|| format!("{}: needs #![forbid(unsafe_code)]", file.display()))
}

/// Words of code that is one machine's: its decoder, its registers, its instructions.
const OF_ONE_MACHINE: &[&str] = &["iced_x86", "user_regs_struct", "std::arch", "core::arch"];
/// Parts of the sources for one machine only, besides folders named `arch`: the counting code and what places it, and
/// the counting in other projects' tests, which rests on a feature of x86-64's kernel.
const FOR_ONE_MACHINE: &[&str] = &["hooks/", "record/src/inproc/", "test/", "test-c/"];
/// Files with a few instructions behind a `cfg`, with the reason.
const WITH_INSTRUCTIONS: &[(&str, &str)] = &[
    ("record/src/startup.rs", "the command's entry point, before any Rust runs"),
    ("price/src/survey/mod.rs", "an empty instruction that keeps a loop"),
];

/// Refuses words of one machine outside of the parts that are for one machine.
fn knows_machine(file: &Path, text: &str) -> Option<String> {
    let inside = file.strip_prefix("crates").ok()?.to_str().filter(|name| name.ends_with(".rs"))?;
    let may = inside.contains("/src/arch/")
        || inside.contains("/arch/")
        || WITH_INSTRUCTIONS.iter().any(|(f, _)| *f == inside);
    if may || FOR_ONE_MACHINE.iter().any(|part| inside.starts_with(part)) {
        return None;
    }
    let (at, line) = text.lines().enumerate().find(|(_, line)| {
        !line.trim_start().starts_with("//") && OF_ONE_MACHINE.iter().any(|word| line.contains(word))
    })?;
    let line = line.trim();
    Some(format!("{}:{}: code of one machine belongs into a folder `arch`: {line}", file.display(), at + 1))
}

/// Crates that open files which strangers name. They must use `systoll-files`, which never waits.
const CAREFUL: &[&str] = &["record", "symbols", "cure"];
/// Functions that open a file by its path.
const OPENS: &[&str] =
    &["File::open(", "fs::read(", "fs::read_to_string(", "OpenOptions::new(", "File::options(", "libc::open("];
/// Files of these crates that may use [`OPENS`], with the reason.
const MAY_OPEN: &[(&str, &str)] = &[
    ("record/src/launch.rs", "/dev/null, between fork and exec"),
    ("record/src/inproc/monitor/shared/remote.rs", "/proc/PID/mem, for writing"),
    ("record/src/ptrace/arch/aarch64/enter.rs", "the same"),
    ("record/src/inproc/monitor/shared/memory.rs", "files in memory of our own, by their descriptors"),
    ("symbols/src/hostile.rs", "a test"),
    ("cure/src/shim.rs", "a library in a folder of the user's own, O_NOFOLLOW and O_NONBLOCK"),
];

fn opens_by_path(file: &Path, text: &str) -> Option<String> {
    let inside = file.strip_prefix("crates").ok()?.to_str()?;
    let careful = CAREFUL.iter().any(|name| inside.strip_prefix(name).is_some_and(|rest| rest.starts_with("/src/")));
    if !careful || MAY_OPEN.iter().any(|(may, _)| *may == inside) {
        return None;
    }
    // Tests may open their own files.
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    // The recorder's own reader of /proc has a name with the same end, so it is removed.
    let opens = |line: &str| OPENS.iter().any(|open| line.replace("procfs::", "").contains(open));
    let (at, line) = code.lines().enumerate().find(|(_, line)| opens(line))?;
    Some(format!("{}:{}: open it by systoll_files: {}", file.display(), at + 1, line.trim()))
}

/// Files that may read environment variables, with the variables; all others use `systoll::environment`.
const MAY_READ_ENVIRONMENT: &[(&str, &str)] = &[
    ("systoll/src/environment.rs", "the table of all variables"),
    ("trust/src/places.rs", "the user's folders"),
    ("trust/src/helper.rs", "PATH"),
    ("symbols/src/module/debug_file.rs", "where debug files are"),
    ("cure/src/cc.rs", "CC"),
    ("cure/src/reach.rs", "PATH"),
    ("cure/src/spec.rs", "the whole environment, for its size"),
    ("record/src/launch.rs", "the whole environment, for the command"),
    ("record/src/inproc/monitor/results/twins.rs", "the whole environment, to empty it"),
    ("test/src/limits.rs", "SYSTOLL_TEST_STRICT"),
];

/// Returns the places that read environment variables outside the files allowed to, and variables that
/// systoll::environment lacks.
fn reads_environment(file: &Path, text: &str) -> Vec<String> {
    let inside = file.strip_prefix("crates").ok().and_then(Path::to_str).filter(|inside| inside.contains("/src/"));
    let Some(inside) = inside else { return Vec::new() };
    let may = MAY_READ_ENVIRONMENT.iter().any(|(may, _)| *may == inside);
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut broken = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let read = line.split_once("env::var").map(|(_, rest)| rest);
        if read.is_some_and(|rest| !rest.contains("\"SYSTOLL_TEST_")) && !may {
            broken.push(format!("{}:{}: read it in systoll::environment: {}", file.display(), at + 1, line.trim()));
        }
        let name = read.or(line.split_once(", env = ").map(|(_, rest)| rest));
        let name = name.and_then(|rest| rest.split('"').nth(1)).unwrap_or_default();
        if !name.is_empty() && !name.starts_with("SYSTOLL_TEST_") && !is_in_table(name) {
            broken.push(format!("{}:{}: systoll::environment lacks {name}", file.display(), at + 1));
        }
    }
    broken
}

/// Words with which no comment of a function begins: the sentence after them is a fragment, without the function's verb or
/// "Returns".
const FRAGMENTS: [&str; 7] = ["Whether", "What", "Who", "Of", "So", "That", "Those"];

/// Returns comments of functions that begin with one of [`FRAGMENTS`].
fn begins_with_fragment(file: &Path, text: &str) -> Vec<String> {
    let show = |(at, line): (usize, &str)| {
        format!("{}:{at}: begin with what the function does, or with Returns: {}", file.display(), line.trim())
    };
    fragments(file, text).into_iter().map(show).collect()
}

/// Returns the first lines, by number, of functions' doc comments that begin with one of [`FRAGMENTS`].
fn fragments<'t>(file: &Path, text: &'t str) -> Vec<(usize, &'t str)> {
    if file.extension().is_none_or(|ending| ending != "rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let doc = |line: &'t str| line.trim_start().strip_prefix("///");
    let begins = |at: usize| {
        let first = at == 0 || doc(lines[at - 1]).is_none();
        let word =
            doc(lines[at]).filter(|_| first)?.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
        word.filter(|word| FRAGMENTS.contains(word) && documents_function(&lines[at..])).map(|_| (at + 1, lines[at]))
    };
    (0..lines.len()).filter_map(begins).collect()
}

/// Returns true if the item behind these lines of comments and attributes is a function.
fn documents_function(lines: &[&str]) -> bool {
    // This counts the brackets that an attribute has open.
    let mut open = 0;
    let item = lines.iter().map(|line| line.trim()).find(|line| {
        let attribute = open > 0 || line.starts_with("#[");
        if attribute {
            open += line.matches('[').count() as isize - line.matches(']').count() as isize;
        }
        !attribute && !line.starts_with("//")
    });
    let is_modifier = |word: &&str| {
        word.starts_with("pub") || word.ends_with(')') || ["const", "async", "unsafe", "extern", "\"C\""].contains(word)
    };
    item.is_some_and(|item| item.split_whitespace().find(|word| !is_modifier(word)) == Some("fn"))
}

fn is_in_table(name: &str) -> bool {
    systoll::environment::VARIABLES.iter().any(|v| v.names.split(", ").any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn the_repository_is_tidy() {
        let root = repository::root();
        let files = repository::files(&root).unwrap();
        assert!(files.iter().any(|f| f == Path::new("xtask/src/tidy.rs")), "the rules look at nothing");
        assert_eq!(broken(&root, &files).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn broken_rules_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            broken(dir.path(), &[name.into()]).unwrap().len()
        };
        assert_eq!(check("a.rs", &"\n".repeat(601)), 1);
        assert_eq!(check("a.rs", &"\n".repeat(600)), 0);
        assert_eq!((check("b.rs", "a\0b"), check("b.bin", "a\0b")), (1, 0));
        assert_eq!(check("Cargo.lock", &"\n".repeat(601)), 0);
        assert_eq!(check("a.md", &format!("see /{}/main", "work")), 1);
        assert_eq!(check("crates/judge/src/lib.rs", "//! x"), 1);
        assert_eq!(check("crates/judge/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
        assert_eq!(check("crates/judge/src/other.rs", "//! x"), 0);
        assert_eq!(check("crates/record/src/lib.rs", "//! x"), 0);
        let decoder = "use iced_x86::Decoder;";
        assert_eq!(check("crates/symbols/src/stack/walk.rs", decoder), 1);
        assert_eq!(check("crates/symbols/src/code/arch/x86_64/calls.rs", decoder), 0);
        assert_eq!(check("crates/record/src/ptrace/calls.rs", "fn f(regs: &libc::user_regs_struct) {}"), 1);
        assert_eq!(check("crates/record/src/ptrace/calls.rs", "// libc::user_regs_struct"), 0);
        let read = "let home = std::env::var_os(\"HOME\");";
        assert_eq!(check("crates/present/src/x.rs", read), 1);
        assert_eq!(check("crates/present/src/x.rs", &format!("#[cfg(test)]\nmod tests {{ {read} }}")), 0);
        assert_eq!(check("crates/trust/src/places.rs", read) + check("xtask/src/x.rs", read), 0);
        assert_eq!(check("crates/trust/src/places.rs", &read.replace("HOME", "AWAY")), 1);
        assert_eq!(check("crates/systoll/src/cli/x.rs", "#[arg(long, env = \"SYSTOLL_AWAY\")]"), 1);
        assert_eq!(check("cases/cases/a/case.toml", &format!("# {} IN", "FILL")), 1);
        let doc = "/// Whether it is.\n#[expect(\n    dead_code\n)]\npub(in crate::a) const fn is() {}";
        assert_eq!(check("crates/judge/src/x.rs", doc), 1);
        assert_eq!(check("crates/judge/src/x.rs", &doc.replace("Whether", "Returns true if")), 0);
        assert_eq!(check("crates/judge/src/x.rs", &doc.replace("///", "/// Tells it.\n///")), 0);
        assert_eq!(check("crates/judge/src/x.rs", "/// What is kept.\nkept: fn() -> bool,"), 0);
        for open in ["let f = File::open(path)?;", "std::fs::read(path)", "OpenOptions::new().read(true)"] {
            assert_eq!(check("crates/symbols/src/maps.rs", open), 1, "{open}");
            assert_eq!(check("crates/symbols/src/maps.rs", &format!("#[cfg(test)]\nmod tests {{ {open} }}")), 0);
            assert_eq!(check("crates/symbols/tests/x.rs", open) + check("crates/systoll/src/x.rs", open), 0);
        }
    }
}
