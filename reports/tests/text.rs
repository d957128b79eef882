//! Runs the text cases, and the example of the page that says how to write one.

use std::path::{Path, PathBuf};
use systoll_reports::text::{check, check_texts};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn what_text_cases_expect_is_found_and_nothing_else() {
    let checked = check(&root().join("cases/text"), "").unwrap();
    assert!(checked.wrong.is_empty(), "{}", checked.wrong.join("\n"));
}

#[test]
fn the_example_of_the_docs_holds() {
    let page = std::fs::read_to_string(root().join("docs/develop/text-cases.md")).unwrap();
    let (_, rest) = page.split_once("````markdown\n").expect("an example");
    let (example, _) = rest.split_once("````\n").expect("the example's end");
    let checked = check_texts(&[("text-cases.md", example)], "");
    assert!(checked.cases > 1 && checked.wrong.is_empty(), "{}", checked.wrong.join("\n"));
}

#[test]
fn a_case_that_fails_says_where_what_and_what_was_found() {
    let trace = "## a pid\n\n```strace repeat=2000\ngetppid() = 7\n```\n";
    let said = |finds: &str| check_texts(&[("a.md", &format!("{trace}```finds\n{finds}\n```\n"))], "").wrong.join("\n");
    assert_eq!(said("identity-per-op needless=1990..2000"), "");
    for wrong in ["nothing", "tz-unset", "identity-per-op needless=..10", "not repeat", "no finding", "tz-unset remark"]
    {
        let said = said(wrong);
        assert!(said.starts_with("a.md:7: a pid\n") && said.contains("finding identity-per-op kind=repeat"), "{said}");
    }
    assert!(said("no-such-cause").contains("a.md:7: no-such-cause is neither"));
}
