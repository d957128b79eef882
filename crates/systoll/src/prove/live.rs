//! `systoll prove --live`: a running program, its calls made and answered in place in turns.

use super::cure_choice::elided_by;
use super::pair::strings;
use super::watching::{Told, Watching};
use crate::cli::{Cli, Command, ProveArgs, SelectArgs};
use crate::explain::{catalogue, known};
use crate::failure::{Failure, ended_by};
use crate::output::{Left, Output, progress_line, shown_time, to_stderr};
use crate::processes;
use crate::turns::LeftState;
use clap::Parser;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use systoll_cure::{interrupted, settle};
use systoll_model::{Elision, InertJson, Sysno};
use systoll_present::{LiveSubject, live_json, shell_words, write_live};
use systoll_prove::{
    Ended, LiveError, LiveOptions, LiveResult, LiveTurn, LiveTurns, Load, ProveError, ServeError, compare_live, shell,
};
use systoll_record::{TurnOrder, TurnTotals};

/// Time that all turns take together, by default.
const TIME: Duration = Duration::from_secs(30);
/// Turns of either side: the fewest that can show something at 99 %, and the most where none are asked for.
const TURNS: u32 = 8;
const MOST_TURNS: u32 = 20;
/// Length of a turn where there is time for more than the fewest.
const TURN: Duration = Duration::from_millis(750);
/// The shortest turn.
const SHORTEST: Duration = Duration::from_millis(50);
/// Time between two looks if the turn is over.
const LOOK: Duration = Duration::from_millis(10);

/// Compares turns of the program, prints the result, and exits with 0 if something can be claimed.
pub(super) fn live(args: &ProveArgs, process: &str) -> Result<ExitCode, Failure> {
    let mut report = Output::open(args.output.as_deref(), Output::Stdout)?;
    let pids = processes::found(&SelectArgs { processes: vec![process.to_owned()], ..SelectArgs::default() })?;
    let elided = elided(args, &pids)?;
    let plan = Plan::of(args)?;
    if let Some(setup) = &args.setup {
        shell(setup, Vec::new())?;
    }
    let named: Vec<(i32, String)> = pids.iter().map(|pid| (*pid, processes::name(*pid))).collect();
    let compared = compare(args, &plan, &pids, &elided);
    if let Some(cleanup) = &args.cleanup {
        settle();
        shell(cleanup, Vec::new())?;
    }
    let (result, turns, left) = compared?;
    let names: Vec<&'static str> = elided.iter().map(|e| e.name()).collect();
    let load = args.load.as_ref().map(|words| strings(&words.0));
    let left = left.as_ref().map(|left| (left.longest_stop_ns, &*left.problems));
    let subject = LiveSubject { processes: &named, elided: &names, load: load.as_deref(), left };
    let style = report.style(args.color.when);
    report.write("report", |w| {
        if args.json {
            let json = live_json(&result, &turns, subject, env!("CARGO_PKG_VERSION"));
            serde_json::to_writer_pretty(InertJson(&mut *w), &json)?;
            return writeln!(w);
        }
        write_live(w, &result, subject, style)?;
        Ok::<(), io::Error>(())
    })?;
    if let Some(signal) = interrupted() {
        return Ok(ExitCode::from(ended_by(signal)));
    }
    Ok(ExitCode::from(u8::from(matches!(result, LiveResult::Fails(_) | LiveResult::NoCalls(_)))))
}

/// Returns the calls to answer: those that were asked for, and those of the cause.
fn elided(args: &ProveArgs, pids: &[i32]) -> Result<Vec<Elision>, Failure> {
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned());
    let causes: Vec<String> = args.cure.iter().cloned().chain(words).collect();
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let mut all = args.elide.clone();
    for asked in &causes {
        let id = asked.split(':').next().unwrap_or_default();
        let cause = known(&catalogue, id)?;
        let calls = elided_by(cause);
        if calls.is_empty() {
            let applied = cause.cures.iter().any(systoll_judge::Cure::is_applied);
            let pid = pids.first().copied().unwrap_or(0);
            let help = if applied { anew(args, pid, asked) } else { format!("what can be done: systoll explain {id}") };
            return Err(Failure::NotLive { cause: asked.clone(), applied, help });
        }
        all.extend(calls);
    }
    if all.is_empty() {
        return Err(Failure::Usage("--live needs a cause, or --elide with the calls to answer in place"));
    }
    let mut seen = Vec::new();
    all.retain(|call| {
        !seen.contains(call) && {
            seen.push(*call);
            true
        }
    });
    Ok(all)
}

/// Returns the command that proves a cure with a new start of a process's command.
fn anew(args: &ProveArgs, pid: i32, cause: &str) -> String {
    let command = processes::command(pid);
    let command = if command.is_empty() { "CMD".to_owned() } else { shell_words(&command) };
    let folder = processes::folder(pid).filter(|folder| std::env::current_dir().is_ok_and(|own| own != *folder));
    let there =
        folder.map_or_else(String::new, |folder| format!("cd {} && ", shell_words(&[folder.to_string_lossy()])));
    let port = args.live.as_deref().and_then(|process| process.strip_prefix(':'));
    if port.is_none() && args.load.is_none() {
        return format!("{there}systoll prove --cure {cause} -- {command}");
    }
    let load = args.load.as_ref().map_or_else(|| "LOAD".into(), |words| shell_words(&strings(&words.0)));
    let [server, load] = [command, load].map(|text| shell_words(&[&text]));
    format!("{there}systoll prove --serve {server} --ready {} --load {load} --cure {cause}", port.unwrap_or("PORT"))
}

