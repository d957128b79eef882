//! Reads what must be found in a text case and what must not, and compares findings with it.

use super::lines::Values;
use anyhow::{Context, Result, bail, ensure};
use std::ops::RangeInclusive;
use systoll_judge::{Catalogue, Finding, Judgement, Kind};
use systoll_model::Recording;

/// An expectation, as it was written and as it is checked.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    /// Number of its line in the file.
    pub(super) line: usize,
    pub(super) text: String,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// Neither a finding nor a remark.
    Nothing,
    /// No finding; remarks may be there.
    NoFinding,
    /// Other findings may be there.
    Others,
    /// A finding or remark of its own.
    There(Wanted),
    /// No finding and no remark like this.
    Not(Wanted),
}

/// Properties of a finding or remark.
#[derive(Clone, Debug)]
struct Wanted {
    /// A cause's id, a kind's name, or [`ANY`].
    name: String,
    /// True for findings, false for remarks, `None` for both.
    finding: Option<bool>,
    tests: Vec<Test>,
}

/// A property of a finding that must hold.
#[derive(Clone, Debug)]
enum Test {
    /// A number lies in a range.
    Within(String, RangeInclusive<u64>),
    /// One of some words is this one.
    Is(String, String),
    /// Some text has these words, or has not.
    Has(String, String, bool),
}

/// The name that any cause and kind fits.
const ANY: &str = "any";
/// Keys of numbers.
const NUMBERS: [&str; 2] = ["needless", "calls"];
/// Keys of words.
const WORDS: [&str; 6] = ["kind", "cause", "api", "call", "line", "object"];
/// Keys of texts.
const TEXTS: [&str; 3] = ["why", "cure", "cures"];

/// The findings and remarks of a case.
pub(super) struct Found<'a> {
    pub(super) recording: &'a Recording,
    pub(super) judgement: &'a Judgement,
}

/// A line of a `finds` block.
#[derive(Debug)]
pub(super) struct FindsLine {
    /// The values of the variant that the line is about; `None` if it is about the case as it stands.
    pub(super) variant: Option<Values>,
    pub(super) expectations: Vec<Expectation>,
}

impl FindsLine {
    /// Reads the line with this number; `None` if it is empty or a comment.
    ///
    /// # Errors
    /// If it is no expectation.
    pub(super) fn parse(line: usize, text: &str, catalogue: &Catalogue) -> Result<Option<Self>> {
        let words = words(text)?;
        if words.is_empty() {
            return Ok(None);
        }
        let (mut variant, mut rest) = (None, words.as_slice());
        if rest[0].text == "with" {
            let end = rest.iter().position(|word| word.ends_values).context("the values end with `:`")?;
            variant = Some(pairs(&rest[1..=end])?);
            rest = &rest[end + 1..];
        }
        let each = rest.split(|word| word.text == "and");
        let expectations = each.map(|words| Expectation::parse(line, words, catalogue)).collect::<Result<_>>()?;
        Ok(Some(Self { variant, expectations }))
    }
}

impl Expectation {
    fn parse(line: usize, words: &[Word], catalogue: &Catalogue) -> Result<Self> {
        let all: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let what = match all.as_slice() {
            [] => bail!("an expectation is missing: a cause or kind, `not` and one, or `nothing`"),
            ["nothing"] => What::Nothing,
            ["no", "finding"] => What::NoFinding,
            ["others"] => What::Others,
            ["not", rest @ ..] => What::Not(Wanted::parse(rest, None, catalogue)?),
            rest => What::There(Wanted::parse(rest, Some(true), catalogue)?),
        };
        Ok(Self { line, text: all.join(" "), what })
    }

    /// Returns true if the expectation names a finding.
    fn is_of_finding(&self) -> bool {
        matches!(&self.what, What::There(Wanted { finding: Some(true), .. }))
    }
}

impl Wanted {
    fn parse(words: &[&str], finding: Option<bool>, catalogue: &Catalogue) -> Result<Self> {
        let (name, rest) = words.split_first().context("a cause or kind is missing")?;
        let known = |name: &str| name == ANY || catalogue.get(name).is_some() || Kind::named(name).is_some();
        ensure!(known(name), "{name} is neither a cause (crates/judge/causes) nor a kind");
        let mut wanted = Self { name: (*name).to_owned(), finding, tests: Vec::new() };
        for word in rest {
            match *word {
                "finding" => wanted.finding = Some(true),
                "remark" => wanted.finding = Some(false),
                "either" => wanted.finding = None,
                word => wanted.tests.push(Test::parse(word)?),
            }
        }
        Ok(wanted)
    }

