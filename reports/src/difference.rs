//! Finds what changed between two reports of one recording, and says which kind of change each is.

use crate::document::{Block, Document};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::collections::{BTreeMap, BTreeSet};

/// A change of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kind of change, as the words after a number of findings or reports: "findings lose their `also`". Equal
    /// kinds of different reports are counted together.
    pub kind: String,
    /// The change itself, in a few words.
    pub example: String,
}

/// Largest length of an example, characters.
const EXAMPLE: usize = 240;

/// Returns what changed between two reports of one recording.
pub fn changes(old: &Document, new: &Document) -> Vec<Change> {
    let mut all = Changes::default();
    findings(old, new, &mut all);
    let sorts: BTreeSet<&str> = old.blocks.iter().chain(&new.blocks).map(|block| block.sort.as_str()).collect();
    for sort in sorts.into_iter().filter(|sort| !FINDINGS.contains(sort)) {
        in_order(sort, &old.of_sort(sort).collect::<Vec<_>>(), &new.of_sort(sort).collect::<Vec<_>>(), &mut all);
    }
    let names: BTreeSet<&str> = old.screens.iter().chain(&new.screens).map(|screen| screen.name.as_str()).collect();
    for name in names {
        let lines = |document| Document::lines_of(document, name);
        let (old, new) = (lines(old), lines(new));
        for change in TextDiff::from_slices(&old, &new).iter_all_changes() {
            let (verb, text) = match change.tag() {
                ChangeTag::Delete => ("lose", change.value().trim()),
                ChangeTag::Insert => ("gain", change.value().trim()),
                ChangeTag::Equal => continue,
            };
            if !text.is_empty() {
                all.add(format!("screens {verb} a line: {}", without_numbers(text)), text);
            }
        }
    }
    all.0
}

#[derive(Default)]
struct Changes(Vec<Change>);

impl Changes {
    fn add(&mut self, kind: String, example: &str) {
        self.0.push(Change { kind, example: example.chars().take(EXAMPLE).collect() });
    }
}

/// Sorts of blocks that are findings.
const FINDINGS: [&str; 2] = ["finding", "remark"];

/// Returns the rows that a finding is about: numbers that stand for the same rows in both reports.
fn rows(block: &Block) -> BTreeSet<u64> {
    let rows: Vec<u64> = block.field("rows").and_then(|rows| serde_json::from_str(rows).ok()).unwrap_or_default();
    rows.into_iter().collect()
}

/// Returns the finding's cause, or else its kind.
fn name(block: &Block) -> &str {
    block.field("cause").or(block.field("kind")).unwrap_or("\"?\"").trim_matches('"')
}

/// Returns a finding in a few words.
fn brief(block: &Block) -> String {
    let field = |name| block.field(name).unwrap_or_default();
    let user: Value = serde_json::from_str(field("user")).unwrap_or_default();
    let function = user["function"].as_str().unwrap_or("?").to_owned();
    let needless: Value = serde_json::from_str(field("needless_calls")).unwrap_or_default();
    let needless = needless["estimate"].as_u64().unwrap_or_default();
    format!("{} of {function}: {needless} of {} calls, {}", name(block), field("calls"), field("why"))
}

/// Compares findings and remarks. Two are the same thing if they have the same name and rows, or else the same name and
/// some common rows, or else some common rows.
fn findings(old: &Document, new: &Document, all: &mut Changes) {
    let list = |document: &Document| -> Vec<Block> {
        document.blocks.iter().filter(|block| FINDINGS.contains(&block.sort.as_str())).cloned().collect()
    };
    let (mut gone, mut come) = (list(old), list(new));
    let like: [fn(&Block, &Block) -> bool; 3] = [
        |a, b| name(a) == name(b) && rows(a) == rows(b),
        |a, b| name(a) == name(b) && !rows(a).is_disjoint(&rows(b)),
        |a, b| !rows(a).is_disjoint(&rows(b)),
    ];
    for fits in like {
        let mut rest = Vec::new();
        for a in gone {
            let common = |b: &Block| rows(&a).intersection(&rows(b)).count();
            let best = (0..come.len()).filter(|at| fits(&a, &come[*at])).max_by_key(|at| common(&come[*at]));
            match best {
                Some(at) => pair(&a, &come.remove(at), all),
                None => rest.push(a),
            }
        }
        gone = rest;
    }
    gone.iter().for_each(|a| all.add(format!("{}s are lost: {}", a.sort, name(a)), &brief(a)));
    come.iter().for_each(|b| all.add(format!("{}s are new: {}", b.sort, name(b)), &brief(b)));
}

fn pair(a: &Block, b: &Block, all: &mut Changes) {
    if a.sort != b.sort {
        all.add(format!("{}s become {}s: {}", a.sort, b.sort, name(a)), &brief(b));
    }
    if name(a) != name(b) {
        all.add(format!("findings change their cause: {} to {}", name(a), name(b)), &brief(b));
    }
    compare("finding", a, b, all);
}

/// Compares blocks of a sort that have no names: the first with the first, and so on.
fn in_order(sort: &str, old: &[&Block], new: &[&Block], all: &mut Changes) {
    for (a, b) in old.iter().zip(new) {
        compare(sort, a, b, all);
    }
    let few = old.len().min(new.len());
    let whole = |block: &Block| block.fields.iter().map(|(name, value)| format!("{name} {value} ")).collect::<String>();
    old[few..].iter().for_each(|a| all.add(format!("{sort}s are lost"), &whole(a)));
    new[few..].iter().for_each(|b| all.add(format!("{sort}s are new"), &whole(b)));
}

