//! Holds the repository's own recordings against what they promise. Their reports and scores are compared by `./test`,
//! with an optimized build: eight times as fast.

use std::path::{Path, PathBuf};
use systoll_judge::Catalogue;
use systoll_reports::corpus::Corpus;
use systoll_reports::render::{Judged, read};

/// Largest size of all recordings together, bytes.
const MOST_BYTES: u64 = 12_000_000;
/// Least number of recordings.
const LEAST: usize = 150;
/// Number of recordings of which one is judged twice.
const EVERY: usize = 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn corpus() -> Corpus {
    Corpus::at(&root().join("reports"))
}

#[test]
fn a_recording_has_one_report() {
    let (corpus, catalogue) = (corpus(), Catalogue::builtin());
    let names = corpus.names().unwrap();
    for name in names.iter().step_by(EVERY) {
        let report = || Judged::of(read(&corpus.recording(name)).unwrap(), &catalogue).document().unwrap().text();
        // Hash tables have another order in each thread and table.
        assert_eq!(report(), std::thread::scope(|scope| scope.spawn(report).join().unwrap()), "{name}");
    }
}

#[test]
fn the_recordings_are_many_and_small() {
    let names = corpus().names().unwrap();
    let bytes: u64 = names.iter().map(|name| corpus().recording(name).metadata().unwrap().len()).sum();
    assert!(names.len() >= LEAST && bytes <= MOST_BYTES, "{} recordings, {bytes} bytes", names.len());
}