    fn fits(&self, finding: &Finding, is_finding: bool, recording: &Recording) -> bool {
        let names = [finding.cause.as_deref().unwrap_or_default(), finding.kind.name(), ANY];
        let named = names.contains(&self.name.as_str());
        named
            && self.finding.is_none_or(|wanted| wanted == is_finding)
            && self.tests.iter().all(|test| test.holds(finding, recording))
    }
}

impl Test {
    fn parse(word: &str) -> Result<Self> {
        let end = word.find(['=', '~', '!']).with_context(|| format!("{word} is no property of a finding"))?;
        let (key, rest) = word.split_at(end);
        let is = |keys: &[&str]| keys.contains(&key);
        let owned = |rest: &str| (key.to_owned(), rest.to_owned());
        if let Some(range) = rest.strip_prefix('=').filter(|_| is(&NUMBERS)) {
            return Ok(Self::Within(key.to_owned(), bounds(range)?));
        }
        if let Some(value) = rest.strip_prefix('=').filter(|_| is(&WORDS)) {
            let (key, value) = owned(value);
            return Ok(Self::Is(key, value));
        }
        let has = rest.strip_prefix('~').map(|text| (text, true));
        let text = has.or_else(|| Some((rest.strip_prefix("!~")?, false))).filter(|_| is(&TEXTS));
        let Some((text, has)) = text else {
            let (numbers, words, texts) = (NUMBERS.join(", "), WORDS.join(", "), TEXTS.join(", "));
            bail!("{word}: properties are {numbers} (=LEAST..MOST), {words} (=WORD), {texts} (~TEXT, !~TEXT)");
        };
        let (key, text) = owned(text);
        Ok(Self::Has(key, text, has))
    }

    fn holds(&self, finding: &Finding, recording: &Recording) -> bool {
        match self {
            Self::Within(key, range) => range.contains(&number(finding, key)),
            Self::Is(key, word) => words_of(finding, recording, key).iter().any(|of| of == word),
            Self::Has(key, text, has) => texts(finding, key).iter().any(|of| of.contains(text)) == *has,
        }
    }
}

fn number(finding: &Finding, key: &str) -> u64 {
    if key == "needless" { finding.needless.estimate } else { finding.calls }
}

fn words_of(finding: &Finding, recording: &Recording, key: &str) -> Vec<String> {
    match key {
        "kind" => vec![finding.kind.name().to_owned()],
        "cause" => vec![finding.cause.as_deref().unwrap_or("none").to_owned()],
        "api" => finding.apis.iter().map(|api| api.to_string()).collect(),
        "call" => finding.syscalls.iter().map(|call| call.to_string()).collect(),
        "line" => line(finding, recording).map_or_else(Vec::new, |(file, line)| vec![format!("{file}:{line}"), line]),
        _ => finding.what.iter().cloned().collect(),
    }
}

fn line(finding: &Finding, recording: &Recording) -> Option<(String, String)> {
    let place = recording.frame(finding.user?).location()?;
    Some((place.file.as_deref()?.to_owned(), place.line?.to_string()))
}

fn texts<'a>(finding: &'a Finding, key: &str) -> Vec<&'a str> {
    match key {
        "why" => vec![&finding.why],
        "cure" => finding.stop().into_iter().take(1).collect(),
        _ => finding.stop(),
    }
}

/// Reads `990..1000`, `990..`, `..1000` or `1000`.
fn bounds(text: &str) -> Result<RangeInclusive<u64>> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str, open: u64| {
        if text.is_empty() { Ok(open) } else { text.parse().with_context(|| format!("{text} is no number")) }
    };
    Ok(number(least, 0)?..=number(most, u64::MAX)?)
}

