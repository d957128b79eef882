//! Selects the hunks of a commit's diff that touch a row's functions.

use std::path::Path;
use systoll_compare::SourcePlace;
use systoll_present::Hunk;

/// Largest number of hunks that are shown, and largest number of lines of each.
const MOST_HUNKS: usize = 3;
const MOST_LINES: usize = 12;

/// Returns the hunks of `diff` (git's, without context) that touch one of `places`: those that
/// change the line itself, else those in its function, else those in its file. The diff's files are
/// relative to `root`.
pub(super) fn touching(diff: &str, places: &[SourcePlace], root: &Path) -> Vec<Hunk> {
    let hunks = parse(diff);
    let root = format!("{}/", root.display());
    let is_file = |place: &SourcePlace, hunk: &Read| {
        let Some(file) = place.file.as_deref() else { return false };
        let file = file.strip_prefix(&root).unwrap_or(file).trim_start_matches("./");
        // Debug information may have any folder in front of a file's name.
        file == hunk.hunk.file
            || file.ends_with(&format!("/{}", hunk.hunk.file))
            || hunk.hunk.file.ends_with(&format!("/{file}"))
    };
    let on_line = |place: &SourcePlace, hunk: &Read| {
        let (first, last) = (hunk.hunk.line, hunk.hunk.line.saturating_add(hunk.added.max(1) - 1));
        place.line.is_some_and(|line| (first..=last).contains(&line))
    };
    let in_function = |place: &SourcePlace, hunk: &Read| {
        let name = place.function.rsplit([':', '.']).next().unwrap_or_default();
        !name.is_empty() && (hunk.function.contains(name) || hunk.hunk.lines.iter().any(|l| l.contains(name)))
    };
    type Touches<'a> = &'a dyn Fn(&SourcePlace, &Read) -> bool;
    let ways: [Touches<'_>; 3] = [&on_line, &in_function, &|_, _| true];
    for way in ways {
        let found = hunks.iter().filter(|h| places.iter().any(|p| is_file(p, h) && way(p, h)));
        let found: Vec<Hunk> = found.take(MOST_HUNKS).map(|h| h.hunk.clone()).collect();
        if !found.is_empty() {
            return found;
        }
    }
    hunks.into_iter().take(MOST_HUNKS).map(|h| h.hunk).collect()
}

/// A hunk as git prints it.
struct Read {
    hunk: Hunk,
    /// Number of the hunk's lines after the change.
    added: u32,
    /// The text after the hunk's second @@, which is git's name for the function.
    function: String,
}

fn parse(diff: &str) -> Vec<Read> {
    let mut hunks: Vec<Read> = Vec::new();
    let (mut file, mut old_file) = (String::new(), String::new());
    let mut in_header = true;
    for line in diff.lines() {
        if line.starts_with("diff --git ") {
            in_header = true;
        } else if let Some(path) = line.strip_prefix("--- ").filter(|_| in_header) {
            old_file = path.strip_prefix("a/").unwrap_or(path).to_owned();
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| in_header) {
            // A deleted file is known by its old name.
            file = path.strip_prefix("b/").map_or_else(|| old_file.clone(), str::to_owned);
        } else if let Some(rest) = line.strip_prefix("@@ ") {
            in_header = false;
            let Some((ranges, function)) = rest.split_once(" @@") else { continue };
            let Some(new) = ranges.split_whitespace().find_map(|r| r.strip_prefix('+')) else { continue };
            let (start, count) = new.split_once(',').unwrap_or((new, "1"));
            let (Ok(start), Ok(added)) = (start.parse::<u32>(), count.parse()) else { continue };
            let hunk = Hunk { file: file.clone(), line: start.max(1), lines: Vec::new() };
            hunks.push(Read { hunk, added, function: function.trim().to_owned() });
        } else if let Some(last) = hunks.last_mut().filter(|_| !in_header && line.starts_with(['+', '-']))
            && last.hunk.lines.len() < MOST_LINES
        {
            last.hunk.lines.push(line.to_owned());
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/src/a.c b/src/a.c\n--- a/src/a.c\n+++ b/src/a.c\n@@ -3 +3,2 @@ void load(void)\n-x\n+y\n\
                        +z\n@@ -20,0 +22 @@ int other(int n)\n+--- w\ndiff --git a/b.c b/b.c\n--- a/b.c\n+++ /dev/null\n\
                        @@ -1 +0,0 @@\n-gone\n";

    fn hunks_at(function: &str, file: &str, line: u32) -> Vec<(String, u32)> {
        let place = SourcePlace { function: function.into(), file: Some(file.into()), line: Some(line) };
        let hunks = touching(DIFF, &[place], Path::new("/tree"));
        hunks.into_iter().map(|h| (h.file, h.line)).collect()
    }

    #[test]
    fn the_nearest_hunks_are_listed() {
        let hunk = |file: &str, line| (file.to_owned(), line);
        assert_eq!(hunks_at("f", "/tree/src/a.c", 4), [hunk("src/a.c", 3)]);
        assert_eq!(hunks_at("other", "a.c", 90), [hunk("src/a.c", 22)]);
        assert_eq!(hunks_at("nothing", "/tree/src/a.c", 90), [hunk("src/a.c", 3), hunk("src/a.c", 22)]);
        assert_eq!(hunks_at("f", "/elsewhere/x.c", 1).len(), 3, "all, where none is near");
        assert_eq!(parse(DIFF)[2].hunk.file, "b.c");
        assert!(parse("@@ -1 +x @@\n+\n@@").is_empty());
    }
}
