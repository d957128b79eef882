//! Writes the files of a new cause: its own, a case that has it, and its line among the causes' ids.

use super::language::{LANGUAGES, Language};
use super::place::{MARK, check, insert, write_new};
use anyhow::{Context, Result};
use std::path::Path;

/// Writes the files of the cause `id`, with a case in `language`. Returns the paths of what it has written or changed.
///
/// # Errors
/// If the id is no valid one, the language has no cases, or one of the files exists already.
pub(crate) fn new_cause(root: &Path, id: &str, language: &str) -> Result<Vec<String>> {
    check(id, '-')?;
    let known = LANGUAGES.iter().find(|known| known.name == language);
    let language = known.with_context(|| {
        let names: Vec<&str> = LANGUAGES.iter().map(|known| known.name).collect();
        format!("no cases are written in {language:?}, but in {}", names.join(", "))
    })?;
    let case = format!("{}-{id}", language.prefix);
    let file = |name: &str| format!("cases/cases/{case}/{name}");
    let twins = ["sick", "cured"].map(|twin| (file(&format!("{twin}.{}", language.ending)), source(language, twin)));
    let [sick, cured] = twins;
    let files = [
        (format!("crates/judge/causes/{id}.toml"), cause_file(id, &case, language.name)),
        (file("case.toml"), case_file(id, &case, language)),
        sick,
        cured,
    ];
    let mut written = Vec::new();
    for (file, text) in files {
        write_new(root, &file, &text)?;
        written.push(file);
    }
    let list = "cases/CAUSES.md";
    insert(root, list, "| tz-unset |", &format!("| {id} | {MARK}: what happens, in a line |\n"))?;
    written.push(list.to_owned());
    Ok(written)
}

fn source(language: &Language, twin: &str) -> String {
    let what = match twin {
        "sick" => "the calls that are needless",
        _ => "the same without them; both print the same",
    };
    language.source.replace("{}", &format!("{MARK}: {what}"))
}

fn cause_file(id: &str, case: &str, language: &str) -> String {
    format!(
        r#"# {MARK}: all that a comment asks for, then take the comments out. docs/reference/causes.md explains each field.
id = "{id}"
title = "{MARK}: what happens, in a line"
why = "{{api}} {MARK}: the mechanism; in {{agree}} of {{windows}} windows it was so"
recognise = "strace shows {MARK}"
apply = "none"
mended = []
# {MARK}: a public report that tells of it, as owner/project#number
reports = ["owner/project#1"]
cases = ["{case}"]

# {MARK}: what a finding of it looks like; `systoll run --json -- CMD` has kind and syscalls of yours
[[match]]
kinds = ["repeat"]
syscalls = ["getpid"]

# {MARK}: the cure in this language, with its example
[[stop]]
how = "{MARK}: what to do, in a line"
kind = "code"
languages = ["{language}"]
gives_up = "{MARK}: what is lost by it"

# {MARK}: the cure for all other languages
[[stop]]
how = "{MARK}: what to do, in a line"
kind = "code"
gives_up = "{MARK}: what is lost by it"
"#
    )
}

fn case_file(id: &str, case: &str, language: &Language) -> String {
    let is_compiled = !language.builds.is_empty();
    let build = |twin: &str| language.builds.replace("{}", twin);
    let (builds, run) = if is_compiled {
        let builds = format!("mkdir -p bin && {} && {}", build("sick"), build("cured"));
        (builds, ["sick", "cured"].map(|twin| language.runs.replace("{}", twin)))
    } else {
        let run = |twin: &str| format!("{} {twin}.{}", language.needs, language.ending);
        ("true".to_owned(), ["sick", "cured"].map(run))
    };
    let ([sick, cured], needs, shown) = (run, language.needs, language.shown);
    format!(
        r#"name = "{case}"
kind = "disease"
set = "own"
cause = "{id}"
generic = false
lang = "{shown}"
needs = ["{needs}"]
source = "-"
# {MARK}: the C functions that make the calls, any of which must be named; lang_api has the language's own
api = ["getpid"]
syscalls = ["getpid"]
finding = "{MARK}: what is needless, in a sentence."
remedy = "{MARK}: what to do, in a sentence."
cure_kind = "code"
basis = "count"
build = "{builds}"
run = "{sick} 5000"
cured_run = "{cured} 5000"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::unfilled;
    use std::process::Command;

    fn repository_of(id: &str, language: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("cases")).unwrap();
        std::fs::write(dir.path().join("cases/CAUSES.md"), "| id |\n|---|\n| tz-unset | a |\n").unwrap();
        new_cause(dir.path(), id, language).unwrap();
        dir
    }

    #[test]
    fn written_files_form_a_cause_and_must_be_filled_in() {
        for language in LANGUAGES {
            let dir = repository_of("new-one", language.name);
            let text = std::fs::read_to_string(dir.path().join("crates/judge/causes/new-one.toml")).unwrap();
            let cause = systoll_judge::Catalogue::parse("new-one.toml", &text).unwrap();
            assert_eq!((&*cause.id, cause.cases.len()), ("new-one", 1));
            for file in crate::repository::files(dir.path()).unwrap() {
                let text = std::fs::read_to_string(dir.path().join(&file)).unwrap();
                assert!(unfilled(&file, &text).is_some(), "{}", file.display());
            }
            let case = dir.path().join("cases/cases").join(&cause.cases[0]).join("case.toml");
            let case: toml::Table = std::fs::read_to_string(case).unwrap().parse().unwrap();
            assert_eq!(case["cause"].as_str(), Some("new-one"));
        }
        let listed = std::fs::read_to_string(repository_of("new-one", "c").path().join("cases/CAUSES.md")).unwrap();
        assert!(listed.contains("|---|\n| new-one | "), "{listed}");
    }

    #[test]
    fn its_programs_run_and_print_the_same() {
        let mut ran = 0;
        for language in LANGUAGES {
            let dir = repository_of("new-one", language.name);
            let folder = dir.path().join("cases/cases").join(format!("{}-new-one", language.prefix));
            let case: toml::Table = std::fs::read_to_string(folder.join("case.toml")).unwrap().parse().unwrap();
            let has = |needed: &str| Command::new("sh").args(["-c", &format!("command -v {needed}")]).output();
            if !has(language.needs).is_ok_and(|out| out.status.success()) {
                continue;
            }
            let said = |key: &str| {
                let command = case[key].as_str().unwrap();
                let out = Command::new("sh").args(["-c", command]).current_dir(&folder).output().unwrap();
                assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
                String::from_utf8(out.stdout).unwrap()
            };
            said("build");
            assert_eq!((said("run").as_str(), said("cured_run").as_str()), ("5000\n", "5000\n"), "{}", language.name);
            ran += 1;
        }
        assert!(ran >= 1, "not even a shell's");
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let dir = repository_of("new-one", "c");
        assert!(new_cause(dir.path(), "new-one", "c").is_err());
        assert!(new_cause(dir.path(), "New", "c").is_err());
        assert!(new_cause(dir.path(), "other", "cobol").unwrap_err().to_string().contains("python"));
    }
}