impl Found<'_> {
    /// Returns the expectations that do not hold, and what was found that none of them names.
    pub(super) fn wrong(&self, expectations: &[Expectation]) -> Vec<String> {
        let (findings, remarks) = (&self.judgement.findings, &self.judgement.also);
        let all: Vec<(&Finding, bool)> =
            findings.iter().map(|f| (f, true)).chain(remarks.iter().map(|f| (f, false))).collect();
        let mut named = vec![false; all.len()];
        let mut wrong = Vec::new();
        for expectation in expectations {
            let holds = match &expectation.what {
                What::Nothing => all.is_empty(),
                What::NoFinding => findings.is_empty(),
                What::Others => true,
                What::Not(wanted) => !all.iter().any(|(f, is_finding)| wanted.fits(f, *is_finding, self.recording)),
                What::There(wanted) => {
                    let fits = |at: &usize| !named[*at] && wanted.fits(all[*at].0, all[*at].1, self.recording);
                    let at = (0..all.len()).find(fits);
                    at.inspect(|at| named[*at] = true).is_some()
                }
            };
            wrong.extend((!holds).then(|| expectation.text.clone()));
        }
        let others = expectations.iter().any(|expectation| matches!(expectation.what, What::Others));
        if expectations.iter().any(Expectation::is_of_finding) && !others {
            let free = all.iter().zip(&named).filter(|((_, is_finding), named)| *is_finding && !**named);
            wrong.extend(
                free.map(|((finding, _), _)| {
                    format!("no other finding than those named, such as {}", self.line(finding))
                }),
            );
        }
        wrong
    }

    /// Returns what was found, a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let findings = self.judgement.findings.iter().map(|finding| format!("finding {}", self.line(finding)));
        let remarks = self.judgement.also.iter().map(|remark| format!("remark {}", self.line(remark)));
        let all: Vec<String> = findings.chain(remarks).collect();
        if all.is_empty() { vec!["nothing".to_owned()] } else { all }
    }

    fn line(&self, finding: &Finding) -> String {
        let of = |key: &str| words_of(finding, self.recording, key).join(",");
        let mut text = format!(
            "{} kind={} calls={} needless={} call={}",
            of("cause"),
            of("kind"),
            finding.calls,
            finding.needless.estimate,
            of("call")
        );
        for key in ["api", "object"] {
            let words = of(key);
            text += &if words.is_empty() { words } else { format!(" {key}={words:?}") };
        }
        let line =
            line(finding, self.recording).map_or_else(String::new, |(file, line)| format!(" line={file}:{line}"));
        format!("{text}{line} why~{:?} cure~{:?}", finding.why, finding.stop().first().unwrap_or(&""))
    }
}

/// A word of a line.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// True if a colon stood behind the word.
    ends_values: bool,
}

/// Reads the values of an info string: `NAME=VALUE NAME=VALUE`.
///
/// # Errors
/// If it has something else.
pub(super) fn values(text: &str) -> Result<Values> {
    pairs(&words(text)?)
}

fn pairs(words: &[Word]) -> Result<Values> {
    let pair = |word: &Word| {
        let (name, value) = word.text.split_once('=').with_context(|| format!("{} is no NAME=VALUE", word.text))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    words.iter().map(pair).collect()
}

/// Splits a line into words: quotes hold words together, and a comment begins with `#`.
fn words(text: &str) -> Result<Vec<Word>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<Word>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().text.push(c),
        }
        if let (None, ':', Some(word)) = (quote, c, &mut word) {
            word.ends_values = true;
        } else if let (None, Some(word)) = (quote, &mut word) {
            word.ends_values = false;
        }
    }
    ensure!(quote.is_none(), "a quote is not closed");
    words.extend(word);
    for word in words.iter_mut().filter(|word: &&mut Word| word.ends_values) {
        word.text.pop();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<FindsLine>> {
        FindsLine::parse(1, text, &Catalogue::builtin())
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        for (text, says) in [
            ("tz-unsett", "neither a cause"),
            ("not", "missing"),
            ("tz-unset needles=3", "properties are"),
            ("tz-unset needless=x", "no number"),
            ("tz-unset cure~\"open", "quote"),
            ("with got=0 nothing", "end with"),
            ("with got: nothing", "NAME=VALUE"),
            ("tz-unset and", "missing"),
        ] {
            let error = format!("{:#}", parsed(text).unwrap_err());
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(parsed("  # only a comment").unwrap().is_none());
    }

    #[test]
    fn a_line_may_be_about_a_variant() {
        let line = parsed("with more='close(3) = 0' got=: not tz-unset and repeat needless=9.. why~\"a b: c\" # why")
            .unwrap()
            .unwrap();
        let values: Vec<(String, String)> = line.variant.unwrap().into_iter().collect();
        assert_eq!(values, [("got".into(), String::new()), ("more".into(), "close(3) = 0".into())]);
        let texts: Vec<&str> = line.expectations.iter().map(|e| e.text.as_str()).collect();
        assert_eq!(texts, ["not tz-unset", "repeat needless=9.. why~a b: c"]);
    }
}
