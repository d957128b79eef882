//! The screens of `systoll explain CAUSE` and `systoll causes`.

use crate::style::{Line, Role, Style, flow};
use crate::text::{clean, columns, sentence, shell_words, wrap};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use systoll_judge::{Catalogue, Cause, CodeLanguage, Cure, Pattern};

/// Column at which the text beside a label starts.
const TEXT: usize = 13;

/// Writes everything about `cause`: its mechanism, how to recognise it, its cures by language with
/// what they give up and an example, and the public reports it comes from. With a `language`, only
/// the cures for it.
///
/// # Errors
/// The errors of `w`.
pub fn write_explain(
    w: &mut dyn io::Write,
    cause: &Cause,
    language: Option<CodeLanguage>,
    style: &Style,
) -> io::Result<()> {
    let page = Page { width: style.columns() };
    let mut lines = vec![Line::of(Role::Strong, sentence(&cause.id))];
    let title = wrap(&sentence(&cause.title), page.width.saturating_sub(2));
    lines.extend(title.into_iter().map(|text| Line::of(Role::Plain, format!("  {text}"))));
    for (i, why) in mechanisms(cause).into_iter().enumerate() {
        lines.extend(page.part(if i == 0 { "why" } else { "also" }, &[why]));
    }
    lines.extend(page.part("recognise", std::slice::from_ref(&cause.recognise)));
    lines.extend(page.part(
        "note",
        &language.and_then(|language| no_cure_of_its_own(cause, language)).into_iter().collect::<Vec<_>>(),
    ));
    for (label, number, cure) in by_language(cause, language) {
        lines.extend(page.cure(&label, cause, number, cure));
    }
    let upgrades = cause.upgrades.iter().map(systoll_judge::Upgrade::line);
    let mended: Vec<String> = cause.mended.iter().cloned().chain(upgrades).collect();
    lines.extend(page.part("mended", &mended));
    let reports: Vec<String> = cause.reports.iter().map(|report| address(report)).collect();
    lines.extend(page.part("reports", &reports));
    let several = cause.cures.iter().filter_map(|cure| cure.languages.first()).collect::<BTreeSet<_>>().len() > 1;
    if language.is_none() && several {
        let command = format!("systoll explain {} -l LANGUAGE", sentence(&cause.id));
        lines.extend(page.part("shorter", &[format!("{command}: the cures for one language alone")]));
    }
    lines.iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

/// Returns a remark if a cause has no cure that was made for `language`.
fn no_cure_of_its_own(cause: &Cause, language: CodeLanguage) -> Option<String> {
    let its_own = cause.cures.iter().any(|cure| cure.is_for_language(language));
    let setting = cause.cures.iter().find(|cure| cure.languages.is_empty() && !cure.env.is_empty());
    let same = match setting {
        Some(cure) => {
            let names: Vec<&str> = cure.env.keys().map(String::as_str).collect();
            format!("the cure is the same in every language: the variable {}", names.join(", "))
        }
        None => "what is said here is for every language".to_owned(),
    };
    (!its_own).then(|| format!("there is no cure of its own for {}; {same}", language.shown()))
}

/// Returns the cures with their labels and numbers: first those for every language, then each
/// language's. Within a language, cures for a certain file or function come last.
fn by_language(cause: &Cause, language: Option<CodeLanguage>) -> Vec<(String, usize, &Cure)> {
    let wanted = |cure: &Cure| language.is_none_or(|l| cure.languages.is_empty() || cure.is_for_language(l));
    let mut cures: Vec<(usize, &Cure)> = (1..).zip(&cause.cures).filter(|(_, cure)| wanted(cure)).collect();
    // A cure for several languages is listed with the first of them.
    let is_for_some = |cure: &Cure| {
        [&cure.modules, &cure.sources, &cure.functions, &cure.about].into_iter().any(|patterns| !patterns.is_empty())
    };
    cures.sort_by_key(|(_, cure)| (cure.languages.first().copied(), is_for_some(cure)));
    let mut last = None;
    let label = |(at, (number, cure)): (usize, (usize, &'_ Cure))| {
        let names: Vec<&str> = cure.languages.iter().map(|l| l.shown()).collect();
        let own = names.join(", ");
        let label = match (own.is_empty(), at) {
            (true, 0) => "fix".to_owned(),
            (true, _) => "or".to_owned(),
            (false, _) if last.as_ref() == Some(&own) => "or".to_owned(),
            (false, _) => own.clone(),
        };
        last = Some(own);
        (label, number)
    };
    let labels: Vec<(String, usize)> = cures.iter().copied().enumerate().map(label).collect();
    labels.into_iter().zip(cures).map(|((label, number), (_, cure))| (label, number, cure)).collect()
}

/// Converts `owner/name#12` to the URL of the issue; returns anything else as it is.
fn address(report: &str) -> String {
    let parts = report.split_once('#').and_then(|(repository, n)| Some((repository.split_once('/')?, n)));
    match parts {
        Some(((owner, name), n)) if !name.contains('/') && n.parse::<u64>().is_ok() => {
            format!("https://github.com/{owner}/{name}/issues/{n}")
        }
        _ => report.to_owned(),
    }
}

/// Writes a heading and one line for each of the causes. The heading is `of` with a colon behind
/// it.
///
/// # Errors
/// The errors of `w`.
pub fn write_causes_of(w: &mut dyn io::Write, of: &str, causes: &[&Cause], style: &Style) -> io::Result<()> {
    for text in wrap(&format!("{}:", sentence(of)), style.columns()) {
        writeln!(w, "{}", Line::of(Role::Plain, text).render(style))?;
    }
    writeln!(w)?;
    list(w, causes, 2, style)?;
    let more = match causes {
        [only] => format!("systoll explain {}", sentence(&only.id)),
        _ => "systoll explain CAUSE".to_owned(),
    };
    let page = Page { width: style.columns() };
    let more = page.part("more", &[format!("{more}: why, how to recognise it, every cure")]);
    more.iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

/// Writes one line for each cause: its id and its title.
///
/// # Errors
/// The errors of `w`.
pub fn write_causes(w: &mut dyn io::Write, catalogue: &Catalogue, style: &Style) -> io::Result<()> {
    list(w, &catalogue.iter().collect::<Vec<_>>(), 0, style)?;
    if catalogue.iter().next().is_none() {
        writeln!(w, "no causes are known")?;
    }
    Ok(())
}

/// Writes the id and title of each cause.
fn list(w: &mut dyn io::Write, causes: &[&Cause], indent: usize, style: &Style) -> io::Result<()> {
    let width = style.columns();
    let ids = causes.iter().map(|c| columns(&sentence(&c.id))).max().unwrap_or(0);
    let column = (indent + ids + 3).min(width / 2);
    for cause in causes {
        let mut line = Line::of(Role::Plain, " ".repeat(indent));
        line.push(Role::Strong, sentence(&cause.id));
        line.pad_to(column);
        for line in flow(line, vec![Line::of(Role::Plain, sentence(&cause.title))], 3, column, width) {
            writeln!(w, "{}", line.render(style))?;
        }
    }
    Ok(())
}

/// A page of labels with text beside them.
pub(crate) struct Page {
    pub(crate) width: usize,
}

impl Page {
    /// Returns a part of the page: an empty line, then a label with paragraphs. Returns nothing if
    /// all are empty.
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

    /// Returns paragraphs below each other, the first one beside the label.
    pub(crate) fn rows(&self, label: &str, paragraphs: &[String]) -> Vec<Line> {
        let row =
            |(i, text): (usize, &String)| self.paragraph(if i == 0 { label } else { "" }, Role::Plain, &sentence(text));
        paragraphs.iter().enumerate().flat_map(row).collect()
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

    fn cure(&self, label: &str, cause: &Cause, number: usize, cure: &Cure) -> Vec<Line> {
        let mut lines = vec![Line::default()];
        // A label of several languages is too long, so it gets a line of its own.
        let beside = if columns(label) + 3 > TEXT { "" } else { label };
        if beside.is_empty() {
            lines.push(Line::of(Role::Plain, "  ").with(Role::Faint, label));
        }
        lines.extend(self.paragraph(beside, Role::Good, &sentence(&cure.how)));
        let variable = |(name, value): (&String, &String)| format!("{}={}", sentence(name), shell_words(&[value]));
        let told = |text: &String| cure.how.contains(text.as_str());
        let environment: Vec<_> = cure.env.iter().map(variable).filter(|text| !told(text)).collect();
        let patterns = |patterns: &[String]| sentence(&patterns.join(", "));
        let version = match (&cure.since, &cure.older_than) {
            (Some(since), _) => format!("{since} or newer"),
            (None, Some(older)) => format!("older than {older}"),
            (None, None) => String::new(),
        };
        let details = [
            ("for", patterns(&cure.modules)),
            ("about", patterns(&cure.about)),
            ("version", version),
            ("when", sentence(&cure.situation)),
            ("only", sentence(&only_where(cure))),
            ("set", environment.join(" ")),
            ("load", cure.shim.as_ref().map_or_else(String::new, |name| format!("libsystoll-{}.so", sentence(name)))),
            ("gives up", sentence(&cure.gives_up)),
            ("try", self.command(cause, number, cure)),
        ];
        for (what, text) in details.iter().filter(|(_, text)| !text.is_empty()) {
            lines.extend(self.paragraph("", Role::Plain, &format!("{what}: {text}")));
        }
        for (what, code) in [("before", &cure.before), ("after", &cure.after)] {
            lines.extend(code.iter().flat_map(|code| self.code(what, code)));
        }
        lines
    }

    /// Returns the command that shows the cure's gain; nothing if systoll can't apply the cure.
    fn command(&self, cause: &Cause, number: usize, cure: &Cure) -> String {
        let is_first = cause.cures.iter().find(|c| c.is_applied()).is_some_and(|first| std::ptr::eq(first, cure));
        match (cure.is_applied(), is_first) {
            (false, _) => String::new(),
            (true, true) => format!("systoll prove --cure {} -- CMD", sentence(&cause.id)),
            (true, false) => format!("systoll prove --cure {}:{number} -- CMD", sentence(&cause.id)),
        }
    }

    /// Returns lines of code. A line that is too long is not broken: people paste it.
    fn code(&self, what: &str, code: &str) -> Vec<Line> {
        let mut lines = self.paragraph("", Role::Faint, what);
        let text = |line: &str| Line::of(Role::Plain, " ".repeat(TEXT + 2)).with(Role::Name, code_line(line));
        lines.extend(code.trim_end().lines().map(text));
        lines
    }
}

/// Describes the conditions under which a report shows the cure, except those that its other
/// details show already.
fn only_where(cure: &Cure) -> String {
    let on = cure.when.iter().flat_map(|when| when.on.iter()).map(|target| target.name()).collect::<Vec<_>>();
    let on = if on.is_empty() { None } else { Some(format!("what the descriptor leads to is: {}", on.join(", "))) };
    let is = |asked: Option<bool>, yes: &str, no: &str| asked.map(|holds| (if holds { yes } else { no }).to_owned());
    let all = [
        on,
        is(
            cure.served,
            "a server starts the code anew for each request",
            "no server starts the code anew for each request",
        ),
        is(cure.several, "several places ask about one thing", "one place asks"),
        cure.program.map(|uses| uses.words().to_owned()),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Escapes a line of code and expands tabs to four columns.
fn code_line(line: &str) -> String {
    clean(&line.replace('\t', "    "))
}

/// Returns a cause's mechanisms without a finding to fill their braces. Examples come from the
/// pattern; evidence is left out.
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
    // The clause about windows describes a single run, so it is cut off.
    let end = why.find("{agree}").and_then(|at| why.get(..at)?.rfind(';')).unwrap_or(why.len());
    let named = |names: &[Cow<'static, str>]| names.first().filter(|name| **name != "*").map(|name| name.to_string());
    let first = |names: Option<&[Cow<'static, str>]>, or: &str| names.and_then(named).unwrap_or(or.to_owned());
    let syscall = pattern.and_then(|p| p.syscalls.first()).map_or("the system call".into(), ToString::to_string);
    let fillers = [
        ("{api}", first(pattern.map(|p| &*p.apis), "the function")),
        ("{what}", first(pattern.map(|p| &*p.objects), "the object")),
        ("{syscall}", syscall),
        ("{agree}", "n".into()),
        ("{windows}", "n".into()),
    ];
    let text = why.get(..end).unwrap_or(why).to_owned();
    fillers.iter().fold(text, |text, (brace, word)| text.replace(brace, word))
}
