//! Sentences about a recording's problems; each appears once.

use super::Sentences;
use crate::units::{counted, grouped};
use systoll_model::{Frame, Problem, ProblemKind};

/// Files without names that the sentence names, at most.
const FILES: usize = 3;

/// End of the sentence about a file without names.
const STRIPPED: &str = ": stripped: its functions are shown by address; its debug symbols would name them";

impl Sentences<'_> {
    /// Returns true if a reader who did not ask for everything should see a problem. Bounds that lose no call go to `--all`.
    /// Without findings, no name is shown and, if the processor time is known, no price that could be wrong.
    pub(crate) fn matters(&self, problem: &Problem) -> bool {
        match problem.kind {
            ProblemKind::Bounded => false,
            ProblemKind::Name => self.names_lack(problem),
            ProblemKind::Price => !self.judgement.findings.is_empty() || self.own_cpu_ns().is_none(),
            _ => true,
        }
    }

    /// Returns true if there are findings and, where the problem is a file without names, calls of one come by a function of
    /// that file, which is then shown by its address.
    fn names_lack(&self, problem: &Problem) -> bool {
        let findings = &self.judgement.findings;
        let Some(file) = problem.text.strip_suffix(STRIPPED) else { return !findings.is_empty() };
        let strands = self.judgement.strands(self.rec);
        let path = |f: &Frame| strands.modules.get(f.module?.0 as usize).map(|module| &*module.path);
        let is_address = |f: &Frame| f.function().contains("+0x") && path(f) == Some(file);
        let rows = findings.iter().flat_map(|f| &f.strands).filter_map(|id| strands.rows.get(id.0 as usize));
        // Of a script's calls, its lines are shown.
        let mut rows = rows.filter(|row| row.lines.is_empty());
        rows.any(|row| strands.row_frames(row).any(is_address))
    }

    /// Returns the problems for which `matters` returns true, first those that put the counts in doubt. If `joined` is
    /// true, files without names are one problem.
    pub(crate) fn problems(&self, matters: impl Fn(&Problem) -> bool, joined: bool) -> Vec<String> {
        let mut problems: Vec<&Problem> = self.rec.problems.iter().filter(|problem| matters(problem)).collect();
        problems.sort_by_key(|p| !p.kind.spoils_exactness());
        let texts = added_up(problems.iter().map(|p| p.text.as_str()));
        if joined { join_stripped(texts) } else { texts }
    }
}

/// Replaces the problems of all files without names by one line: nobody installs the debug symbols of each.
fn join_stripped(texts: Vec<String>) -> Vec<String> {
    let file =
        |text: &String| text.strip_suffix(STRIPPED).map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    let files: Vec<String> = texts.iter().filter_map(file).collect();
    if files.len() < 2 {
        return texts;
    }
    let named = files.get(..FILES).unwrap_or(&files).join(", ");
    let more = files.len().checked_sub(FILES).filter(|more| *more > 0);
    let more = more.map_or_else(String::new, |more| format!(" and {} more", grouped(more as u64)));
    let count = counted(files.len() as u64, "file", "files");
    let line = format!("{count} stripped ({named}{more}): their functions are shown by address");
    let mut joined = Some(line);
    texts.into_iter().filter_map(|text| if file(&text).is_some() { joined.take() } else { Some(text) }).collect()
}

/// Adds up texts that differ only in the number in brackets at their end: a problem that many processes of a program
/// share appears once.
fn added_up<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut sums: Vec<(&str, Option<u64>)> = vec![];
    for text in texts {
        let number =
            text.strip_suffix(')').and_then(|t| t.rsplit_once(" (")).and_then(|(t, n)| Some((t, n.parse().ok()?)));
        let (start, n) = number.map_or((text, None), |(start, n): (&str, u64)| (start, Some(n)));
        match sums.iter_mut().find(|(other, m)| *other == start && m.is_some() == n.is_some()) {
            Some((_, m)) => *m = m.zip(n).map(|(m, n)| m.saturating_add(n)),
            None => sums.push((start, n)),
        }
    }
    sums.into_iter().map(|(start, n)| n.map_or(start.to_owned(), |n| format!("{start} ({})", grouped(n)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_names_are_one_line() {
        let of = |file: &str| format!("/usr/bin/{file}{STRIPPED}");
        let texts = vec![of("cut"), "clock moved".to_owned(), of("sed"), of("date"), of("tr")];
        let joined = join_stripped(texts);
        let line = "4 files stripped (cut, sed, date and 1 more): their functions are shown by address";
        assert_eq!(joined, [line, "clock moved"]);
        assert_eq!(join_stripped(vec![of("cut")]), [of("cut")]);
    }
}
