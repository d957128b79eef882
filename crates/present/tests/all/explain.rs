//! Tests the screens of `systoll explain` and `systoll causes`.

use insta::assert_snapshot;
use systoll_judge::{Catalogue, Cause, CodeLanguage};
use systoll_present::{Style, write_causes, write_explain};

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
        let examples = || cause.cures.iter().filter_map(|c| c.example.as_ref()).flat_map(|e| [&e.before, &e.after]);
        let is_code = |line: &str| examples().any(|code| code.lines().any(|l| l.trim() == line.trim()));
        let too_long = |l: &&str| l.chars().count() > 80 && !l.contains("://") && !is_code(l);
        let long: Vec<_> = text.lines().filter(too_long).collect();
        assert_eq!(long, Vec::<&str>::new());
    }
}
