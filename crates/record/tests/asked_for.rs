//! Results that a launch requests besides counts, from inside: each long call, and whole stacks.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use systoll_model::{FrameId, Recording, RowId};
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, HowToWatch, Launch, Quiet};

/// Returns a lock that one test holds at a time, because backends wait for all children of their process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A compiled program, removed with its folder when dropped.
struct Program(tempfile::TempDir);

impl Program {
    fn written(source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, out) = (folder.path().join("program.c"), folder.path().join("program"));
        std::fs::write(&file, source).unwrap();
        let cc = Command::new("cc").args(["-O1", "-w", "-o"]).arg(out).arg(file).args(flags).status().unwrap();
        assert!(cc.success());
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("program")
    }
}

fn launched(launch: &Launch) -> Recording {
    let recording = InprocBackend::new().run(launch, &mut Quiet).unwrap();
    assert_eq!(recording.check(), Ok(()));
    recording
}

#[test]
fn long_calls_are_listed_with_their_threads() {
    let _alone = alone();
    let source = "#include <pthread.h>\n#include <unistd.h>\n\
        static void *second(void *p) { for (int i = 0; i < 7; i++) usleep(3000); return p; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, second, 0);\n\
        for (int i = 0; i < 5; i++) { usleep(20000); for (int n = 0; n < 1000; n++) getppid(); }\n\
        pthread_join(t, 0); }";
    let program = Program::written(source, &["-pthread"]);
    let of = |longer: Option<Duration>| {
        let how = HowToWatch { longer, ..HowToWatch::default() };
        launched(&Launch { command: vec![program.path().into()], how, ..Launch::default() })
    };
    let recording = of(Some(Duration::from_millis(2)));
    let sleeps = |from_ns: u64| {
        let name = |row: RowId| recording.rows[row.0 as usize].syscall.name();
        let long = recording.longest.iter().filter(move |l| l.ns >= from_ns);
        long.filter(|l| name(l.row) == Some("clock_nanosleep")).collect::<Vec<_>>()
    };
    // No sleep is cut short. On a busy machine, a sleep of the other thread may take as long as a sleep of main.
    assert!(sleeps(20_000_000).len() >= 5 && sleeps(2_000_000).len() == 12, "{:?}", recording.longest);
    assert!(recording.longest.iter().all(|l| l.ns >= 2_000_000 && l.ns < recording.header.wall_ns));
    assert!(recording.longest.is_sorted_by(|a, b| a.ns >= b.ns));
    let threads: BTreeSet<_> = sleeps(0).iter().map(|l| l.thread.clone()).collect();
    assert_eq!(threads.len(), 2, "{threads:?}");
    let mut begun: Vec<u64> = sleeps(0).iter().map(|l| l.at_ns).collect();
    begun.sort_unstable();
    // The five sleeps of main follow each other.
    assert!(begun[11] - begun[0] >= 60_000_000 && begun[11] < recording.header.wall_ns, "{begun:?}");
    assert!(of(None).longest.is_empty());
}

#[test]
fn whole_stacks_are_sampled_even_if_contexts_are_known_from_an_earlier_run() {
    let _alone = alone();
    let source = "#include <sys/stat.h>\n\
        __attribute__((noinline)) static void ask(void) { struct stat s; for (int i = 0; i < 500; i++) stat(\"/\", &s); }\n\
        int main(void) { ask(); return 0; }";
    let program = Program::written(source, &["-g", "-fno-optimize-sibling-calls"]);
    for run in 0..3 {
        let recording = launched(&Launch { command: vec![program.path().into()], ..Launch::default() });
        let row = recording.rows.iter().find(|r| r.counts.calls == 500).unwrap();
        let above: Vec<&str> = recording.stacks[row.outer.0 as usize]
            .frames
            .iter()
            .map(|id: &FrameId| recording.frames[id.0 as usize].function())
            .collect();
        assert_eq!(above.first(), Some(&"main"), "run {run}");
        assert!(recording.stacks[row.outer.0 as usize].complete && recording.trunks.is_empty(), "run {run}: {above:?}");
    }
}