/// Compares the fields of two blocks, and the parts of fields. Adds each kind of change once.
fn compare(sort: &str, a: &Block, b: &Block, all: &mut Changes) {
    let (old, new) = (parts(a), parts(b));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut seen = BTreeSet::new();
    for at in names {
        let (x, y) = (old.get(at), new.get(at));
        if x == y {
            continue;
        }
        let field = without_places(at);
        let verb = match (x, y) {
            (Some(_), None) => format!("{sort}s lose their `{field}`"),
            (None, Some(_)) => format!("{sort}s gain a `{field}`"),
            (Some(Value::Number(x)), Some(Value::Number(y))) => {
                let direction = if x.as_f64() < y.as_f64() { "rises" } else { "falls" };
                format!("{sort}s: `{field}` {direction}")
            }
            _ => format!("{sort}s: `{field}` changes"),
        };
        if seen.insert(verb.clone()) {
            let show = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
            let about = if sort == "finding" { format!("{}: ", name(b)) } else { String::new() };
            all.add(verb, &format!("{about}{} is now {}", show(x), show(y)));
        }
    }
}

/// Returns the single values of a block by their paths.
fn parts(block: &Block) -> BTreeMap<String, Value> {
    let mut parts = BTreeMap::new();
    for (name, text) in &block.fields {
        // A digest is no JSON.
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
        put_parts(name.clone(), value, &mut parts);
    }
    parts
}

fn put_parts(path: String, value: Value, parts: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            fields.into_iter().for_each(|(name, value)| put_parts(format!("{path}.{name}"), value, parts));
        }
        Value::Array(list) => {
            list.into_iter().enumerate().for_each(|(n, value)| put_parts(format!("{path}[{n}]"), value, parts));
        }
        one => {
            parts.insert(path, one);
        }
    }
}

/// Returns a path without places in lists.
fn without_places(path: &str) -> String {
    let mut pieces = path.split('[');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |out, piece| out + "[" + piece.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Returns a line with `N` for each number, so that lines which differ in numbers only are of one kind.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        let digit = c.is_ascii_digit();
        let inside = matches!(c, '.' | ',') && out.ends_with('N');
        if digit && !out.ends_with('N') {
            out.push('N');
        } else if !digit && !inside {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Screen;

    fn block(sort: &str, fields: &[(&str, &str)]) -> Block {
        Block { sort: sort.into(), fields: fields.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect() }
    }

    fn kinds(old: &[Block], new: &[Block]) -> Vec<String> {
        let document = |blocks: &[Block]| Document { screens: Vec::new(), blocks: blocks.to_vec() };
        changes(&document(old), &document(new)).into_iter().map(|change| change.kind).collect()
    }

    #[test]
    fn a_finding_is_followed_by_its_rows() {
        let found = |sort, cause, rows, calls| block(sort, &[("cause", cause), ("calls", calls), ("rows", rows)]);
        let old = [found("finding", "\"a\"", "[1,2]", "9"), found("finding", "\"b\"", "[3]", "9")];
        assert_eq!(kinds(&old, &old), [""; 0]);
        let swapped = [old[1].clone(), old[0].clone()];
        assert_eq!(kinds(&old, &swapped), [""; 0]);
        assert_eq!(kinds(&old, &old[..1]), ["findings are lost: b"]);
        assert_eq!(kinds(&old[..1], &old), ["findings are new: b"]);
        assert_eq!(
            kinds(&old[..1], &[found("remark", "\"a\"", "[1,2]", "8")]),
            ["findings become remarks: a", "findings: `calls` falls"]
        );
        let named = [found("finding", "\"c\"", "[1,2]", "9")];
        assert_eq!(kinds(&old[..1], &named), ["findings change their cause: a to c", "findings: `cause` changes"]);
    }

    #[test]
    fn parts_of_fields_are_compared() {
        let old =
            [block("round", &[("calls", "{\"low\":1,\"high\":2}"), ("lines", "[\"x\",\"y\"]"), ("rows", "#12 of 3")])];
        let new = [block("round", &[("calls", "{\"low\":0.5}"), ("lines", "[\"x\",\"z\"]"), ("rows", "#13 of 3")])];
        assert_eq!(
            kinds(&old, &new),
            [
                "rounds lose their `calls.high`",
                "rounds: `calls.low` falls",
                "rounds: `lines[]` changes",
                "rounds: `rows` changes"
            ]
        );
        assert_eq!(kinds(&old, &[]), ["rounds are lost"]);
    }

    #[test]
    fn lines_that_differ_in_numbers_are_of_one_kind() {
        let screen = |lines: &[&str]| Document {
            screens: vec![Screen { name: "report".into(), lines: lines.iter().map(|&l| l.into()).collect() }],
            blocks: Vec::new(),
        };
        let got = changes(&screen(&["a", " 1,200 calls, 3.5 %", "b"]), &screen(&["a", "b", " 17 calls"]));
        let kinds: Vec<&str> = got.iter().map(|change| change.kind.as_str()).collect();
        assert_eq!(kinds, ["screens lose a line: N calls, N %", "screens gain a line: N calls"]);
    }
}
