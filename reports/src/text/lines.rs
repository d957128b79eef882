//! The lines of a text case's trace: repeated, with values and numbers put in.

use super::expression::{Counters, Expression};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;

/// Values by their names: those of a block's info string, or those that a variant gives instead.
pub(super) type Values = BTreeMap<String, String>;

/// A part of a line.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Number(Expression),
    /// A number that is written as `0x7f00`.
    Address(Expression),
}

/// A line, and how often it is there.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The prefix `{j<…}`, and the number of times that it stands for.
    each: Option<(String, Expression)>,
    /// Comparisons that must hold for the line to be there.
    only_if: Vec<Expression>,
    parts: Vec<Part>,
}

impl Line {
    /// Reads a line into which `values` were put.
    ///
    /// # Errors
    /// If it names a value that is not there.
    pub(super) fn parse(text: &str, values: &Values) -> Result<Self> {
        let mut text = text.to_owned();
        // Values may hold others.
        for (name, value) in values.iter().chain(values) {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        let (mut each, mut only_if, mut rest) = (None, Vec::new(), text.as_str());
        while let Some((inside, behind)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            let Some(prefix) = Expression::parse(inside).ok().filter(Expression::compares) else { break };
            match prefix.times() {
                Some(times) => each = Some((inside.to_owned(), times.clone())),
                None => only_if.push(prefix),
            }
            rest = behind.trim_start();
        }
        Ok(Self { each, only_if, parts: parts(rest)? })
    }

    /// Returns true if the line is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn write(&self, counters: Counters, out: &mut Vec<String>) {
        if self.only_if.iter().any(|only_if| only_if.value(counters) == 0) {
            return;
        }
        let show = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Number(number) => number.value(counters).to_string(),
            Part::Address(number) => format!("{:#x}", number.value(counters)),
        };
        out.push(self.parts.iter().map(show).collect());
    }
}

/// Returns the text of a line in parts.
fn parts(text: &str) -> Result<Vec<Part>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    let mut plain = String::new();
    while let Some((before, inside, behind)) = next_braces(rest) {
        let (words, is_address) = inside.strip_suffix(":x").map_or((inside, false), |words| (words, true));
        if let Some(number) = Expression::parse(words).ok().filter(|_| words.contains(['i', 'j'])) {
            plain.push_str(before);
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(if is_address { Part::Address(number) } else { Part::Number(number) });
            rest = behind;
            continue;
        }
        if !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_lowercase()) {
            bail!("nothing says what {{{inside}}} is: the block's first line may, as in `strace {inside}=1`");
        }
        // A struct: what it holds may have numbers of its own.
        let open = before.len() + 1;
        plain.push_str(&rest[..open]);
        rest = &rest[open..];
    }
    plain.push_str(rest);
    parts.push(Part::Text(plain));
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Ok(parts)
}

/// Returns the text before the next brace, the text up to the brace that closes, and the text behind that.
fn next_braces(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inside, behind) = rest.split_once('}')?;
    Some((before, inside, behind))
}

/// Returns the lines of a block that is repeated: lines that follow each other with the same prefix `{j<…}` are repeated
/// together, and frames of a stack go with the call in front of them.
///
/// # Errors
/// If there are more than `most` lines, or repetitions.
pub(super) fn repeated(lines: &[Line], times: i64, most: usize) -> Result<Vec<String>> {
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    ensure!(times <= limit, "repeat={times}: {most} are the most");
    let mut out = Vec::new();
    let prefix = |line: &Line| line.each.as_ref().map(|(prefix, _)| prefix.clone());
    for i in 0..times {
        for run in lines.chunk_by(|a, b| prefix(a) == prefix(b)) {
            let each = run.first().and_then(|line| line.each.as_ref());
            let times = each.map_or(1, |(_, times)| times.value(Counters { i, j: 0 }));
            ensure!(times <= limit && out.len() <= most, "a block has more than {most} lines");
            for j in 0..times {
                run.iter().for_each(|line| line.write(Counters { i, j }, &mut out));
            }
        }
    }
    Ok(out)
}

/// Returns the lines of a block, each with its number in the file, into which `values` were put; empty lines are left out.
///
/// # Errors
/// If a line can't be read; the error names it.
pub(super) fn read(lines: &[(usize, String)], values: &Values) -> Result<Vec<Line>> {
    let mut all: Vec<Line> = Vec::new();
    for (at, text) in lines {
        let mut line = Line::parse(text, values).with_context(|| format!("line {at}"))?;
        if text.starts_with(" > ")
            && let Some(call) = all.last()
        {
            (line.each, line.only_if) = (call.each.clone(), call.only_if.clone());
        }
        all.extend(Some(line).filter(|line| !line.is_empty()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, values: &[(&str, &str)], times: i64) -> Vec<String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let lines: Vec<(usize, String)> = text.lines().map(str::to_owned).zip(1..).map(|(l, n)| (n, l)).collect();
        repeated(&read(&lines, &values).unwrap(), times, 10).unwrap()
    }

    #[test]
    fn numbers_follow_from_the_repetition() {
        assert_eq!(written("close({i+3}) = 0", &[], 2), ["close(3) = 0", "close(4) = 0"]);
        assert_eq!(written("brk({4096*i:x}) = 0", &[], 2)[1], "brk(0x1000) = 0");
        assert_eq!(written("fstat(3, {st_size={i}, ...}) = 0", &[], 2)[1], "fstat(3, {st_size=1, ...}) = 0");
        assert_eq!(
            written("{i%2==0} read({i})\n > f [0x1]", &[], 3),
            ["read(0)", " > f [0x1]", "read(2)", " > f [0x1]"]
        );
        assert_eq!(written("{j<2} a({j})\n{j<2} b({i})", &[], 1), ["a(0)", "b(0)", "a(1)", "b(0)"]);
    }

    #[test]
    fn values_are_put_in() {
        let lines = "read(3) = {got}\n{more}";
        assert_eq!(written(lines, &[("got", "{i}"), ("more", "")], 2), ["read(3) = 0", "read(3) = 1"]);
        assert_eq!(written(lines, &[("got", "0"), ("more", "close(3) = 0")], 1), ["read(3) = 0", "close(3) = 0"]);
        assert!(Line::parse("read(3) = {got}", &Values::new()).is_err());
    }

    #[test]
    fn a_case_without_an_end_is_refused() {
        let lines = |text: &str, times| repeated(&read(&[(1, text.to_owned())], &Values::new()).unwrap(), times, 10);
        assert!(lines("close(3) = 0", i64::MAX).is_err());
        assert!(lines("{j<4000000000} close(3) = 0", 1).is_err());
        assert!(lines("{j<9} close(3) = 0", 10).is_err());
    }
}
