//! `systoll explain CAUSE` and `systoll causes`: what is known of a disease.

use crate::style::{Line, Role, Style, flow};
use crate::text::{columns, sentence, shell_words, wrap};
use std::io;
use systoll_judge::{Apply, Catalogue, Cause, Cure, Pattern};

/// Column at which the text beside a label begins.
const TEXT: usize = 13;

/// Writes all that is known of `cause`: the mechanism, how to recognise it, every cure and what it
/// gives up, the public reports it comes from.
///
/// # Errors
/// Those of `w`.
pub fn write_explain(w: &mut dyn io::Write, cause: &Cause, style: &Style) -> io::Result<()> {
    let page = Page { width: style.columns() };
    let mut lines = vec![Line::of(Role::Strong, sentence(&cause.id))];
    let title = wrap(&sentence(&cause.title), page.width.saturating_sub(2));
    lines.extend(title.into_iter().map(|text| Line::of(Role::Plain, format!("  {text}"))));
    for (i, why) in mechanisms(cause).into_iter().enumerate() {
        lines.extend(page.part(if i == 0 { "why" } else { "or" }, &[why]));
    }
    lines.extend(page.part("recognise", std::slice::from_ref(&cause.recognise)));
    for (i, cure) in cause.stop.iter().enumerate() {
        lines.extend(page.cure(i == 0, cure));
    }
    lines.extend(page.part("mended", &cause.mended));
    lines.extend(page.part("to try", &[to_try(cause.apply).to_owned()]));
    lines.extend(page.part("reports", &cause.reports));
    lines.extend(page.part("cases", &[cause.cases.join(", ")]));
    lines.iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

/// Writes one line a cause: its id, and what happens.
///
/// # Errors
/// Those of `w`.
pub fn write_causes(w: &mut dyn io::Write, catalogue: &Catalogue, style: &Style) -> io::Result<()> {
    let width = style.columns();
    let ids = catalogue.iter().map(|c| columns(&sentence(&c.id))).max().unwrap_or(0);
    let column = (ids + 3).min(width / 2);
    for cause in catalogue.iter() {
        let mut line = Line::of(Role::Strong, sentence(&cause.id));
        line.pad_to(column);
        for line in flow(line, vec![Line::of(Role::Plain, sentence(&cause.title))], 3, column, width) {
            writeln!(w, "{}", line.render(style))?;
        }
    }
    if catalogue.iter().next().is_none() {
        writeln!(w, "no causes are known")?;
    }
    Ok(())
}

struct Page {
    width: usize,
}

impl Page {
    /// A part of the page, after an empty line: a label, then paragraphs; nothing where all are empty.
    fn part(&self, label: &str, paragraphs: &[String]) -> Vec<Line> {
        let full: Vec<_> = paragraphs.iter().map(|p| sentence(p)).filter(|p| !p.is_empty()).collect();
        if full.is_empty() {
            return vec![];
        }
        let mut lines = vec![Line::default()];
        for (i, text) in full.iter().enumerate() {
            lines.extend(self.paragraph(if i == 0 { label } else { "" }, Role::Plain, text));
        }
        lines
    }

    fn paragraph(&self, label: &str, role: Role, text: &str) -> Vec<Line> {
        let texts = wrap(text, self.width.saturating_sub(TEXT)).into_iter().enumerate();
        let lines = texts.map(|(i, text)| {
            let mut line = Line::of(Role::Plain, "  ");
            line.push(Role::Faint, if i == 0 { label } else { "" });
            line.pad_to(TEXT);
            line.with(role, text)
        });
        lines.collect()
    }

    fn cure(&self, first: bool, cure: &Cure) -> Vec<Line> {
        let mut lines = vec![Line::default()];
        lines.extend(self.paragraph(if first { "stop" } else { "or" }, Role::Good, &sentence(&cure.how)));
        let variable = |(name, value): (&String, &String)| format!("{}={}", sentence(name), shell_words(&[value]));
        let environment: Vec<_> = cure.env.iter().map(variable).collect();
        let details = [
            ("when", sentence(&cure.situation)),
            ("change of", cure.kind.name().replace('-', " ")),
            ("set", environment.join(" ")),
            ("load", cure.shim.as_ref().map_or_else(String::new, |name| format!("libsystoll-{}.so", sentence(name)))),
            ("gives up", sentence(&cure.gives_up)),
        ];
        for (what, text) in details.iter().filter(|(_, text)| !text.is_empty()) {
            lines.extend(self.paragraph("", Role::Plain, &format!("{what}: {text}")));
        }
        lines
    }
}

/// A cause's mechanisms where there is no finding to fill their braces from: the examples are
/// those of the pattern, the evidence is left out.
fn mechanisms(cause: &Cause) -> Vec<String> {
    let own = |p: &Pattern| p.why.is_none();
    let usual = cause.matches.iter().find(|p| own(p)).or(cause.matches.first());
    let mut all = vec![general(&cause.why, usual)];
    for pattern in &cause.matches {
        let why = pattern.why.as_ref().map(|why| general(why, Some(pattern)));
        all.extend(why.filter(|why| !all.contains(why)));
    }
    all
}

fn general(why: &str, pattern: Option<&Pattern>) -> String {
    // The clause about windows tells of one run.
    let end = why.find("{agree}").and_then(|at| why.get(..at)?.rfind(';')).unwrap_or(why.len());
    let first = |names: Option<&Vec<String>>, or: &str| names.and_then(|n| n.first().cloned()).unwrap_or(or.to_owned());
    let syscall = pattern.and_then(|p| p.syscalls.first()).map_or("the system call".into(), ToString::to_string);
    let fillers = [
        ("{api}", first(pattern.map(|p| &p.apis), "the function")),
        ("{what}", first(pattern.map(|p| &p.objects), "the object")),
        ("{syscall}", syscall),
        ("{agree}", "n".into()),
        ("{windows}", "n".into()),
    ];
    let text = why.get(..end).unwrap_or(why).to_owned();
    fillers.iter().fold(text, |text, (brace, word)| text.replace(brace, word))
}

fn to_try(apply: Apply) -> &'static str {
    match apply {
        Apply::Env => "without touching the program: by environment variables",
        Apply::Shim => "without touching the program: by a library loaded before the others",
        Apply::Elide => "without touching the program: by answering the call without making it",
        Apply::None => "",
    }
}
