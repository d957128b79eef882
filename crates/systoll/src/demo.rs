//! Implements `systoll demo`: watches each story's sick program and times it beside its cured twin.

mod ways;

use crate::cli::DemoArgs;
use crate::failure::{Failure, ended_by};
use crate::output::{Output, progress_line, to_stderr};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use systoll_cure::{PrivateFolder, Spec, Story, interrupted, interrupted_after, stories, story};
use systoll_judge::{Catalogue, Finding, judge};
use systoll_model::Recording;
use systoll_present::{Role, Style, write_comparison, write_finding, write_ways};
use systoll_prove::{CallCounts, Options, Pairs, Processes, Verdict, compare};
use systoll_record::{Launch, Quiet, automatic, run_with_first};
use ways::{LIMIT, PAIRS};

/// Tells one story, or all of them.
pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let told: Vec<&Story> = match &args.story {
        None => stories().iter().collect(),
        Some(id) => vec![story(id).ok_or_else(|| Failure::Unknown {
            what: "story",
            name: id.clone(),
            known: stories().iter().map(|s| s.id.to_owned()).collect(),
            help: "systoll demo tells them all".into(),
        })?],
    };
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color.when);
    let folder = PrivateFolder::new().map_err(|e| Failure::Demo(e.to_string()))?;
    let mut found = true;
    let of = told.len();
    let stories = if of == 1 { "one story" } else { "true stories" };
    let time = if args.prove { "a minute or two" } else { "half a minute" };
    let intro =
        format!("{of} {stories}, on this box: small C programs are built, watched and timed, in about {time}\n\n");
    output.write("introduction", |w| w.write_all(intro.as_bytes()))?;
    let mut won: Vec<(&str, f64)> = Vec::new();
    for (told, story) in told.into_iter().enumerate() {
        let line = progress_line(false);
        let told_so_far = |what: &str| line.set_message(format!("{} of {of}  {}: {what}", told + 1, story.id));
        let page = tell(story, &folder, args.prove, &style, &told_so_far);
        line.finish_and_clear();
        // A story that was killed by the interrupt did not fail, and proves nothing.
        if let Some(signal) = interrupted() {
            to_stderr(&format!("systoll: interrupted; {told} of {of} stories shown\n"));
            return Ok(ExitCode::from(ended_by(signal)));
        }
        let page = page?;
        found &= page.found;
        won.extend(page.times_faster.map(|times| (story.id, times)));
        output.write("story", |w| w.write_all(&page.text))?;
    }
    let won: Vec<String> = won.iter().map(|(id, times)| format!("{id} {times:.1}×")).collect();
    let faster = if won.is_empty() { String::new() } else { format!("faster here: {}\n", won.join("   ")) };
    let end = format!("{faster}now your own: systoll run -- ./app\n");
    output.write("end", |w| w.write_all(end.as_bytes()))?;
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The page that tells a story.
struct StoryPage {
    text: Vec<u8>,
    /// True if the story's finding was found on this machine.
    found: bool,
    /// Factor by which the cured program is faster, if it is surely faster.
    times_faster: Option<f64>,
}

fn tell(
    story: &'static Story,
    folder: &PrivateFolder,
    prove: bool,
    style: &Style,
    progress: &dyn Fn(&str),
) -> Result<StoryPage, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::Demo(format!("{}: {e}", story.id));
    let mut page = Vec::new();
    heading(&mut page, story, style).map_err(|e| failed(&e))?;
    progress("building");
    let built = story.build(folder.path()).map_err(|e| failed(&e))?;
    progress("watching");
    let sick = watch(&built.watched.sick)?;
    let cured = watch(&built.watched.cured)?;
    let judgement = judge(&sick, &Catalogue::builtin(), &systoll_judge::Options::default());
    let all = judgement.findings.iter().chain(&judgement.also);
    let finding = all.into_iter().find(|f| story.cause.is_none() || f.cause.as_deref() == story.cause);
    match finding {
        Some(finding) => {
            // The demo's programs are removed when it ends: the next command would not find them.
            let finding = Finding { prove: Vec::new(), ..finding.clone() };
            write_finding(&mut page, &sick, &judgement, 1, &finding, style).map_err(|e| failed(&e))?;
        }
        None => {
            writeln!(page, "  {}", style.paint(Role::Bad, "not found here")).map_err(|e| failed(&e))?;
        }
    }
    writeln!(page).map_err(|e| failed(&e))?;
    if built.watched.sick.args != built.timed.sick.args {
        let rounds = |spec: &Spec| spec.args.last().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let (watched, timed) = (rounds(&built.watched.sick), rounds(&built.timed.sick));
        let note = format!(
            "  calls are counted in a run of {watched} repetitions, times are of {timed} repetitions, unwatched"
        );
        writeln!(page, "{}", style.paint(Role::Faint, &note)).map_err(|e| failed(&e))?;
    }
    let options = Options { pairs: Pairs::Fixed(PAIRS), ..Options::default() };
    let mut processes = Processes { limit: Some(LIMIT), ..Processes::default() };
    let timed = compare(&mut processes, &built.timed.sick, &built.timed.cured, &options, &mut |at| {
        progress(&format!("proving, {} of {} pairs", at.pairs, at.wanted));
    })
    .map_err(|e| failed(&e))?;
    let faster = timed.measured.as_ref().filter(|m| m.wall.verdict == Verdict::Faster);
    let times_faster = faster.map(|m| 100.0 / (100.0 + m.wall.percent).max(0.1));
    // Watched runs make fewer rounds than timed ones: their price would mislead.
    let counts = |of| CallCounts { toll_ns: None, ..CallCounts::of(std::slice::from_ref(of)) };
    let counts = (&counts(&sick), &counts(&cured));
    let cure = format!("cured: {}", story.cure);
    write_comparison(&mut page, &timed, Some(counts), None, ("as it is", &cure), *style).map_err(|e| failed(&e))?;
    if prove {
        let ways = ways::measure(story.cause, finding, &built.timed)?;
        let twin = [(story.cure, &timed)];
        let all: Vec<_> = twin.into_iter().chain(ways.iter().map(|w| (w.name.as_str(), &w.measured))).collect();
        write_ways(&mut page, &all, *style).map_err(|e| failed(&e))?;
    }
    if !story.gives_up.is_empty() {
        writeln!(page, "  gives up  {}", story.gives_up).map_err(|e| failed(&e))?;
    }
    writeln!(page).map_err(|e| failed(&e))?;
    Ok(StoryPage { text: page, found: finding.is_some(), times_faster })
}

fn heading(page: &mut Vec<u8>, story: &Story, style: &Style) -> std::io::Result<()> {
    writeln!(page, "{}  {}", style.paint(Role::Name, story.id), style.paint(Role::Strong, story.title))?;
    for line in story.happened.lines() {
        writeln!(page, "  {}", style.paint(Role::Faint, line))?;
    }
    writeln!(page)
}

fn watch(spec: &Spec) -> Result<Recording, Failure> {
    let launch = Launch {
        command: spec.argv(),
        env: spec.env.clone(),
        cwd: spec.cwd.clone(),
        discard_output: true,
        linger: Duration::from_secs(1),
        ..Launch::default()
    };
    let watched = run_with_first(&mut automatic(), &launch, &mut Quiet);
    let exit = watched.as_ref().ok().and_then(|r| r.header.exit);
    match exit.map_or_else(interrupted, interrupted_after) {
        Some(signal) => Err(Failure::Interrupted(signal)),
        None => Ok(watched?),
    }
}
