//! Tests the claims about recorded noise: real times of real runs on a busy box, in their order,
//! which preserves the correlation of neighbouring runs.

use std::time::Duration;
use systoll_cure::{Spec, Usage};
use systoll_model::Exit;
use systoll_prove::{Executor, Measured, Options, Output, Pairs, ProveError, Run, Same, Verdict, compare};

/// Plays recorded runs from a given index on; `b` takes `factor` times the recorded time.
struct Recorded {
    runs: Vec<(f64, f64)>,
    at: usize,
    factor: f64,
}

impl Executor for Recorded {
    fn run(&mut self, spec: &Spec, _: &Output, _: Option<Duration>) -> Result<Run, ProveError> {
        let (wall, cpu) = self.runs[self.at % self.runs.len()];
        self.at += 1;
        let factor = if spec.program.as_os_str() == "b" { self.factor } else { 1.0 };
        let ns = |us: f64| (us * factor * 1_000.0) as u64;
        let usage = Usage {
            exit: Exit::Code(0),
            wall_ns: ns(wall),
            user_ns: ns(cpu),
            sys_ns: 0,
            max_rss: 1 << 20,
            switches: 0,
            faults: 0,
        };
        Ok(Run { usage, stdout: None, stderr: None, by: None, wrote: Default::default() })
    }
}

/// Makes one comparison; `seed` chooses its start in the recording.
fn trial(seed: u64, factor: f64, options: &Options) -> Measured {
    let lines = include_str!("noise.txt").lines().filter(|l| !l.starts_with('#'));
    let pair = |l: &str| l.split_once(' ').and_then(|(w, c)| Some((w.parse().ok()?, c.parse().ok()?)));
    let runs: Vec<(f64, f64)> = lines.map(|l| pair(l).expect("two numbers a line")).collect();
    assert!(runs.len() >= 500);
    let at = usize::try_from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).unwrap();
    let options = Options { same: Same::NONE, seed: seed.wrapping_mul(0xd134_2543_de82_ef95), ..options.clone() };
    let mut recorded = Recorded { runs, at, factor };
    let compared = compare(&mut recorded, &Spec::new("a"), &Spec::new("b"), &options, &mut |_| {}).unwrap();
    compared.measured.unwrap()
}

#[test]
fn identical_sides_are_hardly_ever_told_apart() {
    let until_decisive = Options { pairs: Pairs::Decisive(Duration::from_secs(3600)), ..Options::default() };
    let differs = |m: &Measured| m.wall.verdict != Verdict::NoDifference || m.cpu.verdict != Verdict::NoDifference;
    let claimed = (0..400).filter(|seed| differs(&trial(*seed, 1.0, &until_decisive))).count();
    assert!(claimed <= 8, "{claimed} of 400");
}

/// A change of 2 % is found at the look after 60 pairs, whose share of the error level is a fifth.
/// This holds of processor time only: ten other programs disturb the elapsed time of a short run by
/// more than 2 %, and then nothing is claimed.
#[test]
fn two_percent_are_found_within_sixty_pairs() {
    let fourth_look = Options { pairs: Pairs::Fixed(60), confidence: 0.998, ..Options::default() };
    let mut found = 0;
    for seed in 0..200 {
        let m = trial(seed, 0.98, &fourth_look);
        assert_ne!(m.cpu.verdict, Verdict::Slower, "seed {seed}: {:?}", m.cpu);
        found += u32::from(m.cpu.verdict == Verdict::Faster);
    }
    assert!(found >= 190, "{found} of 200");
}
