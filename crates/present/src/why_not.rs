//! The screen and the JSON of `systoll explain --why-not`: what became of calls, and why systoll reported no more of them.

use crate::SCHEMA_VERSION;
use crate::access::{frame, row};
use crate::explain::Page;
use crate::style::{Line, Role, Style};
use crate::text::sentence;
use crate::units::{counted, grouped};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use systoll_judge::{Finding, Judgement, Silence, Why};
use systoll_model::{Location, Recording, Row, RowId};

/// Rows of one system call at one place, taken together.
#[derive(Default)]
struct Place<'a> {
    calls: u64,
    silence: Silence,
    reported: Vec<(String, &'a Finding)>,
}

/// Returns the rows' places, most calls first. The judgement must be one that was asked for silences.
fn places<'a>(rec: &Recording, judgement: &'a Judgement, rows: &[RowId]) -> Vec<((String, String), Place<'a>)> {
    let mut all: BTreeMap<(String, String), Place<'a>> = BTreeMap::new();
    for id in rows {
        let Some(of) = row(rec, *id) else { continue };
        let place = all.entry((of.syscall.to_string(), place(rec, of))).or_default();
        place.calls = place.calls.saturating_add(of.counts.calls);
        if let Some(silence) = judgement.silences.get(id.0 as usize) {
            place.silence.add(silence);
        }
        let (findings, also) = ((1..).zip(&judgement.findings), (1..).zip(&judgement.also));
        let named = |what: &str, (n, finding): (usize, &'a Finding)| {
            (format!("{what} {n}, {}", finding.cause.as_deref().unwrap_or(finding.kind.name())), finding)
        };
        let all = findings.map(|one| named("finding", one)).chain(also.map(|one| named("remark", one)));
        let of_row = all.filter(|(_, finding)| finding.rows.contains(id));
        let new: Vec<_> = of_row.filter(|(name, _)| !place.reported.iter().any(|(other, _)| other == name)).collect();
        place.reported.extend(new);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, place)| std::cmp::Reverse(place.calls));
    all
}

/// Returns the line, or else the function, that makes a row's calls.
fn place(rec: &Recording, row: &Row) -> String {
    let line = row.lines.iter().max_by_key(|line| line.weight).map(|line| line.frame);
    let location = line.or(row.user).and_then(|id| frame(rec, id)).and_then(|frame| frame.location());
    let of = |location: &Location| match (&location.file, location.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
        _ => location.function.to_string(),
    };
    location.map(of).unwrap_or_default()
}

/// Writes, for each place of the rows, what became of its calls and why no more of them is reported.
///
/// # Errors
/// The errors of `w`.
pub fn write_why_not(
    w: &mut dyn io::Write,
    rec: &Recording,
    judgement: &Judgement,
    rows: &[RowId],
    style: &Style,
) -> io::Result<()> {
    let page = Page { width: style.columns() };
    for (n, ((syscall, at), place)) in places(rec, judgement, rows).into_iter().enumerate() {
        let silence = &place.silence;
        let mut head = Line::of(Role::Strong, sentence(&syscall));
        let at = if at.is_empty() { String::new() } else { format!(" at {}", sentence(&at)) };
        let sampled = match silence.seen {
            0 => "none of them sampled".to_owned(),
            seen => format!("{} of them sampled", grouped(seen)),
        };
        head.push(Role::Plain, format!("{at}: {}, {sampled}", counted(place.calls, "call", "calls")));
        let mut lines = if n > 0 { vec![Line::default(), head] } else { vec![head] };
        let names: Vec<String> = place.reported.iter().map(|(name, of)| format!("{name}: {}", needless(of))).collect();
        lines.extend(page.rows("reported", &names));
        let few = "needless, but they are too few or too cheap together for a finding or a remark";
        let cheap = (silence.needless > 0 && names.is_empty()).then(|| of_seen(silence.needless, silence.seen, few));
        lines.extend(page.rows("too little", &cheap.into_iter().collect::<Vec<_>>()));
        let unsure = silence.unsure.iter().map(|(why, calls)| match why {
            Some(why) => of_seen(*calls, silence.seen, &format!("{}: {}", why.id(), why.because())),
            None => of_seen(*calls, silence.seen, "may be needless, but nothing that systoll sees makes it sure"),
        });
        lines.extend(page.rows("not sure", &unsure.collect::<Vec<_>>()));
        let silent = |good: bool| {
            let is = move |(why, _): &&(Why, u64)| matches!(why, Why::Good(_)) == good;
            let all = silence.silent.iter().filter(is);
            all.map(|(why, calls)| of_seen(*calls, silence.seen, &format!("{}: {}", why.id(), why.because())))
                .collect::<Vec<_>>()
        };
        lines.extend(page.rows("meant", &silent(true)));
        lines.extend(page.rows("no waste", &silent(false)));
        let hidden = (silence.hidden > 0).then(|| {
            of_seen(
                silence.hidden,
                silence.seen,
                "what they repeat or undo lies before or after the calls that were sampled together",
            )
        });
        lines.extend(page.rows("not seen", &hidden.into_iter().collect::<Vec<_>>()));
        if silence.seen == 0 && names.is_empty() {
            let none = "no call was sampled with its arguments, so that nothing is known but the counts".to_owned();
            lines.extend(page.rows("not seen", &[none]));
        }
        lines.iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))?;
    }
    Ok(())
}

/// Returns `12 of 40  text`.
fn of_seen(n: u64, seen: u64, text: &str) -> String {
    format!("{} of {}  {text}", grouped(n), grouped(seen))
}

fn needless(finding: &Finding) -> String {
    match finding.needless.estimate {
        0 => "see the report".to_owned(),
        n => format!("about {} needless", counted(n, "call", "calls")),
    }
}

/// Returns the same as JSON. `asked` is the line or the call that was asked about.
pub fn why_not_json(rec: &Recording, judgement: &Judgement, asked: &str, rows: &[RowId]) -> Value {
    let why = |why: Option<Why>, calls: u64| {
        json!({"reason": why.map(Why::id), "because": why.map(Why::because), "calls": calls,
               "good": matches!(why, Some(Why::Good(_)))})
    };
    let place = |((syscall, at), place): ((String, String), Place<'_>)| {
        let Silence { seen, needless, hidden, unsure, silent, .. } = &place.silence;
        let at = Some(at).filter(|at| !at.is_empty());
        json!({
            "syscall": syscall, "place": at, "calls": place.calls, "sampled": seen, "needless": needless, "hidden": hidden,
            "reported": place.reported.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "unsure": unsure.iter().map(|(of, calls)| why(*of, *calls)).collect::<Vec<_>>(),
            "silent": silent.iter().map(|(of, calls)| why(Some(*of), *calls)).collect::<Vec<_>>(),
        })
    };
    let all: Vec<Value> = places(rec, judgement, rows).into_iter().map(place).collect();
    json!({"systoll": {"version": rec.header.version, "schema": SCHEMA_VERSION}, "why_not": asked, "places": all})
}
