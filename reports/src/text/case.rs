//! Reads text cases from Markdown.

use super::clock::{APART_NS, Clock, has_time};
use super::expect::{Expectation, FindsLine, values};
use super::lines::{Values, read, repeated};
use anyhow::{Context, Result, ensure};
use systoll_judge::Catalogue;

/// Largest number of lines of a case's trace: more take too long.
const MOST_LINES: usize = 100_000;

/// A part of a case's trace.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Number of the line with its info string.
    at: usize,
    /// The values that its info string gives.
    values: Values,
    /// Its lines, each with its number in the file.
    lines: Vec<(usize, String)>,
}

/// A trace, and what must be found in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    /// The heading above it.
    pub(super) heading: String,
    blocks: Vec<Block>,
    /// Values in place of those of the blocks.
    pub(super) variant: Values,
    pub(super) expectations: Vec<Expectation>,
}

/// The cases of a file, and what is wrong with it, by line.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) cases: Vec<Case>,
    pub(super) errors: Vec<(usize, String)>,
}

/// A fenced block that is being read.
struct Fence {
    marks: String,
    info: String,
    block: Block,
}

impl File {
    /// Reads a file.
    pub(super) fn parse(text: &str, catalogue: &Catalogue) -> Self {
        let mut file = Self::default();
        let (mut heading, mut blocks) = (String::new(), Vec::new());
        let mut fence: Option<Fence> = None;
        for (at, line) in (1..).zip(text.lines()) {
            let Some(open) = &mut fence else {
                let marks = line.len() - line.trim_start_matches('`').len();
                if marks >= 3 {
                    let (marks, info) = line.split_at(marks);
                    let block = Block { at, ..Block::default() };
                    fence = Some(Fence { marks: marks.to_owned(), info: info.trim().to_owned(), block });
                } else if let Some(new) = line.strip_prefix("## ") {
                    file.ends(&heading, &blocks);
                    (heading, blocks) = (new.to_owned(), Vec::new());
                }
                continue;
            };
            if line != open.marks {
                open.block.lines.push((at, line.to_owned()));
                continue;
            }
            let Some(Fence { info, block, .. }) = fence.take() else { continue };
            match info.split_once(' ').unwrap_or((&info, "")) {
                ("strace", more) => match values(more) {
                    Ok(values) => blocks.push(Block { values, ..block }),
                    Err(error) => file.errors.push((block.at, format!("{error:#}"))),
                },
                ("finds", _) => file.finds(&heading, &mut blocks, &block, catalogue),
                _ => {}
            }
        }
        if let Some(fence) = fence {
            file.errors.push((fence.block.at, "the block has no end".to_owned()));
        }
        file.ends(&heading, &blocks);
        file
    }

    /// Notes an error if blocks have no expectation when a case ends.
    fn ends(&mut self, heading: &str, blocks: &[Block]) {
        if let Some(block) = blocks.first() {
            self.errors.push((block.at, format!("no `finds` block follows: {heading}")));
        }
    }

    /// Takes in the expectations of the blocks before.
    fn finds(&mut self, heading: &str, blocks: &mut Vec<Block>, finds: &Block, catalogue: &Catalogue) {
        let blocks = std::mem::take(blocks);
        let before = self.cases.len() + self.errors.len();
        if blocks.is_empty() {
            return self.errors.push((finds.at, "no `strace` block stands before".to_owned()));
        }
        let case = Case { heading: heading.to_owned(), blocks, ..Case::default() };
        let mut plain = case.clone();
        for (at, line) in &finds.lines {
            match FindsLine::parse(*at, line, catalogue) {
                Ok(None) => {}
                Ok(Some(FindsLine { variant: None, expectations })) => plain.expectations.extend(expectations),
                Ok(Some(FindsLine { variant: Some(variant), expectations })) => {
                    self.cases.push(Case { variant, expectations, ..case.clone() });
                }
                Err(error) => self.errors.push((*at, format!("{error:#}"))),
            }
        }
        if !plain.expectations.is_empty() {
            self.cases.push(plain);
        }
        if self.cases.len() + self.errors.len() == before {
            self.errors
                .push((finds.at, "the block expects nothing: say `nothing` where nothing must be found".to_owned()));
        }
    }
}

