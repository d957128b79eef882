//! Switches each good reason off: the case that it names must fail then.

use std::path::Path;
use systoll_judge::ReasonId;
use systoll_reports::corpus::Corpus;
use systoll_reports::reasons::is_needed;

#[test]
fn each_good_reason_is_needed_by_the_case_that_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (corpus, texts) = (Corpus::at(&root.join("reports")), root.join("cases/text"));
    let needless = ReasonId::ALL.iter().filter(|reason| !is_needed(&corpus, &texts, **reason).unwrap());
    let ids: Vec<&str> = needless.map(|reason| reason.reason().id).collect();
    assert!(ids.is_empty(), "no case fails without these: {ids:?}; `cargo xtask reports --reasons` finds cases");
}