/// Parses the command line anew with the cause as `--cure`, so that words behind it may be options: words behind a
/// program's name are that program's.
pub(super) fn with_options_behind(args: &ProveArgs) -> Option<Command> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let (cause, behind) = args.command.split_first().filter(|(_, behind)| !behind.is_empty())?;
    let mut before = words.get(..words.len().checked_sub(args.command.len())?)?.to_vec();
    before.pop_if(|last| last == "--");
    let all = before.into_iter().chain(["--cure".into(), cause.clone()]).chain(behind.iter().cloned());
    match Cli::try_parse_from(all) {
        Ok(cli) => Some(cli.command),
        Err(error) => error.exit(),
    }
}

/// Number and length of the turns.
struct Plan {
    turns: u32,
    turn: Duration,
    load: Option<Load>,
    per: Option<Sysno>,
}

impl Plan {
    fn of(args: &ProveArgs) -> Result<Self, Failure> {
        let time = args.drive_for.unwrap_or(TIME);
        let fit = u32::try_from(time.as_millis() / (2 * TURN.as_millis())).unwrap_or(MOST_TURNS);
        let most = if args.load.is_some() { TURNS } else { MOST_TURNS };
        let turns = args.pairs.unwrap_or_else(|| fit.clamp(TURNS, most));
        // One more turn comes first: it finds out which call counts the program's work.
        let turn = time / turns.saturating_mul(2).saturating_add(1);
        if turn < SHORTEST {
            return Err(Failure::Usage("--live needs more time for its turns: --for 30s"));
        }
        let load = args.load.as_ref().map(|words| Load(words.0.clone()));
        Ok(Self { turns, turn, load, per: args.per })
    }
}

type Compared = (LiveResult, Vec<LiveTurn>, Option<LeftState>);

fn compare(args: &ProveArgs, plan: &Plan, pids: &[i32], elided: &[Elision]) -> Result<Compared, Failure> {
    let mut watching = Watching::begin(pids, elided)?;
    let told = watching.ask(TurnOrder::Make);
    let entered = match told {
        Ok(_) => Ok(()),
        Err(Told::Refused(reason, advice)) => {
            let own: Vec<String> = std::env::args().skip(1).collect();
            return Err(Failure::NotEntered { reason, advice: advice.map(|advice| for_prove(&advice, pids, &own)) });
        }
        Err(Told::Over(ended)) => Err(LiveError::Ended(ended)),
    };
    if !args.quiet {
        let total = plan.turn.saturating_mul(2 * plan.turns + 1);
        let turns = format!("{} turns of {} each way", plan.turns, exactly(plan.turn));
        let takes = if plan.load.is_some() { "as long as its load takes".into() } else { shown_time(total) };
        to_stderr(&format!("systoll: {turns}, {takes}; Ctrl-C tells what is known by then.\n"));
    }
    let line = progress_line(args.quiet);
    let left = Left::new();
    let mut far = None;
    let mut progress = |done: u32, of: u32| {
        far = Some((done, of));
        line.set_message(format!("{done} of {of} turns{}", left.words(done.into(), of.into())));
        line.tick();
    };
    let options = LiveOptions {
        turns: plan.turns,
        confidence: 0.99,
        negligible_percent: 0.5,
        per: plan.per,
        seed: args.seed.unwrap_or_else(crate::seed::fresh),
    };
    let mut turns = Turns { watching: &mut watching, plan };
    let compared = entered.map_err(ProveError::from).and_then(|()| compare_live(&mut turns, &options, &mut progress));
    line.finish_and_clear();
    if interrupted().is_some() {
        // The interrupt must not end this process before the program's processes are left, however long that takes.
        settle();
    }
    let left = watching.end(pids)?;
    let known = || match far {
        Some((done, of)) => {
            format!(" after {done} of {of} turns: too few to tell anything; the program runs on as before")
        }
        None => " before the first turn was over; the program runs on as before".into(),
    };
    let (result, turns) = compared.map_err(|error| Failure::from(error).knowing(known))?;
    Ok((result, turns, left))
}

fn exactly(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Turns advice to start `systoll attach` by sudo into advice to start this command, with the words `own`, by sudo.
fn for_prove(advice: &str, pids: &[i32], own: &[String]) -> String {
    let attach = advice.rsplit_once("systoll attach ").filter(|(before, _)| before.starts_with("sudo "));
    let Some((before, pid)) = attach.filter(|(_, pid)| pid.parse::<i32>().is_ok()) else { return advice.to_owned() };
    // In another PID namespace the process has another number.
    let is_known = |word: &String| pids.iter().any(|known| known.to_string() == *word);
    let words: Vec<&str> = own.iter().map(|word| if is_known(word) { pid } else { word }).collect();
    format!("{before}systoll {}", shell_words(&words))
}

struct Turns<'a> {
    watching: &'a mut Watching,
    plan: &'a Plan,
}

