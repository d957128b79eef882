//! Writes the files of a new detector: its own, its tests, and the lines that name both.

use super::place::{MARK, check, insert, insert_module, write_new};
use anyhow::Result;
use std::path::Path;

/// Path of the list of detectors.
const LIST: &str = "crates/judge/src/detect/mod.rs";
/// Path of the list of tests.
const TESTS: &str = "crates/judge/tests/all/main.rs";

/// Writes the files of the detector `name`. Returns the paths of what it has written or changed.
///
/// # Errors
/// If the name is no valid module name, or one of the files exists already.
pub(crate) fn new_detector(root: &Path, name: &str) -> Result<Vec<String>> {
    check(name, '_')?;
    let class: String = name.split('_').map(capital).collect();
    let (code, tests) = (format!("crates/judge/src/detect/{name}.rs"), format!("crates/judge/tests/all/{name}.rs"));
    write_new(root, &code, &code_of(&class))?;
    write_new(root, &tests, &tests_of(&class))?;
    insert_module(root, TESTS, name)?;
    insert_module(root, LIST, name)?;
    // A detector has the calls that those before it left.
    insert(
        root,
        LIST,
        "    ];\n    let mut claims",
        &format!(
            "        // {MARK}: its signs, and its place: the first that can tell why has the claim.\n        (Signs::CALL, Box::new({name}::{class})),\n"
        ),
    )?;
    Ok(vec![code, tests, LIST.to_owned(), TESTS.to_owned()])
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn code_of(class: &str) -> String {
    format!(
        r#"//! {MARK}: what the program does, in a line.

use super::claim::{{Claim, Claims, Detector, put}};
use crate::finding::Kind;
use crate::replay::Step;

/// Claims {MARK}.
pub(super) struct {class};

impl Detector for {class} {{
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {{
        for step in steps {{
            // {MARK}: what makes the call needless, by what the step knows. The first of its sort is never claimed.
            let is_needless = false;
            if is_needless {{
                // {MARK}: the kind, what the call is about, what to do instead.
                put(claims, step.index, Claim::of(Kind::Repeat, "what it asks for", "what to do instead"));
            }}
        }}
    }}
}}
"#
    )
}

fn tests_of(class: &str) -> String {
    format!(
        r#"//! {MARK}: what {class} finds, and what it leaves alone.

use crate::common::{{Call, call, judged, no_finding, only, rounds}};
use systoll_judge::Kind;

/// Processor time of the run in ns.
const BUSY: u64 = 100_000_000;

/// {MARK}: the calls of one round of the sick program.
fn sick(_round: u64) -> Vec<Call> {{
    vec![call("getppid", "getppid", &[], 4711)]
}}

/// {MARK}: the same of the program that makes these calls for good reason.
fn healthy(round: u64) -> Vec<Call> {{
    vec![call("getppid", "getppid", &[], round as i64)]
}}

#[test]
fn the_sick_program_has_one_finding() {{
    let finding = only(judged(&rounds(20_000, sick), BUSY));
    // {MARK}: its kind, and what its sentence says.
    assert_eq!(finding.kind, Kind::Repeat);
}}

#[test]
fn its_healthy_neighbour_has_none() {{
    no_finding(&rounds(20_000, healthy), BUSY);
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;
    use crate::scaffold::unfilled;

    fn with_list() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in [LIST, TESTS] {
            let list = std::fs::read_to_string(repository::root().join(file)).unwrap();
            write_new(dir.path(), file, &list).unwrap();
        }
        dir
    }

    #[test]
    fn a_detector_is_listed_where_it_belongs_and_must_be_filled_in() {
        let dir = with_list();
        let files = new_detector(dir.path(), "near_writes").unwrap();
        for file in &files {
            let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
            syn::parse_file(&text).unwrap();
            // The list of tests has nothing to fill in.
            assert!(unfilled(file.as_ref(), &text).is_some() || file == TESTS, "{file}");
        }
        let list = std::fs::read_to_string(dir.path().join(LIST)).unwrap();
        assert!(list.contains("mod near_reads;\nmod near_writes;\nmod noop;\n"), "{list}");
        let tests = std::fs::read_to_string(dir.path().join(TESTS)).unwrap();
        assert!(tests.contains("mod led_elsewhere;\nmod near_writes;\nmod one_by_one;\n"), "{tests}");
        assert!(list.contains("        (Signs::CALL, Box::new(near_writes::NearWrites)),\n    ];"), "{list}");
        new_detector(dir.path(), "zeal").unwrap();
        let list = std::fs::read_to_string(dir.path().join(LIST)).unwrap();
        assert!(list.contains("mod walk;\nmod zeal;\n\npub(crate) use "), "{list}");
    }

    #[test]
    fn a_name_that_is_taken_or_none_is_refused() {
        let dir = with_list();
        new_detector(dir.path(), "near_writes").unwrap();
        for name in ["near_writes", "Near", "near-writes", "", "9_lives", "near_"] {
            assert!(new_detector(dir.path(), name).is_err(), "{name:?}");
        }
    }
}
