//! Tests the screens of `systoll explain` and `systoll causes`.

use crate::common::{schema::violations, stories};
use insta::assert_snapshot;
use serde_json::Value;
use systoll_judge::{Catalogue, Cause, CodeLanguage, Judgement, Plain, ReasonId, Silence, Why};
use systoll_model::{Recording, RowId};
use systoll_present::{Style, why_not_json, write_causes, write_explain, write_why_not};

fn explain(cause: &Cause, width: usize) -> String {
    let mut out = vec![];
    write_explain(&mut out, cause, None, &Style { color: false, width, whole_names: false })
        .expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}

fn causes(catalogue: &Catalogue) -> String {
    let mut out = vec![];
    write_causes(&mut out, catalogue, &Style { color: false, width: 80, whole_names: false })
        .expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}

const CAUSE: &str = r#"
id = "slow-thing"
title = "the thing is asked for each time"
why = "{api} makes a {syscall} on {what}; in {agree} of {windows} windows nothing had changed"
recognise = "strace -c shows as many calls as there are things"
apply = "env"
mended = ["thing 2.0"]
reports = ["https://example.org/1", "https://example.org/2"]
cases = ["c-thing", "py-thing"]

[[match]]
kinds = ["repeat"]
syscalls = ["getpid"]
apis = ["ask", "ask_again"]

[[match]]
kinds = ["no-op"]
why = "{syscall} sets {what} anew"
syscalls = ["umask"]

[[stop]]
situation = "you may set variables"
how = "tell it once: THING=1"
kind = "environment"
env = { THING = "1 2" }

[[stop]]
how = "ask once and keep the answer"
kind = "code"
"#;

#[test]
fn a_cause_is_explained_with_every_cure_and_its_drawback() {
    let mut cause = Catalogue::parse("test", CAUSE).expect("a cause");
    cause.cures[0].gives_up = "a changed thing \u{1b}[1mis not seen".into();
    assert_snapshot!(explain(&cause, 70), @r#"
    slow-thing
      the thing is asked for each time

      why        ask makes a getpid on the object

      also       umask sets the object anew

      recognise  strace -c shows as many calls as there are things

      fix        tell it once: THING=1
                 when: you may set variables
                 set: THING='1 2'
                 gives up: a changed thing \x1b[1mis not seen
                 try: systoll prove --cure slow-thing -- CMD

      or         ask once and keep the answer

      mended     thing 2.0

      reports    https://example.org/1
                 https://example.org/2
    "#);
}

#[test]
fn a_language_sees_its_own_cures_and_an_example() {
    let catalogue = Catalogue::builtin();
    let cause = catalogue.get("unbuffered-output").expect("it is built in");
    let mut out = vec![];
    let perl = CodeLanguage::named("perl");
    write_explain(&mut out, cause, perl, &Style { color: false, width: 100, whole_names: false })
        .expect("writing to memory");
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(
        text.contains("  Perl       drop $| = 1") && text.contains("\n             before\n               $| = 1;"),
        "{text}"
    );
    assert!(!text.contains("PYTHONUNBUFFERED") && !text.contains("bufio"), "{text}");
    assert!(text.contains("https://github.com/uutils/coreutils/issues/2115"), "{text}");
}

#[test]
fn causes_are_listed_by_id() {
    let mut catalogue = Catalogue::empty();
    assert_eq!(causes(&catalogue), "no causes are known\n");
    let first = Catalogue::parse("test", CAUSE).expect("a cause");
    let second = Cause { id: "a-much-longer-name".into(), ..first.clone() };
    catalogue.extend([first, second]);
    let text = causes(&catalogue);
    assert_eq!(
        text,
        "a-much-longer-name   the thing is asked for each time\n\
         slow-thing           the thing is asked for each time\n"
    );
}

#[test]
fn every_builtin_cause_fits_a_terminal() {
    let catalogue = Catalogue::builtin();
    for cause in catalogue.iter() {
        let text = explain(cause, 80);
        // Cures may contain braces, as parts of programs; the sentences before them must contain
        // none of ours.
        let ours = text.split_once("  recognise").map_or("", |(ours, _)| ours);
        assert!(ours.contains(&*cause.id) && !ours.contains(['{', '}']), "{text}");
        for cure in &cause.cures {
            let words: Vec<_> = cure.how.split_whitespace().collect();
            assert!(words.iter().all(|w| text.contains(w)), "{}: {text}", cure.how);
        }
        // A line may be longer if it has an address, which is one word, or a line of code, which is
        // pasted unchanged.
        let examples = || cause.cures.iter().flat_map(|cure| [&cure.before, &cure.after]).flatten();
        let is_code = |line: &str| examples().any(|code| code.lines().any(|l| l.trim() == line.trim()));
        let too_long = |l: &&str| l.chars().count() > 80 && !l.contains("://") && !is_code(l);
        let long: Vec<_> = text.lines().filter(too_long).collect();
        assert_eq!(long, Vec::<&str>::new());
    }
}

/// Returns the story of `localtime` with silences of its rows: some calls are meant, some are hidden.
fn silent() -> (Recording, Judgement) {
    let (rec, mut judgement) = stories::localtime();
    let of = |row| Silence {
        row: RowId(row),
        seen: 40,
        needless: 10,
        unsure: vec![(None, 3), (Some(Why::Good(ReasonId::BeforeOpening)), 2)],
        hidden: 5,
        silent: vec![(Why::Good(ReasonId::DataBetween), 15), (Why::Plain(Plain::FewBytes), 5)],
    };
    judgement.silences = (0..rec.rows.len() as u32).map(of).collect();
    (rec, judgement)
}

#[test]
fn why_nothing_was_reported_conforms_to_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/reference/why-not.schema.json")).unwrap();
    let (rec, judgement) = silent();
    let rows: Vec<RowId> = (0..rec.rows.len() as u32).map(RowId).collect();
    let json = why_not_json(&rec, &judgement, "app.c:7", &rows);
    assert_eq!(violations(&schema, &json), Vec::<String>::new());
    assert!(json["places"].as_array().is_some_and(|places| !places.is_empty()));
    let mut broken = json.clone();
    broken["places"][0]["sampled"] = "many".into();
    assert!(!violations(&schema, &broken).is_empty());
}

#[test]
fn each_part_of_a_silence_is_said() {
    let (rec, mut judgement) = silent();
    (judgement.findings, judgement.also) = (vec![], vec![]);
    let mut out = vec![];
    let style = Style { color: false, width: 200, whole_names: false };
    write_why_not(&mut out, &rec, &judgement, &[RowId(0)], &style).unwrap();
    let said = String::from_utf8(out).unwrap();
    for part in [
        "10 of 40 needless",
        "3 of 40 may be needless",
        "2 of 40 before-opening",
        "15 of 40 data-between",
        "5 of 40 few-bytes",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    judgement.silences.clear();
    let mut out = vec![];
    write_why_not(&mut out, &rec, &judgement, &[RowId(0)], &style).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("none of them sampled"));
}