impl LiveTurns for Turns<'_> {
    fn turn(&mut self, answered: bool) -> Result<LiveTurn, LiveError> {
        let order = if answered { TurnOrder::Answer } else { TurnOrder::Make };
        let before = self.ask(order)?;
        let load = match &self.plan.load {
            None => self.wait().map(|()| None)?,
            Some(load) => Some(self.drive(load)?),
        };
        let after = self.ask(TurnOrder::Read)?;
        if let Some(why) = after.unanswered.first() {
            let why = format!("calls are not answered in place any more: {why}");
            return Err(LiveError::Ended(Ended::Gone(why)));
        }
        Ok(LiveTurn { answered, load, ..between(&before, &after) })
    }
}

impl Turns<'_> {
    fn ask(&mut self, order: TurnOrder) -> Result<TurnTotals, LiveError> {
        match self.watching.ask(order) {
            Ok(totals) => Ok(totals),
            Err(Told::Over(ended)) => Err(LiveError::Ended(ended)),
            Err(Told::Refused(reason, _)) => Err(LiveError::Ended(Ended::Gone(reason))),
        }
    }

    /// Waits for the turn's end.
    fn wait(&mut self) -> Result<(), LiveError> {
        let end = Instant::now() + self.plan.turn;
        loop {
            if interrupted().is_some() {
                return Err(LiveError::Ended(Ended::Interrupted));
            }
            if let Some(why) = self.watching.is_over() {
                return Err(LiveError::Ended(Ended::Gone(why)));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Runs the load for the turn's length at least.
    fn drive(&mut self, load: &Load) -> Result<systoll_prove::Turn, LiveError> {
        let Self { watching, plan } = self;
        let driven = load.drive(plan.turn, &mut || watching.is_over().map_or(Ok(()), |why| Err(ServeError::Gone(why))));
        driven.map_err(|error| match (interrupted(), error) {
            (Some(_), _) => LiveError::Ended(Ended::Interrupted),
            (None, ServeError::Gone(why)) => LiveError::Ended(Ended::Gone(why)),
            (None, error) => LiveError::Failed(error.into()),
        })
    }
}

/// Returns the time, the calls made and the calls answered between two readings.
fn between(before: &TurnTotals, after: &TurnTotals) -> LiveTurn {
    let made = after
        .made
        .iter()
        .map(|(syscall, n)| (*syscall, n.saturating_sub(before.made.get(syscall).copied().unwrap_or(0))));
    let in_place = after.in_place.iter().map(|p| {
        let mut since = p.clone();
        if let Some(was) = before.in_place.iter().find(|was| was.syscall == p.syscall) {
            since.answered = since.answered.saturating_sub(was.answered);
            since.needed = since.needed.saturating_sub(was.needed);
            for (why, n) in &mut since.missed {
                *n = n.saturating_sub(was.missed.iter().find(|(known, _)| known == why).map_or(0, |(_, n)| *n));
            }
        }
        since
    });
    LiveTurn {
        seconds: after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9,
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        made: made.filter(|(_, n)| *n > 0).collect(),
        in_place: in_place.collect(),
        ..LiveTurn::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use systoll_model::{InPlace, Missed};

    #[test]
    fn what_helps_attach_helps_this_command() {
        let own = ["prove", "--live", "700", "--elide", "getpid"].map(str::to_owned);
        let of = |advice: &str| for_prove(advice, &[700], &own);
        assert_eq!(of("sudo systoll attach 700"), "sudo systoll prove --live 700 --elide getpid");
        let inside = "sudo nsenter -t 700 -p unshare --mount-proc systoll ";
        assert_eq!(of(&format!("{inside}attach 1")), format!("{inside}prove --live 1 --elide getpid"));
        for other in ["kill -CONT 700 lets it go on", "systoll attach --clean 700 takes out what was left"] {
            assert_eq!(of(other), other);
        }
    }

    #[test]
    fn a_turn_is_what_was_done_between_two_moments() {
        let [getpid, write] = [Sysno(39), Sysno(1)];
        let totals = |at, n: u64| TurnTotals {
            at_ns: at,
            cpu_ns: at / 2,
            made: BTreeMap::from([(getpid, 3), (write, n)]),
            in_place: vec![InPlace { syscall: getpid, answered: n, needed: 1, missed: vec![(Missed::Unseen, n / 2)] }],
            ..TurnTotals::default()
        };
        let turn = between(&totals(1_000_000_000, 10), &totals(3_000_000_000, 30));
        assert_eq!((turn.seconds, turn.cpu_ns), (2.0, 1_000_000_000));
        assert_eq!(turn.made, BTreeMap::from([(write, 20)]));
        assert_eq!((turn.in_place[0].answered, turn.in_place[0].missed()), (20, 10));
    }
}