impl Case {
    /// Returns the case's trace.
    ///
    /// # Errors
    /// If a value is not there or is not used, or a line can't be read.
    pub(super) fn trace(&self) -> Result<String> {
        let mut common: Values = self.blocks.iter().flat_map(|block| block.values.clone()).collect();
        for (name, value) in &self.variant {
            ensure!(common.contains_key(name), "the info string of no block has {name}=");
            common.insert(name.clone(), value.clone());
        }
        for name in common.keys().filter(|name| !OF_BLOCKS.contains(&name.as_str())) {
            let braces = format!("{{{name}}}");
            let of_block = |block: &Block| {
                block.lines.iter().map(|(_, text)| text).chain(block.values.values()).cloned().collect::<Vec<_>>()
            };
            let texts = self.blocks.iter().flat_map(of_block);
            ensure!(
                texts.into_iter().chain(self.variant.values().cloned()).any(|text| text.contains(&braces)),
                "no line has {braces}"
            );
        }
        let mut blocks = Vec::new();
        for block in &self.blocks {
            let of_block = |name: &str| {
                let instead = self.variant.get(name).filter(|_| block.values.contains_key(name));
                instead.or_else(|| block.values.get(name)).map(String::as_str)
            };
            let times = of_block("repeat").unwrap_or("1");
            let times = times.parse().with_context(|| format!("repeat={times} is no number"))?;
            let lines = repeated(&read(&block.lines, &common)?, times, MOST_LINES)?;
            let apart_ns = of_block("apart").map_or(Ok(APART_NS), time_ns)?;
            blocks.push((of_block("busy").map_or(Ok(0), time_ns)?, apart_ns, lines));
        }
        let lines: Vec<&String> = blocks.iter().flat_map(|(.., lines)| lines).collect();
        let (first, last) = (lines.first().context("the trace has no lines")?, lines.last().context("no lines")?);
        ensure!(lines.len() <= MOST_LINES, "{} lines, {MOST_LINES} are the most", lines.len());
        if lines.iter().any(|line| has_time(line)) {
            return Ok(lines.into_iter().map(|line| format!("{line}\n")).collect());
        }
        let mut clock = Clock::new(first);
        for (busy_ns, apart_ns, lines) in &blocks {
            clock.computes(*busy_ns);
            lines.iter().for_each(|line| clock.line(line, *apart_ns));
        }
        Ok(clock.finish(last))
    }
}

/// Names of values that are not put into lines: how often the block is repeated, how long the program computes before it,
/// and the time from one call to the next.
const OF_BLOCKS: [&str; 3] = ["repeat", "busy", "apart"];

/// Reads a time such as `20ms` or `5us`, ns.
fn time_ns(text: &str) -> Result<u64> {
    let of_unit = |unit: &str, ns: u64| Some(text.strip_suffix(unit)?.parse::<u64>().ok()?.saturating_mul(ns));
    of_unit("ms", 1_000_000)
        .or_else(|| of_unit("us", 1_000))
        .with_context(|| format!("{text} is no time such as 20ms or 5us"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<(usize, String)> {
        File::parse(text, &Catalogue::builtin()).errors
    }

    #[test]
    fn each_finds_block_is_of_the_blocks_before_it() {
        let text = "# A\n## one\n```strace repeat=2 got=1\nread(3, \"\", {got}) = 0\n```\n```finds\nnothing\nwith got=2: repeat\n```\n\
                    ```strace\nclose(3) = 0\n```\n```finds\nnothing\n```\n";
        let file = File::parse(text, &Catalogue::builtin());
        assert!(file.errors.is_empty() && file.cases.len() == 3, "{file:#?}");
        let calls =
            |case: &Case| case.trace().unwrap().lines().filter(|l| l.contains("read(") || l.contains("close(")).count();
        assert_eq!(file.cases.iter().map(calls).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(file.cases[0].trace().unwrap().contains("read(3, \"\", 2) = 0"));
    }

    #[test]
    fn what_expects_nothing_is_an_error() {
        let block = "```strace\nclose(3) = 0\n```\n";
        assert_eq!(errors(&format!("## a\n{block}"))[0].0, 2);
        assert_eq!(errors(&format!("## a\n{block}## b\n"))[0].0, 2);
        assert!(errors(&format!("{block}```finds\n# later\n```\n"))[0].1.contains("expects nothing"));
        assert!(errors("```finds\nnothing\n```\n")[0].1.contains("no `strace` block"));
        assert!(errors("```strace\nclose(3) = 0\n")[0].1.contains("no end"));
    }

    #[test]
    fn values_that_are_not_there_or_not_used_are_errors() {
        let error = |info: &str, line: &str, finds: &str| {
            let text = format!("```strace {info}\n{line}\n```\n```finds\n{finds}\n```\n");
            let file = File::parse(&text, &Catalogue::builtin());
            format!("{:#}", file.cases[0].trace().unwrap_err())
        };
        assert!(error("", "close({fd}) = 0", "nothing").contains("{fd}"));
        assert!(error("fd=3", "close(3) = 0", "nothing").contains("no line has {fd}"));
        assert!(error("", "close(3) = 0", "with fd=3: nothing").contains("has fd="));
        assert!(error("repeat=x", "close(3) = 0", "nothing").contains("repeat=x"));
        assert!(error("busy=3", "close(3) = 0", "nothing").contains("3 is no time"));
    }
}
