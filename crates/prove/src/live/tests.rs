use super::*;
use crate::Verdict;
use systoll_model::{Missed, Random};

const GETPID: Sysno = Sysno(39);
const WRITE: Sysno = Sysno(1);

/// A program that needs 1 µs for each write, and 100 ns for each of the two getpid beside it; on one processor.
struct Program {
    turns: usize,
    /// Turns after which the program ends.
    ends: usize,
    /// Calls that are made although they could be answered, in a turn.
    missed: u64,
    load: Option<fn(bool) -> Turn>,
    random: Random,
}

impl Program {
    fn new() -> Self {
        Self { turns: 0, ends: usize::MAX, missed: 0, load: None, random: Random::new(7) }
    }
}

impl LiveTurns for Program {
    fn turn(&mut self, answered: bool) -> Result<LiveTurn, LiveError> {
        self.turns += 1;
        if self.turns > self.ends {
            return Err(LiveError::Ended(Ended::Gone("it has ended".into())));
        }
        let writes = if answered { 1_000_000 } else { 833_333 };
        let writes = writes + self.random.draw() % 5_000;
        let asked = 2 * writes;
        let made = if answered { self.missed } else { asked };
        let in_place = InPlace {
            syscall: GETPID,
            answered: if answered { asked - made } else { 0 },
            needed: 0,
            missed: vec![(Missed::Unseen, made)],
        };
        Ok(LiveTurn {
            answered,
            seconds: 1.0,
            cpu_ns: 1_000_000_000,
            made: BTreeMap::from([(WRITE, writes), (GETPID, made)]),
            in_place: vec![in_place],
            load: self.load.map(|load| load(answered)),
        })
    }
}

fn options(turns: u32) -> LiveOptions {
    LiveOptions { turns, confidence: 0.99, negligible_percent: 0.5, per: None, seed: 3 }
}

fn compared(program: &mut Program, options: &LiveOptions) -> LiveResult {
    compare_live(program, options, &mut |_, _| ()).unwrap().0
}

#[test]
fn a_gain_is_found_by_the_call_that_goes_on() {
    let LiveResult::Both(c) = compared(&mut Program::new(), &options(8)) else { panic!() };
    assert_eq!((c.work, c.turns, c.ended.as_ref()), (Work::Calls(WRITE), 8, None));
    let cpu = c.cpu.as_ref().unwrap();
    assert!((-18.0..-15.0).contains(&cpu.percent) && cpu.verdict == Verdict::Faster, "{cpu:?}");
    assert!(c.is_won() && c.per_second.percent > 15.0 && c.processors.verdict == Verdict::NoDifference);
    assert!(c.a.asked.median > 1.6e6 && c.b.asked.median == 0.0, "{:?}", c.b.asked);
    assert_eq!(c.answered.share(), Some(1.0));
}

#[test]
fn both_kinds_of_turns_are_interleaved_in_pairs() {
    let (_, turns) = compare_live(&mut Program::new(), &options(9), &mut |_, _| ()).unwrap();
    assert_eq!(turns.len(), 18);
    for pair in turns.chunks(2) {
        assert_ne!(pair[0].answered, pair[1].answered);
    }
    for four in turns.chunks_exact(4) {
        assert_eq!(four[0].answered, four[3].answered);
    }
}

#[test]
fn a_part_predicts_nothing() {
    let mut program = Program { missed: 200_000, ..Program::new() };
    let LiveResult::Part(answered) = compared(&mut program, &options(8)) else { panic!() };
    assert!(answered.share().unwrap() < 0.95);
}

#[test]
fn what_is_known_when_the_program_ends_is_told() {
    let mut program = Program { ends: 18, ..Program::new() };
    let LiveResult::Both(c) = compared(&mut program, &options(20)) else { panic!() };
    assert_eq!((c.turns, c.ended), (8, Some(Ended::Gone("it has ended".into()))));
    let mut program = Program { ends: 16, ..Program::new() };
    let error = compare_live(&mut program, &options(20), &mut |_, _| ()).unwrap_err();
    assert!(matches!(error, ProveError::Gone(_)), "{error}");
}

#[test]
fn a_load_is_the_unit_of_work_and_failed_requests_end_the_claim() {
    let load = |answered: bool| Turn {
        per_second: if answered { 1_200.0 } else { 1_000.0 },
        told: true,
        work: Some(if answered { 1_200 } else { 1_000 }),
        ..Turn::default()
    };
    let mut program = Program { load: Some(load), ..Program::new() };
    let LiveResult::Both(c) = compared(&mut program, &options(8)) else { panic!() };
    assert_eq!((c.work, c.per_second.verdict), (Work::Requests, Verdict::Faster));
    assert!((c.a.cpu_ns.unwrap().median - 1e6).abs() < 1.0);
    let fails = |answered: bool| Turn { failed: u64::from(answered), ..Turn::default() };
    let mut program = Program { load: Some(fails), ..Program::new() };
    assert!(matches!(compared(&mut program, &options(8)), LiveResult::Fails(_)));
}

#[test]
fn a_program_without_the_calls_is_told_so() {
    struct Idle;
    impl LiveTurns for Idle {
        fn turn(&mut self, _: bool) -> Result<LiveTurn, LiveError> {
            let made = BTreeMap::from([(WRITE, 9)]);
            Ok(LiveTurn { seconds: 2.0, made, ..LiveTurn::default() })
        }
    }
    let (result, _) = compare_live(&mut Idle, &options(8), &mut |_, _| ()).unwrap();
    assert_eq!(result, LiveResult::NoCalls(2.0));
}

#[test]
fn the_unit_of_work_is_the_most_frequent_call_that_goes_on() {
    let of = |made: &[(Sysno, u64)], per| {
        let in_place = vec![InPlace { syscall: GETPID, answered: 0, needed: 0, missed: Vec::new() }];
        let turn = LiveTurn { seconds: 1.0, made: made.iter().copied().collect(), in_place, ..LiveTurn::default() };
        Work::of(&turn, per).ok()
    };
    assert_eq!(of(&[(GETPID, 900), (WRITE, 90), (Sysno(0), 80)], None), Some(Work::Calls(WRITE)));
    assert_eq!(of(&[(GETPID, 900), (WRITE, 3)], None), Some(Work::Asked));
    assert_eq!(of(&[(GETPID, 900), (Sysno(0), 80)], Some(Sysno(0))), Some(Work::Calls(Sysno(0))));
    assert_eq!(of(&[(GETPID, 900), (WRITE, 3)], Some(WRITE)), None);
}
